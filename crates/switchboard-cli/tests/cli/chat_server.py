"""A server for chats: it echoes, asks the user, and has a prompt and a resource."""

import json
import sys


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name, description, **properties):
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    tool("echo", "Says what it is told.", text={"type": "string"}),
    tool("ask", "Asks the user where a parcel goes."),
    tool("visit", "Asks the user to visit a page."),
    tool("roots", "Asks which folders there are."),
    tool("sample", "Asks the model."),
    tool("fail", "Fails."),
    tool("choose", "Asks the user for a size."),
    tool("flood", "Asks the user 2,000 things at once."),
]

FORM = {
    "message": "Where shall the parcel go?",
    "requestedSchema": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "green"},
            "gift": {"type": "boolean", "title": "Wrap it", "default": False},
        },
    },
}

CHOICE = {
    "message": "Which size?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "size": {
                "type": "string",
                "oneOf": [{"const": "s1", "title": "Small"}, {"const": "l9", "title": "Large"}],
                "default": "s1",
            },
        },
    },
}

PAGE = {
    "mode": "url",
    "message": "Connect your account.",
    "url": "https://bank.example@login.example/connect",
    "elicitationId": "1",
}

SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "What is 6 times 7?"}}],
    "maxTokens": 50,
}

asked = {}
flood = {"left": 0, "refused": 0, "request": None}


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def call(request, params):
    name = params["name"]
    questions = {
        "ask": ("elicitation/create", FORM),
        "visit": ("elicitation/create", PAGE),
        "roots": ("roots/list", {}),
        "sample": ("sampling/createMessage", SAMPLE),
        "choose": ("elicitation/create", CHOICE),
    }
    if name == "flood":
        flood.update(left=2000, request=request)
        for number in range(2000):
            send({"id": f"f{number}", "method": "elicitation/create", "params": FORM})
        return
    if name == "echo":
        send({"id": request, "result": text(params["arguments"].get("text", ""))})
    elif name == "fail":
        failed = text("it is broken\nin detail")
        send({"id": request, "result": {**failed, "isError": True}})
    else:
        method, question = questions[name]
        mine = f"q{len(asked)}"
        asked[mine] = request
        send({"id": mine, "method": method, "params": question})


def answer(request, method, params):
    if method == "initialize":
        capabilities = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "serverInfo": {"name": "desk", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "prompts/list":
        arguments = [{"name": "what", "required": True}, {"name": "tone"}]
        return {"prompts": [{"name": "review", "description": "Reviews", "arguments": arguments}]}
    if method == "prompts/get":
        said = "Please review " + json.dumps(params["arguments"], sort_keys=True)
        return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
    if method == "completion/complete":
        typed = params["argument"]["value"]
        values = [value for value in ("kind", "harsh") if value.startswith(typed)]
        return {"completion": {"values": values}}
    if method == "resources/list":
        return {"resources": [{"uri": "desk://note", "name": "note"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read" and params["uri"] == "desk://note":
        return {"contents": [{"uri": "desk://note", "text": "remember the milk"}]}
    if method == "ping":
        return {}
    return None


for line in sys.stdin:
    message = json.loads(line)
    request, method = message.get("id"), message.get("method")
    if method is None and str(request).startswith("f"):
        flood["left"] -= 1
        flood["refused"] += "error" in message
        if flood["left"] == 0:
            send({"id": flood["request"], "result": text(f"refused {flood['refused']}")})
    elif method is None:
        if request in asked:
            said = message.get("result", message.get("error"))
            send({"id": asked[request], "result": text(json.dumps(said, sort_keys=True))})
    elif request is None:
        pass
    elif method == "tools/call":
        call(request, message["params"])
    else:
        result = answer(request, method, message.get("params", {}))
        if result is None:
            send({"id": request, "error": {"code": -32601, "message": "there is none"}})
        else:
            send({"id": request, "result": result})
