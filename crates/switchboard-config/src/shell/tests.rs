use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

/// Commands of a line, words joined by `|`, expanding words prefixed with `?`.
fn shown(line: &str) -> Option<Vec<String>> {
    let line = plain(line)?;
    let command = |command: &SimpleCommand| {
        let words = command.words.iter().map(|word| {
            let mark = if word.is_literal { "" } else { "?" };
            format!("{mark}{}", word.text)
        });
        words.collect::<Vec<_>>().join("|")
    };
    Some(line.commands.iter().map(command).collect())
}

#[test]
fn plain_commands_are_read_as_a_shell_reads_them() {
    let check = |line: &str, expected: &[&str]| {
        assert_eq!(shown(line).as_deref().unwrap_or(&[]), expected, "{line:?}");
    };
    check("git status", &["git|status"]);
    check("  git\t status  ", &["git|status"]);
    check("git 'a b' \"c d\" e\\ f", &["git|a b|c d|e f"]);
    check("g'i't \"sta\"tus", &["git|status"]);
    check("git ''", &["git|"]);
    check("git \"a\\\"b\\x\"", &["git|a\"b\\x"]);
    check("git \\\n status", &["git|status"]);
    check(
        "ls *.rs ~ $HOME \"$HOME\" ${HOME}",
        &["ls|?*.rs|?~|?$HOME|?$HOME|?${HOME}"],
    );
    check("git status # not this; rm", &["git|status"]);
    check("git a#b", &["git|a#b"]);
    check(
        "a; b && c || d | e & f\ng",
        &["a", "b", "c", "d", "e", "f", "g"],
    );
    check("a &&\n b", &["a", "b"]);
    check(
        "git status 2>&1 >/dev/null 2> /dev/null </dev/null &>/dev/null",
        &["git|status"],
    );
    check("git log HEAD^! a=b", &["git|log|HEAD^!|a=b"]);
    check("\\if x", &["if|x"]);
    check("echo größe", &["echo|größe"]);
}

#[test]
fn what_cannot_be_told_is_no_plain_command() {
    for line in [
        "",
        "  ",
        "# only this",
        ";",
        "a ;; b",
        "a &>&5 b",
        "a &>&5",
        "a &>/dev/null b",
        "a && ",
        "a |",
        "&& a",
        "'open",
        "\"open",
        "a\\",
        "a $(b)",
        "a `b`",
        "a \"$(b)\"",
        "a \"`b`\"",
        "a <(b)",
        "a >(b)",
        "a ${b:-c}",
        "a ${b@P}",
        "a $((1))",
        "a $[1]",
        "a $'b'",
        "a $\"b\"",
        "a $",
        "(a)",
        "{ a; }",
        "a() { b; }",
        "function a { b; }",
        "if a; then b; fi",
        "! a",
        "time a",
        "[[ a ]]",
        "A=b c",
        "A+=b c",
        "A[0]=b c",
        "a > b",
        "a >> b",
        "a < b",
        "a 2> b",
        "a >| b",
        "a &> b",
        "a >& b",
        "a <<< b",
        "a << b\nb",
        "a {b,c}",
        "a\r",
        "a\rb",
        "a\u{a0}b",
        "a\u{3000}b",
        "a\u{200b}b",
        "a\0",
        "'a\0'",
        "a \u{1b}[0m",
        "a 100>&1",
        "coproc a",
        "for a in b; do c; done",
        "case a in b) c;; esac",
        "a >/dev/null/../x",
        "a > \"$B\"",
        "a >&b",
        "a <&-",
    ] {
        assert_eq!(shown(line), None, "{line:?}");
    }
}

#[test]
fn a_command_begins_with_literal_words_only() {
    let check = |line: &str, prefix: &[&str], expected: bool| {
        let line = plain(line).unwrap();
        assert_eq!(
            line.single()
                .is_some_and(|command| command.begins_with(prefix)),
            expected
        );
    };
    check("git status -s", &["git", "status"], true);
    check("git status-x", &["git", "status"], false);
    check("git $X", &["git", "status"], false);
    check("git *", &["git", "*"], false);
    check("git '*'", &["git", "*"], true);
    check("git", &["git", "status"], false);
    check("git status", &[], false);
    check("git status; git status", &["git", "status"], false);
}

