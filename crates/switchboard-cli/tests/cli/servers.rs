//! Commands that connect to servers: the embedded one, and a small scripted one over stdio.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::support::{Run, TestContext, eventually, named, workspace};

/// The interpreter itself: wrappers that search for it need variables that tests do not set.
pub(crate) static PYTHON: LazyLock<String> = LazyLock::new(|| {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
});

/// A machine with servers of these names, each with a fault or none, and after a semicolon additional keys of its
/// entry.
pub(crate) fn machine(servers: &[(&str, &str)]) -> TestContext {
    let context = TestContext::new();
    configure(&context, servers);
    context
}

/// Writes a file with exactly these servers.
pub(crate) fn configure(context: &TestContext, servers: &[(&str, &str)]) {
    let mut file = String::new();
    for (name, more) in servers {
        let (fault, keys) = more.split_once(';').unwrap_or((more, ""));
        let fault = match fault {
            "" => String::new(),
            fault => format!(", {fault:?}"),
        };
        let _ = writeln!(
            file,
            "[mcp_servers.{name}]\ncommand = {:?}\nargs = [{:?}, {:?}{fault}]\n{keys}",
            *PYTHON,
            script().display().to_string(),
            log(context, name).display().to_string(),
        );
    }
    context.write("config/mcp.toml", file);
}

pub(crate) fn log(context: &TestContext, server: &str) -> PathBuf {
    context.path(&format!("{server}.log"))
}

/// The messages that a server received, in order, without its process id.
pub(crate) fn received(context: &TestContext, server: &str) -> Vec<String> {
    let text = std::fs::read_to_string(log(context, server)).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with("pid "));
    lines.map(str::to_owned).collect()
}

/// Whether no process of a server is left.
pub(crate) fn has_exited(context: &TestContext, server: &str) -> bool {
    let text = std::fs::read_to_string(log(context, server)).unwrap();
    let processes = text.lines().filter_map(|line| line.strip_prefix("pid "));
    processes.clone().count() > 0
        && processes
            .into_iter()
            .all(|process| !Path::new("/proc").join(process).exists())
}

/// Replaces times and sizes, which differ between runs.
fn steady(text: &str) -> String {
    let mut steady: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let words = line.split(' ').collect::<Vec<_>>();
        let number = |word: &str| word.parse::<f64>().is_ok();
        let mut line = String::new();
        for (index, word) in words.iter().enumerate() {
            let unit = words.get(index + 1).copied().unwrap_or_default();
            let measured = number(word) && ["s", "ms", "MB", "kB"].contains(&unit.trim());
            let separator = if index == 0 { "" } else { " " };
            let _ = write!(line, "{separator}{}", if measured { "#" } else { word });
        }
        while line.trim_start().contains("   ") {
            let indent = line.len() - line.trim_start().len();
            line = line[..indent].to_owned() + &line[indent..].replace("   ", "  ");
        }
        steady.push(line);
    }
    steady.join("\n")
}

fn recorded(context: &TestContext, lines: &[&str]) -> String {
    let mut shown = String::new();
    for line in lines {
        let _ = writeln!(shown, "$ switchboard {line}\n{}", context.snapshot(line));
    }
    let folder = script().parent().unwrap().display().to_string();
    shown
        .replace(&*PYTHON, "[PYTHON]")
        .replace(&folder, "[TESTS]")
}

pub(crate) fn script() -> PathBuf {
    workspace().join("crates/switchboard-cli/tests/cli/server.py")
}

#[test]
fn tools_of_several_servers() {
    let context = machine(&[
        ("alpha", ";disabled_tools = [\"hidden\"]"),
        ("beta", ";enabled_tools = [\"echo\"]"),
        ("broken", "exit"),
        ("off", ";enabled = false"),
    ]);
    let shown = recorded(
        &context,
        &[
            "tools",
            "--color always tools --server beta",
            "tools --server beta --all",
            "tools --server beta --json",
            "tools --no-connect",
            "tools --server broken",
            "tools --server off",
            "tools --server alhpa",
            "mcp list",
            "mcp list --json",
            "mcp list --no-connect --json",
        ],
    );
    insta::assert_snapshot!(shown);
    let asked = |line: &String| line.starts_with("tools/list");
    let asked = received(&context, "off")
        .iter()
        .filter(|line| asked(line))
        .count();
    assert_eq!(asked, 0);
}

