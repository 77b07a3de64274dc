//! Known programs: which run others, and which command prefixes may be allowed as a whole.

/// Programs that run commands from their arguments or input. A prefix with one of them does not determine what runs.
const RUNNERS: &[&str] = &[
    ".",
    "[",
    "ansible",
    "ash",
    "at",
    "awk",
    "bash",
    "batch",
    "builtin",
    "bun",
    "bunx",
    "busybox",
    "capsh",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "cron",
    "crontab",
    "csh",
    "dash",
    "dbus-run-session",
    "deno",
    "doas",
    "docker",
    "ed",
    "elvish",
    "emacs",
    "env",
    "eval",
    "ex",
    "exec",
    "expect",
    "fakeroot",
    "find",
    "firejail",
    "fish",
    "flock",
    "gawk",
    "gdb",
    "ionice",
    "irb",
    "java",
    "jshell",
    "ksh",
    "ld.so",
    "less",
    "lldb",
    "lua",
    "luajit",
    "make",
    "man",
    "mawk",
    "mksh",
    "more",
    "nawk",
    "nc",
    "ncat",
    "netcat",
    "nice",
    "nix-shell",
    "node",
    "nodejs",
    "nohup",
    "npx",
    "nsenter",
    "nvim",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pipx",
    "pkexec",
    "podman",
    "powershell",
    "prlimit",
    "proxychains",
    "pwsh",
    "pypy",
    "python",
    "rbash",
    "rlwrap",
    "rscript",
    "ruby",
    "runuser",
    "script",
    "sed",
    "service",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "sh",
    "socat",
    "source",
    "ssh",
    "sshpass",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "tar",
    "taskset",
    "tclsh",
    "tcsh",
    "time",
    "timeout",
    "tmux",
    "toybox",
    "trap",
    "ts-node",
    "tsx",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "vi",
    "view",
    "vim",
    "watch",
    "wine",
    "wish",
    "xargs",
    "xonsh",
    "zsh",
];

/// Subcommands that stay harmless with any further arguments: none writes to given paths, changes other machines, or
/// exists to run a command. Builds and tests run the project's own code, as they do without further arguments.
const OFFERED: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "build", "check", "clippy", "doc", "fmt", "metadata", "test", "tree",
        ],
    ),
    ("dotnet", &["build", "test"]),
    (
        "git",
        &[
            "add",
            "blame",
            "branch",
            "describe",
            "ls-files",
            "ls-tree",
            "merge-base",
            "rev-parse",
            "stash",
            "status",
            "switch",
        ],
    ),
    ("go", &["build", "fmt", "list", "test"]),
    ("gradle", &["build", "check", "test"]),
    ("hg", &["status"]),
    ("jj", &["status"]),
    ("kubectl", &["describe", "get", "logs"]),
    ("mvn", &["compile", "package", "test", "verify"]),
    ("npm", &["ls", "outdated", "test"]),
    ("pnpm", &["ls", "outdated", "test"]),
    ("swift", &["build", "test"]),
];

/// Programs that only report on files and the machine, and neither show file contents nor write.
const LOOKING: &[&str] = &[
    "basename", "df", "dirname", "du", "id", "ls", "pwd", "readlink", "realpath", "stat", "uname",
    "wc", "which", "whoami",
];

/// Whether a program may run commands from its arguments or input: shells, interpreters, wrappers.
pub fn may_run_others(program: &str) -> bool {
    let name = base_name(program);
    RUNNERS.binary_search(&name.as_str()).is_ok()
}

/// Program name without folder, version and extension, in lower case.
fn base_name(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    // `python3.11`, `lua5.4`, `perl5`, `clang-17`.
    let bare =
        name.trim_end_matches(|last: char| last.is_ascii_digit() || matches!(last, '.' | '-'));
    let bare = if bare.is_empty() { name } else { bare };
    bare.to_owned()
}

/// The command prefix that the user may allow with any further arguments; `None` if it would not determine what runs.
/// Programs given by path are unknown.
pub fn offered_prefix(line: &str) -> Option<Vec<String>> {
    let line = super::plain(line)?;
    let command = line.single()?;
    let program = command.words.first().filter(|word| word.is_literal)?;
    if may_run_others(&program.text) {
        return None;
    }
    let name = program.text.as_str();
    if LOOKING.binary_search(&name).is_ok() {
        return Some(vec![name.to_owned()]);
    }
    let (_, offered) = OFFERED.iter().find(|(program, _)| *program == name)?;
    let subcommand = command.words.get(1).filter(|word| word.is_literal)?;
    offered
        .contains(&subcommand.text.as_str())
        .then(|| vec![name.to_owned(), subcommand.text.clone()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_order() {
        for list in [RUNNERS, LOOKING] {
            for pair in list.windows(2) {
                assert!(pair[0] < pair[1], "{pair:?}");
            }
        }
        let offered = OFFERED.iter().map(|(program, _)| program);
        for program in LOOKING.iter().chain(offered) {
            assert!(!may_run_others(program), "{program}");
        }
    }

    #[test]
    fn only_beginnings_that_say_what_runs_are_offered() {
        let check = |line: &str, expected: Option<&str>| {
            let found = offered_prefix(line).map(|words| words.join(" "));
            assert_eq!(found.as_deref(), expected, "{line}");
        };
        check("git status", Some("git status"));
        check("git status --short", Some("git status"));
        check("cargo test -p x", Some("cargo test"));
        check("ls -la src", Some("ls"));
        check("git status 2>&1", Some("git status"));
        for line in [
            "git",
            "git -C /x status",
            "git -c core.pager=x log",
            "git log --output=x",
            "git diff",
            "git push",
            "cat x",
            "git config alias.x '!sh'",
            "git bisect run sh",
            "git submodule foreach x",
            "git $X",
            "git status; ls",
            "git status | sh",
            "git status && ls",
            "git status > file",
            "git status $(x)",
            "git status `x`",
            "X=1 git status",
            "/tmp/git status",
            "./git status",
            "sh -c ls",
            "/bin/sh -c ls",
            "bash script",
            "python3.11 -c x",
            "python -c x",
            "env ls",
            "sudo ls",
            "xargs ls",
            "find . -name x",
            "npx x",
            "npm run x",
            "npm exec x",
            "cargo run",
            "go run x",
            "uv run x",
            "docker run x",
            "kubectl exec x",
            "rm x",
            "curl https://a",
            "node -e x",
            "eval ls",
            "exec ls",
            "time ls",
            "command ls",
            "unknown-program x",
            "",
        ] {
            check(line, None);
        }
    }
}
