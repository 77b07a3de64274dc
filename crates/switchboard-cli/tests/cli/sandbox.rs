//! Servers in a sandbox that try to get out of it, each through the real program.
//!
//! On a kernel without Landlock such servers must not be started at all, which is what the tests check there.

use std::fmt::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::LazyLock;

use crate::servers::PYTHON;
use crate::support::{Run, TestContext, workspace};

/// What is said where the sandbox cannot be had.
const NONE: &str = "this kernel has no Landlock";

/// Whether this kernel has what a sandbox needs.
static HAS_LANDLOCK: LazyLock<bool> = LazyLock::new(|| {
    let context = intruded("read-only", true);
    let run = attempt(&context, "pair", "");
    assert!(run.code == 0 || run.all().contains(NONE), "{}", run.all());
    run.code == 0
});

/// A machine with a server that tries what it should not.
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

/// What it is tried on, in a form that only the server reads: permissions would refuse a path that they understand, and
/// these tests are about what stands behind them.
fn disguised(on: &str) -> String {
    let mut argument = "on=".to_owned();
    for byte in on.bytes() {
        let _ = write!(argument, "{byte:02x}");
    }
    argument
}

/// Tries something that must come to this; where there is no sandbox, nothing may come of it at all.
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

    // Its temporary files go with it.
    let made = attempt(&context, "temporary", "");
    if *HAS_LANDLOCK {
        assert_eq!(made.code, 0, "{}", made.stderr);
        assert!(!Path::new(made.stdout.trim_end()).exists());
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
    // A link that leads out is no way out.
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
fn nobody_changes_what_switchboard_goes_by_or_reads_its_secrets() {
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

    // Not even where all of it lies below the workspace.
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
        // A socket in a file leads to somebody who is in no sandbox.
        let path = open.path("outside/bus");
        let _bus = UnixListener::bind(&path).unwrap();
        check(&open, "unix", &path, "EPERM");
        check(&closed, "unix", &path, "EPERM");
    }
    // Without rules about files the network alone can be taken away, which needs no Landlock.
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

/// Runs the program as if the kernel knew nothing of Landlock.
fn without_landlock(context: &TestContext, line: &[&str]) -> Run {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

    // The number of landlock_create_ruleset, the same on every architecture, and "no such call".
    const CREATE: i64 = 444;
    const ENOSYS: u32 = 38;
    let mut command = context.command();
    command.args(line);
    // The filter stays with the thread that asks for it.
    let confined = move || {
        let rules = [(CREATE, Vec::new())].into_iter().collect();
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
    // Who asks for no more than it can give is served.
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
        assert!(!Path::new("/proc").join(child).exists());
    } else {
        assert!(run.stderr.contains(NONE), "{}", run.stderr);
    }
}

#[test]
fn a_server_that_wants_to_know_is_told_its_policy() {
    let context = intruded("workspace", false);
    let run = attempt(&context, "told", "");
    if !*HAS_LANDLOCK {
        assert!(run.stderr.contains(NONE), "{}", run.stderr);
        return;
    }
    let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let project = context.path("project").display().to_string();
    assert_eq!(
        told,
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
    // By this one the guard tells its processes from those of other servers, and it says nothing else.
    let seen: serde_json::Map<_, _> = serde_json::from_str(&run.stdout).unwrap();
    let ours: Vec<_> = seen
        .keys()
        .filter(|name| name.starts_with("SWITCHBOARD_"))
        .collect();
    assert_eq!(ours, ["SWITCHBOARD_SERVER_ID"]);
}
