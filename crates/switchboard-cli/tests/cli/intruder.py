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
machine = os.uname().machine


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


def abstract(name):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + name)


def pair_to(path):
    """A datagram pair is connected, and can send to any other address all the same."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"intruder", path)


def raw_pair_to(path):
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)
    with one, other:
        one.sendmsg([b"intruder"], [], 0, path)


def pair_of_packets_to(path):
    """Such a pair may be made: the address is of no use to it."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        one.sendto(b"intruder", path)
        return other.recv(100).decode()


def stream_pair_to(path):
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with one, other:
        one.connect(path)


def pair(_):
    for end in socket.socketpair():
        end.close()


def trace(process):
    checked(libc.ptrace(16, int(process), 0, 0))


def kill(process):
    os.kill(int(process), signal.SIGCONT)


def limit(process):
    import resource

    resource.prlimit(int(process), resource.RLIMIT_CORE, (0, 0))


def own_limit(_):
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def priority(process):
    os.setpriority(os.PRIO_PROCESS, int(process), os.getpriority(os.PRIO_PROCESS, int(process)))


def priority_of_user(_):
    os.setpriority(os.PRIO_USER, os.getuid(), 0)


def own_priority(_):
    os.nice(1)


def processors(process):
    os.sched_setaffinity(int(process), os.sched_getaffinity(int(process)))


def own_processors(_):
    os.sched_setaffinity(0, os.sched_getaffinity(0))


def scheduler(process):
    os.sched_setscheduler(int(process), os.SCHED_BATCH, os.sched_param(0))


def disk_priority(process):
    checked(libc.syscall(251 if machine == "x86_64" else 30, 1, int(process), (2 << 13) | 7))


def chmod(path):
    os.chmod(path, 0o640)


def chmod_through_descriptor(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fchmod(descriptor, 0o640)
    finally:
        os.close(descriptor)


def chmod_through_folder(path):
    folder = os.open(os.path.dirname(path), os.O_PATH)
    try:
        os.chmod(os.path.basename(path), 0o640, dir_fd=folder)
    finally:
        os.close(folder)


def chmod_without_following(path):
    name = ctypes.c_char_p(path.encode())
    checked(libc.syscall(452, -100, name, 0o640, 0x100))


def chmod_through_proc(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", 0o640)
    finally:
        os.close(descriptor)


def set_user_id(path):
    os.chmod(path, 0o4755)


def make_set_user_id(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))


def chown(path):
    os.chown(path, os.getuid(), os.getgid())


def touch(path):
    os.utime(path, (1, 1))


def touch_through_descriptor(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.utime(descriptor, ns=(1, 1))
    finally:
        os.close(descriptor)


def attribute(path):
    os.setxattr(path, "user.intruder", b"1")


def immutable(path):
    import fcntl

    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, 0x40086602, (64).to_bytes(8, "little"))
    finally:
        os.close(descriptor)


def lease(path):
    import fcntl

    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.fcntl(descriptor, 1024, fcntl.F_RDLCK)
    finally:
        os.close(descriptor)


def listing(path):
    return json.dumps(sorted(os.listdir(path)))


def watch(path):
    queue = libc.inotify_init1(0)
    checked(queue)
    try:
        checked(libc.inotify_add_watch(queue, ctypes.c_char_p(path.encode()), 0x100))
    finally:
        os.close(queue)


def link(path):
    os.link(path, os.path.join(os.environ["TMPDIR"], "linked"))


def call(number):
    checked(libc.syscall(int(number), 0, 0, 0, 0, 0, 0))


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
