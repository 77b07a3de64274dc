//! The tables of the documentation agree with the program.

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
fn every_key_stands_in_the_documentation() {
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
fn every_command_stands_in_the_documentation() {
    let text = std::fs::read_to_string(workspace().join("docs/cli.md")).unwrap();
    let context = TestContext::new();
    for group in ["", "mcp", "trust", "pins", "config"] {
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
