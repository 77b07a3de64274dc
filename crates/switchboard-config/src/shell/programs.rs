//! What is known of programs: which run others, and which beginnings of a command line may be allowed as a whole.

/// Programs that run what their arguments or their input say, by name. A beginning of a command line with one of them
/// says nothing about what runs.
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

/// Programs whose second word says what they do, and words there that make them run something else.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "az",
    "brew",
    "bundle",
    "cargo",
    "composer",
    "conda",
    "dart",
    "dotnet",
    "flutter",
    "gcloud",
    "gh",
    "git",
    "glab",
    "go",
    "gradle",
    "helm",
    "hg",
    "jj",
    "kubectl",
    "mvn",
    "npm",
    "pip",
    "pnpm",
    "poetry",
    "rustup",
    "swift",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
    "zig",
];
const RUNNING_SUBCOMMANDS: &[&str] = &[
    "alias",
    "api",
    "bisect",
    "config",
    "create",
    "daemon",
    "debug",
    "develop",
    "difftool",
    "dlx",
    "edit",
    "eval",
    "exec",
    "extension",
    "filter-branch",
    "foreach",
    "generate",
    "grep",
    "init",
    "instaweb",
    "mergetool",
    "plugin",
    "rebase",
    "repl",
    "run",
    "run-script",
    "send-email",
    "set",
    "shell",
    "ssh",
    "submodule",
    "tool",
    "toolchain",
    "util",
    "with",
    "x",
];

/// Programs that only look, and run nothing that their arguments say.
const LOOKING: &[&str] = &[
    "basename", "cat", "cmp", "df", "dirname", "du", "file", "grep", "head", "id", "ls", "nl",
    "ps", "pwd", "readlink", "realpath", "stat", "tail", "tree", "uname", "wc", "which", "whoami",
];

/// Whether a program may run what its arguments or its input say: shells, interpreters, wrappers.
pub fn may_run_others(program: &str) -> bool {
    let name = base_name(program);
    RUNNERS.binary_search(&name.as_str()).is_ok()
}

/// The name of a program without its folder, version and extension, in lower case.
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

/// The beginning of a command line that a person may allow with any further arguments; `None` where that would say too
/// little about what runs. The program is as it is written: a path is none that is known.
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
    if WITH_SUBCOMMANDS.binary_search(&name).is_err() {
        return None;
    }
    let subcommand = command.words.get(1).filter(|word| word.is_literal)?;
    let is_word = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_lowercase())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let is_known = is_word(&subcommand.text)
        && RUNNING_SUBCOMMANDS
            .binary_search(&subcommand.text.as_str())
            .is_err();
    is_known.then(|| vec![name.to_owned(), subcommand.text.clone()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_order() {
        for list in [RUNNERS, WITH_SUBCOMMANDS, RUNNING_SUBCOMMANDS, LOOKING] {
            for pair in list.windows(2) {
                assert!(pair[0] < pair[1], "{pair:?}");
            }
        }
        for program in LOOKING.iter().chain(WITH_SUBCOMMANDS) {
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
        check("git log --oneline -5", Some("git log"));
        check("cargo test -p x", Some("cargo test"));
        check("ls -la src", Some("ls"));
        check("git status 2>&1", Some("git status"));
        for line in [
            "git",
            "git -C /x status",
            "git -c core.pager=x log",
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