#[test]
fn every_command_of_a_line_is_found() {
    let check = |line: &str| {
        let parts = parts(line);
        let is_found = parts
            .commands
            .iter()
            .any(|part| part.may_begin_with(&["rm"]) != Some(false));
        assert!(is_found || !parts.is_whole, "{line:?}: {parts:?}");
    };
    for line in [
        "rm x",
        "ls; rm x",
        "ls && rm x",
        "ls || rm x",
        "ls | rm x",
        "ls & rm x",
        "ls\nrm x",
        "(rm x)",
        "{ rm x; }",
        "a $(rm x)",
        "a `rm x`",
        "a \"$(rm x)\"",
        "a \"`rm x`\"",
        "a <(rm x)",
        "a >(rm x)",
        "a ${b:-$(rm x)}",
        "if rm x; then y; fi",
        "if a; then rm x; fi",
        "for a in b; do rm x; done",
        "while rm x; do y; done",
        "! rm x",
        "A=b rm x",
        "A=$(b) rm x",
        "/bin/rm x",
        "\\rm x",
        "'rm' x",
        "r''m x",
        "RM x",
        "r\\\nm x",
        "$'rm' x",
        "$X x",
        "/bin/r? x",
        "r{m,} x",
        "sudo rm x",
        "sudo -u a rm x",
        "env A=b rm x",
        "xargs rm",
        "find . -exec rm {} ;",
        "sh -c 'rm x'",
        "bash -c \"ls; rm x\"",
        "eval 'rm x'",
        "sh <<< 'rm x'",
        "bash <<EOF\nrm x\nEOF\n",
        "cat <<EOF\n$(rm x)\nEOF\n",
        "f() { rm x; }; f",
        "function f { rm x; }",
        ">/dev/null rm x",
        "2>&1 rm x",
        "</dev/null rm x",
        "time -p rm x",
        "case a in a) rm x;; esac",
        "echo $(case a in a) rm x;; esac)",
        "echo $((1<<a))\nrm x\na\n",
        "a[1<<b]=c\nrm x\nb\n",
        "`echo \\`rm x\\``",
        "timeout 5 rm x",
        "trap 'rm x' EXIT",
        "cat <<'E'\n'\nE\nrm x",
    ] {
        check(line);
    }
}

#[test]
fn what_is_only_text_is_no_command() {
    for line in [
        "git commit -m 'rm x'",
        "echo rm",
        "echo \"rm x\"",
        "cat > a <<'EOF'\nrm x; don't\nEOF\n",
        "echo # rm x",
        "echo \\; rm",
        "printf '%s' '$(rm x)'",
    ] {
        let parts = parts(line);
        let is_found = parts
            .commands
            .iter()
            .any(|part| part.may_begin_with(&["rm"]) != Some(false));
        assert!(!is_found && parts.is_whole, "{line:?}: {parts:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_can_be_read(line in any::<String>()) {
        let _ = plain(&line);
        let _ = parts(&line);
        let _ = offered_prefix(&line);
    }

    #[test]
    fn what_is_plain_is_found(line in "[ab;|&<>()$`'\"\\\\ \n{}#=!*1]{0,24}") {
        check_found(&line);
    }
}

/// Checks that every plain command of a line is among its parts.
fn check_found(line: &str) {
    let Some(plain) = plain(line) else { return };
    let parts = parts(line);
    assert!(parts.is_whole, "{line:?}: {parts:?}");
    for command in &plain.commands {
        let words = || command.words.iter().map(|word| &word.text);
        let is_same = |part: &Part| part.words.iter().map(|word| &word.text).eq(words());
        assert!(
            parts.commands.iter().any(is_same),
            "{line:?}: {command:?} in {parts:?}"
        );
    }
}

#[test]
fn what_was_found_by_fuzzing_is_found() {
    for line in [
        "${A}",
        "!\"\"",
        "\\! x",
        "'!' '!' x",
        "\"do\"",
        "a '!'",
        "a &>/dev/null; b",
    ] {
        assert!(plain(line).is_some(), "{line:?}");
        check_found(line);
    }
}

/// Words of each call, as parsed by bash, for lines in which every command is `argv`. `None` if bash is not installed.
fn by_bash(line: &str) -> Option<Vec<Vec<String>>> {
    let script = "set -f; argv() { for word in \"$@\"; do printf '%s\\0' \"$word\"; done; printf '\\1\\0'; }; eval \"$1\"";
    let folder = tempfile::tempdir().unwrap();
    // Resolved first, as its own PATH is set to an empty folder.
    let paths = std::env::var_os("PATH")?;
    let bash = std::env::split_paths(&paths)
        .map(|folder| folder.join("bash"))
        .find(|bash| bash.is_file())?;
    let output = Command::new(bash)
        .args(["--norc", "--noprofile", "-c", script, "bash", line])
        .env_clear()
        .env("PATH", "/nowhere")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut calls = vec![Vec::new()];
    for word in text.split_terminator('\0') {
        if word == "\u{1}" {
            calls.push(Vec::new());
        } else if let Some(call) = calls.last_mut() {
            call.push(word.to_owned());
        }
    }
    calls.pop();
    Some(calls)
}

#[test]
fn bash_reads_plain_lines_the_same() {
    assert_eq!(
        by_bash("argv 'a b'"),
        Some(vec![vec!["a b".to_owned()]]),
        "this test needs bash"
    );
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    // Separated only by `;`, so that every command runs and the outputs are in order.
    let word = "[ab'\"\\\\ \t\n#=!^%+,./:@_\\-1é$]{0,10}";
    let line = prop::collection::vec(word, 1..4);
    runner
        .run(&line, |lines| {
            let line = lines
                .iter()
                .fold(String::new(), |all, line| all + "argv " + line + "; ");
            let Some(plain) = plain(&line) else {
                return Ok(());
            };
            let is_certain = plain.commands.iter().all(|command| {
                command.words.iter().all(|word| word.is_literal)
                    && command
                        .words
                        .first()
                        .is_some_and(|word| word.text == "argv")
            });
            if is_certain {
                let words = |command: &SimpleCommand| {
                    command
                        .words
                        .iter()
                        .skip(1)
                        .map(|word| word.text.clone())
                        .collect::<Vec<_>>()
                };
                let found: Vec<Vec<String>> = plain.commands.iter().map(words).collect();
                prop_assert_eq!(by_bash(&line).unwrap_or_default(), found, "{:?}", line);
            }
            Ok(())
        })
        .unwrap();
}
