"""An HTTP server for tests that requires a login, with its own authorization server."""

from __future__ import annotations

import json
import threading
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

RESOURCE = "/.well-known/oauth-protected-resource"
AUTHORIZATION = "/.well-known/oauth-authorization-server"
TOKEN = "granted"


class ProtectedServer:
    """An MCP server at `url`, with one tool."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                if path.startswith(RESOURCE):
                    self.reply({"resource": f"{base}/mcp", "authorization_servers": [base]})
                elif path.startswith(AUTHORIZATION):
                    self.reply(
                        {
                            "issuer": base,
                            "authorization_endpoint": f"{base}/authorize",
                            "token_endpoint": f"{base}/token",
                            "registration_endpoint": f"{base}/register",
                            "response_types_supported": ["code"],
                            "grant_types_supported": ["authorization_code", "refresh_token"],
                            "code_challenge_methods_supported": ["S256"],
                            "token_endpoint_auth_methods_supported": ["none"],
                        }
                    )
                elif path == "/authorize":
                    asked = dict(urllib.parse.parse_qsl(query))
                    answer = urllib.parse.urlencode({"code": "secret", "state": asked["state"]})
                    self.reply({}, 302, Location=f"{asked['redirect_uri']}?{answer}")
                else:
                    self.reply({}, 405)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path == "/register":
                    self.reply({**json.loads(body), "client_id": "client"}, 201)
                elif self.path == "/token":
                    self.reply({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})
                elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    self.reply({}, 401, **{"WWW-Authenticate": f'Bearer resource_metadata="{base}{RESOURCE}"'})
                else:
                    self.serve(json.loads(body))

            def do_DELETE(self) -> None:
                self.reply({})

            def serve(self, message: dict[str, Any]) -> None:
                method = message["method"]
                if "id" not in message:
                    self.reply(None, 202)
                    return
                answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
                if method == "initialize":
                    answer["result"] = {
                        "protocolVersion": "2025-06-18",
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "protected", "version": "1"},
                    }
                elif method == "tools/list":
                    answer["result"] = {"tools": [{"name": "secret", "inputSchema": {"type": "object"}}]}
                elif method == "tools/call":
                    answer["result"] = {"content": [{"type": "text", "text": "42"}]}
                else:
                    answer["error"] = {"code": -32601, "message": "unknown"}
                self.reply(answer)

            def reply(self, body: dict[str, Any] | None, status: int = 200, **headers: str) -> None:
                data = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        base = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{base}/mcp"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> ProtectedServer:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def browse(url: str) -> None:
    """What a browser does whose user agrees: follows the redirection to the program."""
    with urllib.request.urlopen(url, timeout=30) as page:
        page.read()
