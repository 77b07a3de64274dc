"""A model for tests: an HTTP server that speaks OpenAI's APIs and gives prepared answers, in order."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """An answer that calls a tool."""
    return {"name": name, "arguments": json.dumps(arguments)}


class ScriptedModel:
    """Serves the answers: texts, and calls made with `call`. Keeps the requests."""

    def __init__(self, *answers: str | dict[str, Any]) -> None:
        self.answers: Sequence[str | dict[str, Any]] = answers
        self.requests: list[dict[str, Any]] = []
        #: Cleared to hold back the answers.
        self.gate = threading.Event()
        self.gate.set()
        #: Set when a request has arrived.
        self.asked = threading.Event()
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not self.path.endswith(("/chat/completions", "/responses")):
                    # A question about the model that only some servers answer.
                    self.send_error(404)
                    return
                script.requests.append(request)
                script.asked.set()
                script.gate.wait(30)
                answer, *script.answers = script.answers
                if self.path.endswith("/responses"):
                    self.reply(response(answer))
                elif request.get("stream"):
                    self.stream(answer)
                else:
                    self.reply(completion(answer))

            def reply(self, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def stream(self, answer: str | dict[str, Any]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for chunk in chunks(answer):
                    self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.write(b"data: [DONE]\n\n")
                self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> ScriptedModel:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def environment(self) -> dict[str, str]:
        """The variables that make programs use it."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "none"}


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def tool_calls(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"index": 0, "id": f"call_{answer['name']}", "type": "function", "function": answer}]


def completion(answer: str | dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(answer, str):
        message["content"] = answer
    else:
        message["tool_calls"] = tool_calls(answer)
    finish = "stop" if isinstance(answer, str) else "tool_calls"
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": USAGE,
    }


def chunks(answer: str | dict[str, Any]) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]]
    if isinstance(answer, str):
        deltas = [{"role": "assistant", "content": part} for part in answer.split(" ")]
        for delta in deltas[1:]:
            delta["content"] = " " + delta["content"]
    else:
        deltas = [{"role": "assistant", "tool_calls": tool_calls(answer)}]
    base = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    finish = "stop" if isinstance(answer, str) else "tool_calls"
    streamed: list[dict[str, Any]] = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    streamed.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    streamed.append({**base, "choices": [], "usage": USAGE})
    return streamed


def response(answer: str | dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any]
    output: dict[str, Any]
    if isinstance(answer, str):
        part = {"type": "output_text", "text": answer, "annotations": []}
        output = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    else:
        call_id = f"call_{answer['name']}"
        output = {"type": "function_call", "id": "f", "call_id": call_id, "status": "completed", **answer}
    return {
        "id": "1",
        "object": "response",
        "created_at": 1,
        "model": "scripted",
        "status": "completed",
        "output": [output],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