#[test]
fn no_server_is_started_to_show_cached_lists() {
    let context = machine(&[("alpha", "")]);
    let before = context.line("tools --no-connect");
    assert_eq!((before.code, before.stdout.as_str()), (0, ""));
    assert_eq!(
        before.stderr,
        "alpha has not been connected yet, so its tools are unknown\n"
    );
    assert!(received(&context, "alpha").is_empty());
    let live = context.line("tools --json");
    let messages = received(&context, "alpha").len();
    let remembered = context.line("tools --no-connect --json");
    assert_eq!(
        (
            remembered.code,
            &remembered.stdout,
            remembered.stderr.as_str()
        ),
        (0, &live.stdout, "")
    );
    assert_eq!(received(&context, "alpha").len(), messages);
}

#[test]
fn calls() {
    let context = machine(&[
        ("alpha", ";disabled_tools = [\"hidden\"]"),
        ("broken", "exit"),
    ]);
    let shown = recorded(
        &context,
        &[
            "call mcp__alpha__echo text=hi times=2",
            "call alpha/echo '{\"text\": \"5\"}'",
            "call alpha.echo text=5 --json",
            "call alpha/echo",
            "call alpha/echo text=hi times=0 nonsense=1",
            "call alpha/echo text=hi times=often",
            "call alpha/echo '{'",
            "call alpha/ecko text=hi",
            "call alpha/hidden",
            "call nobody/echo",
            "call broken/echo",
            "call alpha/fail",
            "call alpha/fail --json",
            "call alpha/reject",
            "call alpha/data",
            "call alpha/data --json",
            "call alpha/picture",
            "call alpha/picture --output picture.png",
            "call alpha/echo text=kept --output echo.txt",
            "call alpha/paint",
            "call alpha/paint --json",
            "call alpha/die",
            "call alpha/wait --timeout 0.3",
            "call alpha/wait --timeout never",
        ],
    );
    insta::assert_snapshot!(shown);
    assert_eq!(context.read("project/picture.png"), "hello");
    assert_eq!(context.read("project/picture-2.png"), "world");
    assert_eq!(context.read("project/echo.txt"), "kept\n");
    // The program does not wait for its servers; their supervisor ends them.
    eventually("the servers have exited", || has_exited(&context, "alpha"));
}

#[test]
fn arguments_come_from_standard_input() {
    let context = machine(&[("alpha", "")]);
    let run = |input: &str| {
        let mut command = context.command();
        command.args(["call", "alpha/echo", "-"]).write_stdin(input);
        let run = Run::of(&command.output().unwrap());
        (run.code, run.stdout)
    };
    assert_eq!(run("{\"text\": \"piped\"}\n"), (0, "piped\n".to_owned()));
    assert_eq!(run("nonsense"), (2, String::new()));
}

#[test]
fn a_call_starts_only_the_server_it_needs() {
    let context = machine(&[("alpha", ""), ("beta", "")]);
    assert_eq!(context.line("call beta/echo text=hi").code, 0);
    assert_eq!(received(&context, "alpha"), Vec::<String>::new());
    // A name that does not identify its server queries all of them.
    let ambiguous = context.line("call echo text=hi");
    assert_eq!(ambiguous.code, 2, "{}", ambiguous.stderr);
    assert!(received(&context, "alpha").contains(&"tools/list".to_owned()));
}

#[test]
fn the_embedded_server_can_be_called() {
    let context = TestContext::new();
    context.write("project/notes.txt", "first line\nsecond line\n");
    let shown = recorded(
        &context,
        &[
            "call workspace/read_file path=notes.txt",
            "call mcp__workspace__grep pattern=second",
            "call workspace/glob pattern='*.txt' --json",
            "call workspace/read_file path=nothing.txt",
            "call workspace/reed_file path=notes.txt",
            "mcp list",
        ],
    );
    insta::assert_snapshot!(shown);
    let status = context.json("status --connect --json");
    assert_eq!(status[0]["name"], "workspace");
    assert_eq!(status[0]["state"], "connected");
}

