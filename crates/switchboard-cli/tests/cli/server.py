"""A small MCP server over stdio for tests. What it does is said by its arguments and by the tools that are called.

usage: server.py LOG [FAULT]

LOG gets a line for every message that comes in, so that a test can see what the server was told. FAULT is one of
`exit` (ends at once, with a word on stderr), `silent` (never answers), `stubborn` (does not end by itself), `curious`
(asks for the roots as soon as it is initialized).

If there is a file LOG.changes, it is a JSON object: `tools` are definitions that take the place of those of the same
name or stand beside them, `without` names tools that are gone, `instructions` are the server's, and `prompts`,
`templates` and `resources` are its lists of those. The variable EXTRA_TOOL names one more tool.
"""

import json
import os
import signal
import sys
import time

log_path, fault = sys.argv[1], (sys.argv[2:] or [""])[0]

OBJECT = {"type": "object"}
TOOLS = [
    {
        "name": "echo",
        "title": "Say it again",
        "description": "Says again what it was told.\nA second line that no table shows.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "times": {"type": "integer", "minimum": 1}},
            "required": ["text"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {"name": "fail", "description": "Fails by its own word.", "inputSchema": OBJECT},
    {"name": "picture", "description": "Gives two pictures and a word.", "inputSchema": OBJECT},
    {"name": "reject", "description": "Answers with a protocol error.", "inputSchema": OBJECT},
    {"name": "paint", "description": "Paints \u001b[31mthe\u202e terminal.", "inputSchema": OBJECT},
    {"name": "wait", "description": "Never answers, and says that it is alive.", "inputSchema": OBJECT},
    {"name": "die", "description": "Ends the server.", "inputSchema": OBJECT},
    {"name": "data", "description": "Answers with data.", "inputSchema": OBJECT},
    {"name": "hidden", "description": "Is not offered.", "inputSchema": OBJECT},
    {"inputSchema": OBJECT},
]


CHANGES = {}
if os.path.exists(log_path + ".changes"):
    with open(log_path + ".changes", encoding="utf-8") as changes:
        CHANGES = json.load(changes)
if "EXTRA_TOOL" in os.environ:
    CHANGES.setdefault("tools", []).append({"name": os.environ["EXTRA_TOOL"], "description": " ".join(os.environ["EXTRA_TOOL"] + letter for letter in "abcdefgh"), "inputSchema": OBJECT})
replaced = [tool.get("name") for tool in CHANGES.get("tools", [])] + CHANGES.get("without", [])
TOOLS = [tool for tool in TOOLS if tool.get("name") not in replaced] + CHANGES.get("tools", [])


# Line by line, and open as long as the server lives: the log may be a pipe whose end a test waits for.
log = open(log_path, "a", buffering=1, encoding="utf-8")


def note(line):
    log.write(line + "\n")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(text):
    return {"type": "text", "text": text}


def call(params, identifier):
    name, arguments = params["name"], params.get("arguments", {})
    if name == "echo":
        return {"content": [text(" ".join([arguments["text"]] * arguments.get("times", 1)))]}
    if name == "fail":
        return {"content": [text("it did not work")], "isError": True}
    if name == "picture":
        image = {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}
        return {"content": [image, text("two of them"), dict(image, data="d29ybGQ=")]}
    if name == "paint":
        return {"content": [text("\u001b]0;title\u0007\u001b[2Jgone\u202e")]}
    if name == "data":
        return {"structuredContent": {"z": 1, "a": 18446744073709551616}, "content": []}
    if name == "wait":
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            progress = {"progressToken": token, "progress": 1, "total": 4, "message": "a quarter"}
            send({"method": "notifications/progress", "params": progress})
        return None
    if name == "bare":
        return {"foo": "bar"}
    if name == "die":
        os._exit(3)
    raise ValueError(name)


def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {
                "tools": {},
                **({"prompts": {}} if "prompts" in CHANGES else {}),
                **({"resources": {}} if "templates" in CHANGES else {}),
            },
            "serverInfo": {"name": "test", "version": "1"},
            **({"instructions": CHANGES["instructions"]} if "instructions" in CHANGES else {}),
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params, message["id"])
    if method == "prompts/list" and "prompts" in CHANGES:
        return {"prompts": CHANGES["prompts"]}
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": text("filled in")}]}
    if method == "resources/list":
        return {"resources": CHANGES.get("resources", [])}
    if method == "resources/templates/list" and "templates" in CHANGES:
        return {"resourceTemplates": CHANGES["templates"]}
    if method == "ping":
        return {}
    raise ValueError(method)


note(f"pid {os.getpid()}")
if fault == "exit":
    print("no \u001b[31mconfiguration found", file=sys.stderr)
    sys.exit(2)
if fault == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    detail = message.get("params", {}).get("name", "")
    note(f"{message.get('method', 'answer')} {detail}".rstrip())
    if fault == "curious" and message.get("method") == "notifications/initialized":
        send({"id": "roots", "method": "roots/list"})
    if fault == "curious" and message.get("id") == "roots":
        note("roots " + " ".join(root["uri"] for root in message["result"]["roots"]))
        continue
    if "id" not in message or fault == "silent":
        continue
    try:
        result = answer(message)
    except ValueError as unknown:
        send({"id": message["id"], "error": {"code": -32601, "message": f"no {unknown}"}})
    else:
        if result is not None:
            send({"id": message["id"], "result": result})
note("end of input")
if fault == "stubborn":
    while True:
        time.sleep(1)
