//! Sandboxed servers that try to escape, through the real program.
//!
//! On a kernel without Landlock such servers must not start at all, which the tests check there. The tests query the
//! kernel directly rather than the program.

use std::fmt::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::LazyLock;

use switchboard_test::skipped::skipped;

use crate::servers::PYTHON;
use crate::support::{Run, TestContext, eventually, workspace};

/// The message if the sandbox is unavailable.
const NONE: &str = "this kernel does not support Landlock";

/// The kernel's Landlock version; 0 if none.
static LANDLOCK: LazyLock<i32> = LazyLock::new(|| {
    // The third argument requests the version; the system call number is the same on every architecture.
    let question =
        "import ctypes; print(ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1))";
    let answer = std::process::Command::new(&*PYTHON)
        .args(["-c", question])
        .output()
        .unwrap();
    let answer = String::from_utf8(answer.stdout).unwrap();
    answer.trim().parse::<i32>().unwrap().max(0)
});

/// Whether this kernel supports the sandbox. Tests that run without it are reported as skipped.
pub(crate) static HAS_LANDLOCK: LazyLock<bool> = LazyLock::new(|| {
    let has = *LANDLOCK >= 3;
    if !has {
        skipped("what a sandbox refuses, because this kernel does not support Landlock");
    }
    has
});

/// A machine with a server that attempts what its sandbox forbids.
fn intruded(mode: &str, network: bool) -> TestContext {
    let context = TestContext::new();
    let script = workspace().join("crates/switchboard-cli/tests/cli/intruder.py");
    context.write(
        "config/mcp.toml",
        format!(
            "[mcp_servers.intruder]\ncommand = {:?}\nargs = [{:?}]\nsandbox = {{ mode = {mode:?}, network = {network} }}\n",
            *PYTHON,
            script.display().to_string()
        ),
    );
    context.write("project/src/main.rs", "fn main() {}");
    context.write("state/tokens/secret", "canary");
    context.write("outside/file", "untouched");
    context
}

fn attempt(context: &TestContext, what: &str, on: &str) -> Run {
    context.run(&[
        "call",
        "intruder/try",
        &format!("what={what}"),
        &disguised(on),
    ])
}

/// Encodes the argument so that only the server can read it: the permission engine would deny a plain path, and these
/// tests are about the sandbox behind it.
fn disguised(on: &str) -> String {
    let mut argument = "on=".to_owned();
    for byte in on.bytes() {
        let _ = write!(argument, "{byte:02x}");
    }
    argument
}

/// Asserts the result of an attempt; without a sandbox the call must fail.
#[track_caller]
fn check(context: &TestContext, what: &str, on: impl AsRef<Path>, expected: &str) {
    let on = on.as_ref().display().to_string();
    let run = attempt(context, what, &on);
    if *HAS_LANDLOCK {
        let shown = (run.code, run.stdout.trim_end());
        assert_eq!(shown, (0, expected), "{what} {on}\n{}", run.stderr);
    } else {
        assert_eq!(run.code, 4, "{}", run.all());
        assert!(run.stderr.contains(NONE), "{}", run.stderr);
    }
}

#[test]
fn a_reader_reads_and_writes_nothing_but_its_own_temporary_files() {
    let context = intruded("read-only", true);
    check(&context, "read", context.path("outside/file"), "untouched");
    check(
        &context,
        "read",
        context.path("project/src/main.rs"),
        "fn main() {}",
    );
    for forbidden in [
        "outside/file",
        "outside/new",
        "project/src/main.rs",
        "project/new",
        "home/.bashrc",
    ] {
        check(&context, "write", context.path(forbidden), "EACCES");
    }
    check(&context, "append", context.path("outside/file"), "EACCES");
    assert_eq!(context.read("outside/file"), "untouched");
    assert_eq!(context.read("project/src/main.rs"), "fn main() {}");
    check(&context, "write", "/dev/null", "done");
    check(&context, "thread", "", "done");
    check(&context, "child", "", "child");
    check(&context, "pair", "", "done");

    // Its temporary files are removed with it.
    let made = attempt(&context, "temporary", "");
    if *HAS_LANDLOCK {
        assert_eq!(made.code, 0, "{}", made.stderr);
        let folder = Path::new(made.stdout.trim_end()).parent().unwrap();
        eventually("the end of its folder", || !folder.exists());
    }
}