#[test]
fn status_of_servers() {
    let context = machine(&[
        ("alpha", ""),
        ("broken", "exit"),
        ("off", ";enabled = false"),
    ]);
    let shown = recorded(
        &context,
        &["status --connect", "--color always status --connect"],
    );
    insta::assert_snapshot!(steady(&shown));
    let status = context.json("status --connect --json");
    let alpha = named(&status, "alpha");
    assert!(
        alpha["memory"]
            .as_u64()
            .is_some_and(|memory| memory > 1_000_000)
            || cfg!(not(target_os = "linux"))
    );
    assert!(alpha["latency"].as_f64().is_some());
    assert_eq!(
        [
            &alpha["state"],
            &alpha["era"],
            &alpha["restarts"],
            &alpha["tools"]
        ],
        [
            &json!("connected"),
            &json!("stateful"),
            &json!(0),
            &json!(9)
        ]
    );
    assert_eq!(named(&status, "off")["state"], "disabled");
    assert_eq!(named(&status, "broken")["memory"], Value::Null);
}

#[test]
fn a_failed_required_server_sets_the_exit_code() {
    let context = machine(&[("alpha", ""), ("needed", "exit;required = true")]);
    let tools = context.line("tools");
    assert_eq!(tools.code, 4, "{}", tools.stderr);
    assert!(
        tools.stdout.contains("mcp__alpha__echo"),
        "{}",
        tools.stdout
    );
    assert_eq!(context.line("call alpha/echo text=hi").code, 0);
    assert_eq!(context.line("mcp list").code, 0);
    assert_eq!(context.line("status --connect").code, 0);
}

