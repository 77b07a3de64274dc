//! One-shot commands exit with their answer, however long their servers take to exit.

use std::path::Path;

use crate::servers::PYTHON;
use crate::support::{TestContext, eventually};

/// A server that records its process id, ignores signals where possible, and exits after the end of its input only once
/// a file exists.
const SERVER: &str = r#"
import json, os, signal, sys, time
pid_file, release = sys.argv[1:]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(pid_file, "w") as file:
    file.write(str(os.getpid()))
RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}}, "serverInfo": {"name": "slow", "version": "1"}},
    "tools/list": {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "the answer"}]},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "note://one", "mimeType": "text/plain", "text": "the answer"}]},
    "ping": {},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in RESULTS:
        answer["result"] = RESULTS[message["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
while not os.path.exists(release):
    time.sleep(0.01)
"#;

/// The command exits and closes its streams while its server still runs: only the file below, or the supervisor after
/// its grace period, ends the server.
#[test]
fn a_command_ends_with_its_answer_and_not_with_its_server() {
    for (arguments, expected) in [
        (&["call", "slow/greet"][..], "the answer"),
        (&["tools"], "greet"),
        (&["read", "slow", "note://one"], "the answer"),
    ] {
        let context = TestContext::new();
        context.write("slow.py", SERVER);
        let path = |name: &str| context.path(name).display().to_string();
        context.write(
            "config/mcp.toml",
            format!(
                "[mcp_servers.slow]\ncommand = {:?}\nargs = [{:?}, {:?}, {:?}]\n",
                *PYTHON,
                path("slow.py"),
                path("pid"),
                path("release"),
            ),
        );
        let run = context.run(arguments);
        let process = Path::new("/proc").join(context.read("pid")).join("exe");
        assert!(process.exists(), "{arguments:?} waited for the server");
        assert_eq!(run.code, 0, "{arguments:?}\n{}", run.all());
        assert!(
            run.stdout.contains(expected),
            "{arguments:?}\n{}",
            run.all()
        );
        context.write("release", "");
        eventually("the end of the server", || !process.exists());
    }
}