#[test]
fn a_writer_writes_below_the_workspace_and_nowhere_else() {
    let context = intruded("workspace", true);
    check(
        &context,
        "write",
        context.path("project/src/main.rs"),
        "done",
    );
    check(
        &context,
        "write",
        context.path("project/src/new.rs"),
        "done",
    );
    check(&context, "write", context.path("project/new"), "done");
    check(&context, "write", context.path("outside/file"), "EACCES");
    check(
        &context,
        "write",
        context.path("project/../outside/new"),
        "EACCES",
    );
    // A link that leads out does not help.
    std::os::unix::fs::symlink(context.path("outside"), context.path("project/link")).unwrap();
    check(
        &context,
        "write",
        context.path("project/link/new"),
        "EACCES",
    );
    assert_eq!(context.read("outside/file"), "untouched");
}

#[test]
fn our_configuration_cannot_be_changed_nor_our_secrets_read() {
    let context = intruded("workspace", true);
    context.write("project/.mcp.toml", "# approved\n");
    context.write("project/.switchboard.local.toml", "# mine\n");
    context.write("project/.claude/settings.json", "{}");
    for (file, text) in [
        (".mcp.toml", "# approved\n"),
        (".switchboard.local.toml", "# mine\n"),
        (".claude/settings.json", "{}"),
    ] {
        let file = format!("project/{file}");
        check(&context, "write", context.path(&file), "EACCES");
        check(&context, "append", context.path(&file), "EACCES");
        assert_eq!(context.read(&file), text);
    }
    check(
        &context,
        "write",
        context.path("project/src/main.rs"),
        "done",
    );
    check(&context, "write", context.path("config/mcp.toml"), "EACCES");
    check(&context, "read", context.path("config/mcp.toml"), "EACCES");
    check(
        &context,
        "read",
        context.path("state/tokens/secret"),
        "EACCES",
    );
    check(&context, "write", context.path("state/new"), "EACCES");

    // Not even if all of it is below the workspace.
    let below = intruded("workspace", true);
    let config = below.read("config/mcp.toml");
    below.write("project/own/config/mcp.toml", &config);
    below.write("project/own/state/secret", "canary");
    for (what, file, expected) in [
        ("write", "project/own/config/mcp.toml", "EACCES"),
        ("write", "project/own/state/new", "EACCES"),
        ("read", "project/own/state/secret", "EACCES"),
        ("write", "project/src/main.rs", "done"),
    ] {
        let mut command = below.command();
        command
            .env("SWITCHBOARD_CONFIG_DIR", below.path("project/own/config"))
            .env("SWITCHBOARD_STATE_DIR", below.path("project/own/state"));
        let on = disguised(&below.path(file).display().to_string());
        let what = format!("what={what}");
        let run = Run::of(
            &command
                .args(["call", "intruder/try", &what, &on])
                .output()
                .unwrap(),
        );
        if *HAS_LANDLOCK {
            assert_eq!(run.stdout.trim_end(), expected, "{file}\n{}", run.stderr);
        } else {
            assert!(run.stderr.contains(NONE), "{}", run.stderr);
        }
    }
}

#[test]
fn the_network_is_there_or_it_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let datagrams = receiver.local_addr().unwrap().port().to_string();
    for mode in ["read-only", "workspace"] {
        let open = intruded(mode, true);
        check(&open, "connect", &port, "done");
        let closed = intruded(mode, false);
        check(&closed, "connect", &port, "EPERM");
        check(&closed, "datagram", &datagrams, "EPERM");
        // A socket in the file system leads to a process outside the sandbox.
        let path = open.path("outside/bus");
        let _bus = UnixListener::bind(&path).unwrap();
        check(&open, "unix", &path, "EPERM");
        check(&closed, "unix", &path, "EPERM");
    }
    // Without file rules, blocking the network needs no Landlock.
    let context = intruded("off", false);
    for (what, on, expected) in [
        ("connect", port.as_str(), "EPERM"),
        ("datagram", datagrams.as_str(), "EPERM"),
        ("child", "", "child"),
    ] {
        let run = attempt(&context, what, on);
        assert_eq!(
            (run.code, run.stdout.trim_end()),
            (0, expected),
            "{}",
            run.stderr
        );
    }
    let file = context.path("outside/new");
    assert_eq!(
        attempt(&context, "write", &file.display().to_string()).stdout,
        "done\n"
    );
}

