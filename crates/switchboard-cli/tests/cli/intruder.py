"""An MCP server that tries what it should not, and says what came of it: "done", or the name of the error.

usage: intruder.py
"""

import ctypes
import errno
import json
import os
import signal
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def write(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("intruder")


def append(path):
    with open(path, "a", encoding="utf-8") as file:
        file.write("intruder")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rename(path):
    os.rename(os.path.join(os.environ["TMPDIR"], "made"), path)


def connect(port):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=10):
        pass


def datagram(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"intruder", ("127.0.0.1", int(port)))


def unix(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def pair(_):
    for end in socket.socketpair():
        end.close()


def trace(process):
    checked(libc.ptrace(16, int(process), 0, 0))


def kill(process):
    os.kill(int(process), signal.SIGCONT)


def namespace(_):
    checked(libc.unshare(0x10000000))


def clone_namespace(_):
    child = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    checked(child)


def ring(_):
    checked(libc.syscall(425, 1, ctypes.create_string_buffer(256)))


def stay(_):
    """Leaves a child that has left the session and would live on by itself."""
    child = os.fork()
    if child == 0:
        os.setsid()
        for descriptor in range(3):
            os.close(descriptor)
        while True:
            signal.pause()
    return str(child)


def thread(_):
    import threading

    worker = threading.Thread(target=lambda: None)
    worker.start()
    worker.join()


def child(_):
    import subprocess

    return subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True, text=True, check=True).stdout.strip()


def environment(_):
    return json.dumps(dict(os.environ), sort_keys=True)


def temporary(_):
    path = os.path.join(os.environ["TMPDIR"], "made")
    write(path)
    return path


def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        capabilities = {"tools": {}, "experimental": {"codex/sandbox-state": {"version": "1.0.0"}}}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": {"name": "intruder", "version": "1"},
        }
    if method == "tools/list":
        schema = {"type": "object", "properties": {"what": {"type": "string"}, "on": {"type": "string"}}}
        return {"tools": [{"name": "try", "inputSchema": schema}]}
    if method == "tools/call":
        arguments = params["arguments"]
        if arguments["what"] == "told":
            text = json.dumps(told)
        else:
            try:
                text = globals()[arguments["what"]](bytes.fromhex(arguments.get("on", "")).decode()) or "done"
            except OSError as error:
                text = errno.errorcode.get(error.errno, str(error))
        return {"content": [{"type": "text", "text": text}]}
    if method == "ping":
        return {}
    raise ValueError(method)


told = []
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "codex/sandbox-state/update":
        told.append(message)
    if "id" not in message:
        continue
    try:
        reply = {"result": answer(message)}
    except ValueError as unknown:
        reply = {"error": {"code": -32601, "message": f"no {unknown}"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
