"""Measures the chat on a pseudo-terminal: `chat.py SWITCHBOARD ECHO_SERVER FOLDER ROUNDS`, one line of JSON.

The model is a server of this program that streams a text slowly, as models do.
"""

import fcntl
import http.server
import json
import os
import pty
import select
import signal
import statistics
import struct
import sys
import termios
import threading
import time

PATIENCE = 60
SENTENCE = "The quick brown fox jumps over the lazy dog, and then it rests for a while. "
REPEATS = 40
TEXT = (SENTENCE * 4 + "\n\n") * (REPEATS // 4)


def pieces():
    for at in range(0, len(TEXT), 12):
        yield TEXT[at : at + 12]


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        usage = {"input_tokens": 10, "output_tokens": 1}
        message = {
            "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": usage,
        }
        self.event("message_start", message=message)
        self.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in pieces():
            self.event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
            time.sleep(0.01)
        self.event("content_block_stop", index=0)
        self.event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage=usage)
        self.event("message_stop")
        self.close_connection = True

    def event(self, name, **fields):
        data = json.dumps({"type": name, **fields})
        self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
        self.wfile.flush()


class Chat:
    """A chat on a terminal of 100 columns."""

    def __init__(self, program, folder, address):
        self.written = b""
        variables = {
            "HOME": folder,
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "SWITCHBOARD_CONFIG_DIR": f"{folder}/config",
            "SWITCHBOARD_STATE_DIR": f"{folder}/state",
            "SWITCHBOARD_LOCAL_MODELS": "off",
            "ANTHROPIC_API_KEY": "key",
            "ANTHROPIC_BASE_URL": address,
        }
        self.started = time.perf_counter()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(f"{folder}/project")
            os.execve(program, [program, "chat"], variables)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def until(self, text):
        """Reads until the program has written this; gives the time since its start, in seconds."""
        while text not in self.written:
            if not select.select([self.terminal], [], [], PATIENCE)[0]:
                raise TimeoutError(f"{text!r} was not written: {self.written[-2000:]!r}")
            self.written += os.read(self.terminal, 65536)
        return time.perf_counter() - self.started

    def until_silent(self, seconds):
        """Reads until the program has written nothing for so long."""
        while select.select([self.terminal], [], [], seconds)[0]:
            self.written += os.read(self.terminal, 65536)

    def connects(self, servers):
        """Waits until so many servers are connected. The status line has only what changed, so they are listed."""
        for _ in range(PATIENCE * 2):
            before = len(self.written)
            self.press(b"/mcp list\r")
            self.until_silent(0.5)
            if self.written[before:].count(b"connected") >= servers:
                return
        raise TimeoutError(f"not connected: {self.written[-2000:]!r}")

    def press(self, keys):
        os.write(self.terminal, keys)

    def memory(self):
        """Bytes of all processes of the program, without those of servers. Shared pages count by their share."""
        name = os.readlink(f"/proc/{self.pid}/exe")
        total = 0
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{process}/exe") == name:
                    with open(f"/proc/{process}/smaps_rollup") as file:
                        total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
            except OSError:
                pass
        return total * 1024

    def end(self):
        self.press(b"\x04")
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def prepare(folder, servers, echo):
    entry = '[mcp_servers.s{}]\ncommand = {}\nenv = {{ ECHO_TOOLS = "10" }}\n'
    text = "".join(entry.format(number, json.dumps(echo)) for number in range(servers))
    for name in ("config", "state", "project"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
    with open(f"{folder}/config/mcp.toml", "w") as file:
        file.write(text)


def main():
    program, echo, folder, rounds = sys.argv[1:]
    rounds = int(rounds)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{model.server_address[1]}"

    prepare(f"{folder}/one", 1, echo)
    prompts = []
    for _ in range(rounds * 5):
        chat = Chat(program, f"{folder}/one", address)
        prompts.append(chat.until("›".encode()))
        chat.end()

    chat = Chat(program, f"{folder}/one", address)
    chat.connects(1)
    before = len(chat.written)
    chat.press(b"go\r")
    # Everything from the echo of the message to the next prompt.
    chat.until_silent(2)
    streamed = len(chat.written) - before
    chat.end()

    prepare(f"{folder}/many", 30, echo)
    chat = Chat(program, f"{folder}/many", address)
    chat.connects(30)
    memory = chat.memory()
    chat.end()
    print(
        json.dumps(
            {
                "prompt": statistics.median(prompts) * 1e9,
                "streamed": streamed,
                "text": len(TEXT),
                "memory": memory,
            }
        )
    )


main()