/// Runs the program as if the kernel lacked Landlock.
fn without_landlock(context: &TestContext, line: &[&str]) -> Run {
    let mut command = context.command();
    command.args(line);
    without_call(command, CREATE_RULESET)
}

/// The number of `landlock_create_ruleset`, the same on every architecture.
pub(crate) const CREATE_RULESET: i64 = 444;

/// Runs the program as if the kernel lacked a system call.
pub(crate) fn without_call(mut command: assert_cmd::Command, number: i64) -> Run {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

    // The error of a system call that the kernel lacks.
    const ENOSYS: u32 = 38;
    // The filter applies only to the thread that installs it.
    let confined = move || {
        let rules = [(number, Vec::new())].into_iter().collect();
        let architecture = std::env::consts::ARCH.try_into().unwrap();
        let absent = SeccompAction::Errno(ENOSYS);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, absent, architecture).unwrap();
        let program: BpfProgram = filter.try_into().unwrap();
        apply_filter(&program).unwrap();
        command.output().unwrap()
    };
    Run::of(&std::thread::spawn(confined).join().unwrap())
}

#[test]
fn without_landlock_a_server_that_is_to_be_confined_is_not_started() {
    for mode in ["read-only", "workspace"] {
        let context = intruded(mode, true);
        let file = context.path("outside/new");
        let on = disguised(&file.display().to_string());
        let run = without_landlock(&context, &["call", "intruder/try", "what=write", &on]);
        assert_eq!(run.code, 4, "{}", run.all());
        assert!(run.stderr.contains(NONE), "{}", run.stderr);
        assert!(!file.exists());
        let doctor = without_landlock(&context, &["doctor", "--json"]);
        assert!(
            doctor.stdout.contains("\"no-sandbox\""),
            "{}",
            doctor.stdout
        );
    }
    // A server that needs no more than is available is started.
    let context = intruded("off", false);
    let run = without_landlock(&context, &["call", "intruder/try", "what=pair"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "done\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn other_processes_and_the_kernel_are_out_of_reach() {
    let context = intruded("read-only", true);
    let own = std::process::id().to_string();
    check(&context, "trace", &own, "EPERM");
    check(&context, "namespace", "", "EPERM");
    check(&context, "ring", "", "EPERM");
    check(&context, "read", format!("/proc/{own}/environ"), "EACCES");
    if cfg!(target_arch = "x86_64") {
        check(&context, "clone_namespace", "", "EPERM");
    }
}

#[test]
fn no_pair_of_sockets_leads_to_a_socket_in_a_file() {
    let context = intruded("read-only", true);
    let path = context.path("outside/bus");
    let bus = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    bus.set_nonblocking(true).unwrap();
    let listening = context.path("outside/listener");
    let _listener = UnixListener::bind(&listening).unwrap();
    for (mode, network) in [
        ("read-only", true),
        ("read-only", false),
        ("workspace", false),
        ("own-files", false),
    ] {
        let context = intruded(mode, network);
        check(&context, "pair_to", &path, "EPERM");
        check(&context, "raw_pair_to", &path, "EPERM");
        // These kinds still work, for a process and its children.
        check(&context, "stream_pair_to", &listening, "EISCONN");
        check(&context, "pair_of_packets_to", &path, "intruder");
    }
    // This needs no Landlock.
    let context = intruded("off", false);
    for what in ["pair_to", "raw_pair_to", "unix"] {
        let run = attempt(&context, what, &path.display().to_string());
        assert_eq!(run.stdout.trim_end(), "EPERM", "{what}\n{}", run.stderr);
    }
    assert!(bus.recv(&mut [0; 100]).is_err(), "something arrived");
}

/// A process outside the sandbox, killed on drop.
struct Bystander(std::process::Child);

impl Bystander {
    fn new() -> Self {
        Self(
            std::process::Command::new("sleep")
                .arg("1000")
                .spawn()
                .unwrap(),
        )
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn outside_processes_are_not_limited_slowed_down_or_signalled() {
    let bystander = Bystander::new();
    let outside = bystander.id();
    for mode in ["read-only", "own-files"] {
        let context = intruded(mode, true);
        for what in [
            "limit",
            "priority",
            "processors",
            "scheduler",
            "disk_priority",
        ] {
            check(&context, what, &outside, "EPERM");
        }
        check(&context, "priority_of_user", "", "EPERM");
        for what in ["own_limit", "own_priority", "own_processors"] {
            check(&context, what, "", "done");
        }
        // Landlock restricts signals from version 6 on.
        let expected = if *LANDLOCK >= 6 { "EPERM" } else { "done" };
        check(&context, "kill", &outside, expected);
    }
}

#[test]
fn no_socket_without_a_file_leads_out() {
    use std::os::linux::net::SocketAddrExt as _;
    let name = format!("switchboard-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    for network in [true, false] {
        let context = intruded("read-only", network);
        check(&context, "abstract", &name, "EPERM");
    }
    // In this mode the user's sockets are reachable; Landlock could deny it, and does not.
    let context = intruded("own-files", true);
    check(&context, "abstract", &name, "done");
}

const CHANGES: [&str; 9] = [
    "chmod",
    "chmod_through_descriptor",
    "chmod_through_folder",
    "chmod_without_following",
    "chmod_through_proc",
    "set_user_id",
    "chown",
    "touch",
    "touch_through_descriptor",
];

/// The mode, owner and modification time of a file.
fn metadata(path: &Path) -> (u32, u32, i64) {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = path.metadata().unwrap();
    (metadata.mode(), metadata.uid(), metadata.mtime())
}

#[test]
fn the_mode_owner_and_times_of_what_cannot_be_written_stay() {
    for mode in ["read-only", "workspace"] {
        let context = intruded(mode, true);
        for file in ["outside/file", "home/.profile", "bin/npx"] {
            context.write(file, "x");
            let path = context.path(file);
            let before = metadata(&path);
            for what in CHANGES {
                check(&context, what, &path, "EPERM");
            }
            check(&context, "attribute", &path, "ENOTSUP");
            check(&context, "immutable", &path, "EPERM");
            check(&context, "lease", &path, "EPERM");
            assert_eq!(metadata(&path), before, "{mode} {file}");
        }
        // Attempts that need an open descriptor do not apply to files it cannot open.
        for file in ["state/tokens/secret", "config/mcp.toml"] {
            let path = context.path(file);
            let before = metadata(&path);
            for what in [
                "chmod",
                "chmod_through_folder",
                "chown",
                "touch",
                "set_user_id",
            ] {
                check(&context, what, &path, "EPERM");
            }
            assert_eq!(metadata(&path), before, "{mode} {file}");
        }
    }
}

#[test]
fn the_mode_owner_and_times_of_its_own_files_can_be_changed() {
    use std::os::unix::fs::MetadataExt as _;
    let context = intruded("workspace", true);
    let path = context.path("project/src/main.rs");
    for what in CHANGES {
        let refused = matches!(what, "set_user_id");
        check(
            &context,
            what,
            &path,
            if refused { "EPERM" } else { "done" },
        );
    }
    if *HAS_LANDLOCK {
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o640);
        assert_eq!(path.metadata().unwrap().mtime(), 0);
    }
    check(
        &context,
        "make_set_user_id",
        context.path("project/src/new"),
        "EPERM",
    );
    // A link in the workspace to a file outside counts as that file.
    std::os::unix::fs::symlink(context.path("outside/file"), context.path("project/link")).unwrap();
    check(&context, "chmod", context.path("project/link"), "EPERM");
    // Approved files stay unchanged.
    context.write("project/.mcp.toml", "# approved\n");
    check(
        &context,
        "chmod",
        context.path("project/.mcp.toml"),
        "EPERM",
    );
    assert_eq!(
        context.path("outside/file").metadata().unwrap().mode() & 0o777,
        0o644
    );
}

#[test]
fn our_folders_are_neither_listed_nor_watched() {
    let context = intruded("read-only", true);
    for folder in ["state", "state/tokens", "config"] {
        check(&context, "listing", context.path(folder), "EACCES");
        check(&context, "watch", context.path(folder), "EACCES");
    }
    check(&context, "listing", context.path("outside"), r#"["file"]"#);
    check(&context, "watch", context.path("outside"), "done");
    check(
        &context,
        "link",
        context.path("state/tokens/secret"),
        "EXDEV",
    );
}

#[test]
fn unknown_system_calls_fail() {
    for (mode, network) in [("read-only", true), ("own-files", true), ("off", false)] {
        let context = intruded(mode, network);
        let run = attempt(&context, "call", "471");
        if *HAS_LANDLOCK || mode == "off" {
            assert_eq!(run.stdout.trim_end(), "ENOSYS", "{mode}: {}", run.stderr);
        }
    }
}

#[test]
fn the_doctor_says_that_it_was_the_sandbox() {
    let context = intruded("read-only", true);
    let file = context.read("config/mcp.toml");
    let start = file.find("args").unwrap();
    let end = start + file[start..].find('\n').unwrap();
    let write = format!(
        "args = [\"-c\", \"open('{}', 'w')\"]",
        context.path("outside/new").display()
    );
    context.write("config/mcp.toml", file.replace(&file[start..end], &write));
    let run = context.line("doctor --json");
    let code = if *HAS_LANDLOCK {
        "sandbox-refused"
    } else {
        "no-sandbox"
    };
    assert!(
        run.stdout.contains(&format!("\"{code}\"")),
        "{}",
        run.stdout
    );
    assert!(!context.exists("outside/new"));
}

#[test]
fn a_child_that_left_the_session_ends_with_the_server() {
    let context = intruded("read-only", true);
    let run = attempt(&context, "stay", "");
    if *HAS_LANDLOCK {
        let child = run.stdout.trim_end();
        assert!(child.parse::<u32>().is_ok(), "{}", run.all());
        let child = Path::new("/proc").join(child);
        eventually("the end of the child", || !child.exists());
    } else {
        assert!(run.stderr.contains(NONE), "{}", run.stderr);
    }
}

#[test]
fn a_server_can_query_its_policy() {
    let context = intruded("workspace", false);
    let run = attempt(&context, "told", "");
    if !*HAS_LANDLOCK {
        assert!(run.stderr.contains(NONE), "{}", run.stderr);
        return;
    }
    let policy: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let project = context.path("project").display().to_string();
    assert_eq!(
        policy,
        serde_json::json!([{
            "jsonrpc": "2.0",
            "method": "codex/sandbox-state/update",
            "params": {
                "sandboxPolicy": {
                    "type": "workspace-write",
                    "writable_roots": [project],
                    "network_access": false,
                    "exclude_tmpdir_env_var": false,
                    "exclude_slash_tmp": true,
                },
                "codexLinuxSandboxExe": null,
                "sandboxCwd": project,
            },
        }])
    );
}

#[test]
fn no_variable_of_ours_reaches_a_server() {
    let context = intruded("off", true);
    let mut command = context.command();
    command
        .env("CANARY_TOKEN", "canary-of-the-environment")
        .args(["call", "intruder/try", "what=environment"]);
    let run = Run::of(&command.output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("PATH"), "{}", run.stdout);
    assert!(!run.stdout.contains("canary"), "{}", run.stdout);
    // How deep Switchboard is nested in itself, and the variable by which the supervisor identifies its processes. They
    // reveal nothing else.
    let seen: serde_json::Map<_, _> = serde_json::from_str(&run.stdout).unwrap();
    let ours: Vec<_> = seen
        .keys()
        .filter(|name| name.starts_with("SWITCHBOARD_"))
        .collect();
    assert_eq!(ours, ["SWITCHBOARD_DEPTH", "SWITCHBOARD_SERVER_ID"]);
}