/// A server on loopback that answers every request with this status.
fn refusing(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut length = 0;
            let mut line = String::new();
            // Read the whole request, or closing the connection could lose the answer.
            while reader
                .read_line(&mut line)
                .is_ok_and(|_| !line.trim().is_empty())
            {
                let header = line.to_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let answer = format!(
                "HTTP/1.1 {status}\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let _ = reader.get_mut().write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn a_server_that_wants_a_login_is_told_from_one_that_is_down() {
    for (status, code, state) in [
        ("401 Unauthorized", 6, "needs-auth"),
        ("503 Service Unavailable", 4, "failed"),
    ] {
        let context = TestContext::new();
        let url = refusing(status);
        context.write(
            "config/mcp.toml",
            format!("[mcp_servers.far]\nurl = {url:?}\n"),
        );
        for line in ["tools --server far", "call far/anything"] {
            let run = context.line(line);
            assert_eq!(run.code, code, "{status}: {line}\n{}", run.stderr);
        }
        let listed = context.json("mcp list --json");
        assert_eq!(named(&listed, "far")["state"], state);
    }
}

#[test]
fn a_server_that_is_not_trusted_is_not_started() {
    let context = machine(&[]);
    let entry = json!({"mcpServers": {"theirs": {
        "command": *PYTHON,
        "args": [script(), log(&context, "theirs")],
    }}});
    context.write("project/.mcp.json", entry.to_string());
    let tools = context.line("tools");
    assert_eq!((tools.code, tools.stdout.as_str()), (0, ""));
    assert_eq!(
        tools.stderr,
        "theirs is not started: not approved yet; `switchboard trust approve theirs`\n"
    );
    assert_eq!(context.line("tools --server theirs").code, 5);
    assert_eq!(context.line("call theirs/echo text=hi").code, 5);
    assert!(!context.exists("theirs.log"));
    assert_eq!(context.line("tools --trust-project --quiet").code, 0);
    assert!(context.exists("theirs.log"));
}

#[test]
fn with_a_store_that_cannot_be_used_no_tool_is_offered() {
    let context = machine(&[("alpha", "")]);
    context.write(
        "state/switchboard.db",
        "this is no database at all, and long enough to be sure of it",
    );
    let run = context.line("call alpha/echo text=hi");
    assert_eq!((run.code, run.stdout.as_str()), (5, ""), "{}", run.stderr);
    let warnings = run
        .stderr
        .matches("warning: the state cannot be used")
        .count();
    assert_eq!(warnings, 1, "{}", run.stderr);
    let reason = "\"alpha/echo\" is set aside: cannot compare it with its pin";
    assert!(run.stderr.contains(reason), "{}", run.stderr);
    // The error names this remedy.
    std::fs::remove_file(context.path("state/switchboard.db")).unwrap();
    let run = context.line("call alpha/echo text=hi");
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "hi\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_supervisor_is_not_a_command() {
    let context = TestContext::new();
    assert!(!context.line("--help").all().contains("supervisor"));
    assert!(
        !context
            .line("completions bash")
            .all()
            .contains("supervisor")
    );
}

#[cfg(unix)]
mod signals {
    use super::*;

    /// A call that never ends, with the live log of its server.
    struct Waiting {
        context: TestContext,
        child: Child,
        log: BufReader<std::fs::File>,
        process: String,
        is_hurried: bool,
    }

    impl Waiting {
        /// Starts the call and waits until the server has received it.
        fn begin(fault: &str) -> Self {
            let context = machine(&[("alpha", fault)]);
            // The log is a pipe: reading it blocks until the server writes, and ends when the server exits.
            let pipe = log(&context, "alpha");
            let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
            assert!(made.success());
            let child = Command::new(context.command().get_program())
                .args(["call", "alpha/wait"])
                .env_clear()
                .env("HOME", context.path("home"))
                .env("PATH", context.path("bin"))
                .env("SWITCHBOARD_CONFIG_DIR", context.path("config"))
                .env("SWITCHBOARD_STATE_DIR", context.path("state"))
                .env("SWITCHBOARD_MANAGED_FILE", context.path("managed.toml"))
                .current_dir(context.path("project"))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut log = BufReader::new(std::fs::File::open(pipe).unwrap());
            let mut first = String::new();
            log.read_line(&mut first).unwrap();
            let process = first.trim().strip_prefix("pid ").unwrap().to_owned();
            let mut waiting = Self {
                context,
                child,
                log,
                process,
                is_hurried: fault == "stubborn",
            };
            waiting.until("tools/call wait");
            waiting
        }

        /// Waits until the server receives this.
        fn until(&mut self, wanted: &str) {
            let mut seen = Vec::new();
            for line in (&mut self.log).lines() {
                let line = line.unwrap();
                if line == wanted {
                    return;
                }
                seen.push(line);
            }
            assert_eq!(seen, [wanted], "the server never received it");
        }

        fn send(&self, signal: &str) {
            let process = self.child.id().to_string();
            let sent = Command::new("kill").args([signal, &process]).status();
            assert!(sent.unwrap().success());
        }

        /// Waits for the program and the server; returns the program's output.
        fn end(mut self) -> Run {
            let output = self.child.wait_with_output().unwrap();
            // The pipe ends when the last process that could write to it is gone.
            let rest = (&mut self.log).lines().map(Result::unwrap).count();
            assert!(rest < 10);
            // The supervisor kills it after the program has exited.
            let process = Path::new("/proc").join(&self.process).join("exe");
            eventually("the end of the server", || !process.exists());
            // A cancelled call is recorded too, unless a second signal ended the program at once.
            if output.status.code() != Some(130) || !self.is_hurried {
                let audit = self.context.json("audit --json");
                assert_eq!(audit[0]["outcome"], "cancelled");
            }
            drop(self.context);
            Run::of(&output)
        }
    }

    #[test]
    fn a_signal_cancels_the_call_and_leaves_nothing_behind() {
        for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
            let mut waiting = Waiting::begin("");
            waiting.send(signal);
            waiting.until("notifications/cancelled");
            waiting.until("end of input");
            let run = waiting.end();
            assert_eq!((run.code, run.all().as_str()), (code, ""), "{signal}");
        }
    }

    /// The program with its standard error on a terminal.
    #[cfg(target_os = "linux")]
    struct OnTerminal {
        context: TestContext,
        child: Child,
        screen: std::fs::File,
        written: String,
    }

    #[cfg(target_os = "linux")]
    impl OnTerminal {
        fn begin(fault: &str, arguments: &[&str]) -> Self {
            use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

            let context = machine(&[("alpha", fault)]);
            let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
            grantpt(&controller).unwrap();
            unlockpt(&controller).unwrap();
            let name = ptsname(&controller, Vec::new()).unwrap();
            let name = name.into_string().unwrap();
            let terminal = std::fs::File::options().write(true).open(name).unwrap();
            let size = rustix::termios::Winsize {
                ws_col: 60,
                ws_row: 10,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            rustix::termios::tcsetwinsize(&terminal, size).unwrap();
            let child = Command::new(context.command().get_program())
                .args(arguments)
                .env_clear()
                .env("TERM", "xterm")
                .env("HOME", context.path("home"))
                .env("PATH", context.path("bin"))
                .env("SWITCHBOARD_CONFIG_DIR", context.path("config"))
                .env("SWITCHBOARD_STATE_DIR", context.path("state"))
                .env("SWITCHBOARD_MANAGED_FILE", context.path("managed.toml"))
                .current_dir(context.path("project"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::from(terminal))
                .spawn()
                .unwrap();
            Self {
                context,
                child,
                screen: std::fs::File::from(controller),
                written: String::new(),
            }
        }

        /// Reads until this is written, or the terminal is closed.
        fn until(&mut self, wanted: &str) {
            let mut bytes = [0; 4096];
            while !self.written.contains(wanted) {
                // A terminal that no process holds open returns an error instead of end of file.
                match std::io::Read::read(&mut self.screen, &mut bytes) {
                    Ok(count) if count > 0 => {
                        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                        self.written.push_str(&text);
                    }
                    _ => return,
                }
            }
        }

        /// Interrupts the program; returns its exit code and everything it wrote.
        fn interrupted(mut self) -> (Option<i32>, String) {
            let process = self.child.id().to_string();
            let sent = Command::new("kill").args(["-INT", &process]).status();
            assert!(sent.unwrap().success());
            self.until("nobody writes this");
            let status = self.child.wait().unwrap();
            drop(self.context);
            (status.code(), self.written)
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn live_lines_are_erased() {
        for (fault, arguments, shown) in [
            ("silent", &["tools"][..], "alpha  starting, 0 s"),
            ("", &["call", "alpha/wait"][..], "25 %  a quarter"),
        ] {
            let mut terminal = OnTerminal::begin(fault, arguments);
            // Styles split it into pieces.
            let last = shown.split("  ").last().unwrap();
            terminal.until(last);
            let (code, written) = terminal.interrupted();
            assert_eq!(code, Some(130), "{written}");
            assert!(written.ends_with("\r\u{1b}[J"), "{written:?}");
            let plain = written.replace("\u{1b}[0m", "").replace("\u{1b}[1m", "");
            assert!(plain.contains(shown), "{plain:?}");
        }
    }

    #[test]
    fn a_signal_does_not_wait_for_a_server_that_ignores_its_end() {
        let mut waiting = Waiting::begin("stubborn");
        waiting.send("-TERM");
        waiting.until("end of input");
        let status = waiting.child.wait().unwrap();
        let server = Path::new("/proc").join(&waiting.process).join("exe");
        assert!(server.exists(), "the program waited for the server");
        assert_eq!(status.code(), Some(143));
        // The supervisor kills the server eventually.
        assert_eq!(waiting.end().all(), "");
    }

    #[test]
    fn a_second_signal_exits_at_once() {
        let mut waiting = Waiting::begin("stubborn");
        waiting.send("-INT");
        waiting.until("end of input");
        waiting.send("-INT");
        let run = waiting.end();
        assert_eq!((run.code, run.all().as_str()), (130, ""));
    }
}
