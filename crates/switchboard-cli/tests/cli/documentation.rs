//! Checks that the tables in the documentation agree with the program.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use switchboard_config::entry::keys::{KEYS, Key, OAUTH_KEYS, SANDBOX_KEYS, TOOL_KEYS};
use switchboard_config::settings::Setting;

use crate::support::{TestContext, workspace};

fn table(keys: &[Key]) -> String {
    let mut table = "| key | meaning |\n|---|---|\n".to_owned();
    for key in keys {
        let _ = writeln!(table, "| `{}` | {} |", key.name, key.about);
    }
    table
}

#[test]
fn every_key_is_documented() {
    let text = std::fs::read_to_string(workspace().join("docs/configuration.md")).unwrap();
    let entry: Vec<Key> = KEYS.iter().map(|(_, key)| *key).collect();
    let settings: Vec<Key> = Setting::all().map(|setting| *setting.key()).collect();
    for (name, keys) in [
        ("servers", entry.as_slice()),
        ("tools", TOOL_KEYS),
        ("oauth", OAUTH_KEYS),
        ("sandbox", SANDBOX_KEYS),
        ("settings", &settings),
    ] {
        let table = table(keys);
        assert!(
            text.contains(&table),
            "docs/configuration.md must have this table of {name}:\n\n{table}"
        );
    }
}

#[test]
fn every_command_is_documented() {
    let text = std::fs::read_to_string(workspace().join("docs/cli.md")).unwrap();
    let context = TestContext::new();
    for group in [
        "",
        "mcp",
        "trust",
        "pins",
        "config",
        "permissions",
        "clients",
    ] {
        let help = context.line(&format!("{group} --help")).stdout;
        let commands = help
            .split("Commands:\n")
            .nth(1)
            .unwrap()
            .split("\n\n")
            .next()
            .unwrap();
        for line in commands.lines() {
            let Some(name) = line
                .strip_prefix("  ")
                .and_then(|line| line.split(' ').next())
            else {
                continue;
            };
            if name.is_empty() || name == "help" {
                continue;
            }
            let command = format!("switchboard {group} {name}").replace("  ", " ");
            assert!(text.contains(&command), "docs/cli.md must show `{command}`");
        }
    }
    for code in ["0", "1", "2", "3", "4", "5", "6", "7", "124", "130"] {
        assert!(
            text.contains(&format!("| {code} |")),
            "docs/cli.md must list exit code {code}"
        );
    }
}

/// All words of a text that start with `--`.
fn flags(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    text.split(|letter| !is_part(letter))
        .filter(|word| word.starts_with("--") && word.len() > 3)
        .collect()
}

#[test]
fn the_documentation_names_only_flags_that_exist() {
    let context = TestContext::new();
    let root = context.line("--help").stdout;
    let mut help = root.clone() + &context.line("help --help").stdout;
    let names = |help: &str| -> Vec<String> {
        let commands = help.split("Commands:\n").nth(1).unwrap_or_default();
        let lines = commands.lines().take_while(|line| line.starts_with("  "));
        lines
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .filter(|name| name != "help")
            .collect()
    };
    for command in names(&root) {
        let text = context.line(&format!("{command} --help")).stdout;
        for inner in names(&text) {
            help.push_str(&context.line(&format!("{command} {inner} --help")).stdout);
        }
        help.push_str(&text);
    }
    let known = flags(&help);
    assert!(known.contains("--dry-run"), "{known:?}");
    let mut unknown = Vec::new();
    for entry in std::fs::read_dir(workspace().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| line.contains("switchboard ")) {
            // What follows ` -- ` is the command line of a server.
            let ours = line.split(" -- ").next().unwrap_or(line);
            let wrong = flags(ours).into_iter().filter(|flag| !known.contains(flag));
            unknown.extend(wrong.map(|flag| format!("{}: {flag} in: {line}", path.display())));
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn the_documentation_lists_the_codes_of_doctor() {
    let text = std::fs::read_to_string(workspace().join("docs/doctor.md")).unwrap();
    let table = text.split("| about | codes |").nth(1).unwrap();
    let table = table.split("\n\n").next().unwrap();
    let table = table.replace(", and the codes of `config check`", "");
    let documented: BTreeSet<&str> = table.split('`').skip(1).step_by(2).collect();
    assert!(documented.len() > 80, "{documented:?}");
    let mut sources = String::new();
    let folder = workspace().join("crates/switchboard/src/doctor");
    for folder in [folder.join("causes"), folder] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && path.file_name().is_some_and(|name| name != "tests.rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                sources.push_str(source.split("\nmod tests {").next().unwrap_or_default());
            }
        }
    }
    let command = workspace().join("crates/switchboard-cli/src/commands/doctor.rs");
    sources.push_str(&std::fs::read_to_string(command).unwrap());
    let literals: BTreeSet<&str> = sources.split('"').collect();
    let missing: Vec<_> = documented.difference(&literals).collect();
    assert!(missing.is_empty(), "not a code of doctor: {missing:?}");
    let sources = sources.replace("#[error(", "");
    let starts = ["error(", "finding(", "code: "];
    for start in starts {
        for piece in sources.split(start).skip(1) {
            let Some(code) = piece.trim_start().strip_prefix('"') else {
                continue;
            };
            let code = code.split('"').next().unwrap_or_default();
            assert!(
                code.is_empty() || documented.contains(code),
                "docs/doctor.md must list {code}"
            );
        }
    }
}
