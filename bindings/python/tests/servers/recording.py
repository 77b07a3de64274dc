"""A server for tests over stdio, on the standard library alone. It reports what happens to it to `RECORDER`."""

import json
import os
import socket
import sys
from typing import Any

TOOLS: dict[str, str] = {
    "pid": "Returns the server's process id.",
    "hang": "Never answers.",
    "big": "Returns ten megabytes.",
    "fail": "Reports a failure.",
    "meta": "Returns metadata.",
    "die": "Ends the server.",
    "echo": "Returns its arguments.",
    "progress": "Reports progress in three steps.",
}


def main() -> None:
    address = os.environ.get("RECORDER")
    recorder = None
    if address:
        host, port = address.rsplit(":", 1)
        recorder = socket.create_connection((host, int(port)))

    def record(event: str) -> None:
        if recorder is not None:
            recorder.sendall(f"{event}\n".encode())

    record(f"started {os.getpid()}")
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == "notifications/cancelled":
            record(f"cancelled {message['params']['requestId']}")
        if "id" not in message:
            continue
        if method == "initialize":
            answer(
                message,
                {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "recording", "version": "1"},
                },
            )
        elif method == "tools/list":
            listed = [
                {"name": name, "description": description, "inputSchema": {"type": "object"}}
                for name, description in TOOLS.items()
            ]
            answer(message, {"tools": listed})
        elif method == "tools/call":
            call(message, record)
        elif method == "ping":
            answer(message, {})
        else:
            send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}})
    record("ended")


def call(message: dict[str, Any], record: Any) -> None:
    params = message["params"]
    name = params["name"]
    if name == "hang":
        record(f"hangs {message['id']}")
    elif name == "pid":
        answer(message, text(str(os.getpid())))
    elif name == "big":
        answer(message, text("x" * 10_000_000))
    elif name == "fail":
        answer(message, {**text("it failed"), "isError": True})
    elif name == "meta":
        answer(message, {**text("see meta"), "_meta": {"origin": "test"}})
    elif name == "echo":
        answer(message, {**text("echo"), "structuredContent": params.get("arguments")})
    elif name == "progress":
        token = params["_meta"]["progressToken"]
        for step in range(1, 4):
            told = {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
        answer(message, text("done"))
    elif name == "die":
        sys.exit(3)


def text(content: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}]}


def answer(message: dict[str, Any], result: dict[str, Any]) -> None:
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})


def send(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
