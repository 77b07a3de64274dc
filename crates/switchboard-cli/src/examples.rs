//! Examples in the help of each command.

use clap::Command;

/// The path of a command, and its examples. Commands with a longer text have theirs beside their code.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "mcp add-json",
        &[r#"mcp add-json time '{"command": "uvx", "args": ["mcp-server-time"]}'"#],
    ),
    (
        "mcp remove",
        &["mcp remove time", "mcp remove time --scope user"],
    ),
    ("mcp enable", &["mcp enable time"]),
    ("mcp disable", &["mcp disable time"]),
    (
        "mcp list",
        &["mcp list", "mcp list --no-connect", "mcp list --json"],
    ),
    ("mcp get", &["mcp get time"]),
    ("mcp rename", &["mcp rename time clock"]),
    ("mcp edit", &["mcp edit time"]),
    ("mcp test", &["mcp test time"]),
    (
        "mcp login",
        &["mcp login docs", "mcp login docs --no-browser"],
    ),
    ("mcp logout", &["mcp logout docs"]),
    (
        "mcp import",
        &["mcp import --dry-run", "mcp import --from claude-code"],
    ),
    (
        "mcp export",
        &["mcp export --to cursor", "mcp export --to codex --output -"],
    ),
    ("trust list", &["trust list"]),
    (
        "trust approve",
        &["trust approve", "trust approve time --yes"],
    ),
    ("trust revoke", &["trust revoke time", "trust revoke"]),
    ("trust diff", &["trust diff"]),
    ("pins list", &["pins list", "pins list time"]),
    ("pins diff", &["pins diff time/get_current_time"]),
    (
        "pins approve",
        &[
            "pins approve time/get_current_time",
            "pins approve --all --yes",
        ],
    ),
    ("config show", &["config show", "config show --json"]),
    ("config check", &["config check"]),
    ("config schema", &["config schema"]),
    ("config path", &["config path"]),
    (
        "config set",
        &[
            "config set tool_timeout_sec 120",
            "config set time.enabled false",
        ],
    ),
    (
        "config edit",
        &["config edit", "config edit --scope project"],
    ),
    (
        "tools",
        &[
            "tools",
            "tools time",
            "tools time/get_current_time",
            "tools https://example.com/mcp",
        ],
    ),
    (
        "search",
        &["search read a web page", "search convert time --limit 3"],
    ),
    (
        "call",
        &[
            "call time/get_current_time timezone=UTC",
            "call get_current_time --timezone UTC",
            r#"call files/write '{"path": "a.txt", "content": "x"}' --dry-run"#,
            "call https://example.com/mcp search query=rust",
            "call --command 'uvx mcp-server-time' get_current_time timezone=UTC",
        ],
    ),
    ("resources", &["resources", "resources --server docs"]),
    (
        "read",
        &[
            "read docs docs://index",
            "read docs docs://logo --output logo.png",
        ],
    ),
    ("prompts", &["prompts", "prompts --server docs"]),
    (
        "prompt",
        &[
            "prompt docs/review file=src/main.rs",
            "prompt docs review file=src/main.rs",
        ],
    ),
    (
        "status",
        &["status", "status --connect", "status --connect --watch"],
    ),
    ("logs", &["logs time", "logs time --follow"]),
    ("doctor", &["doctor", "doctor time"]),
    ("permissions list", &["permissions list"]),
    (
        "permissions explain",
        &["permissions explain files/write path=a.txt"],
    ),
    (
        "permissions allow",
        &[
            "permissions allow files/read_file",
            "permissions allow time",
        ],
    ),
    ("permissions ask", &["permissions ask 'mcp__github__*'"]),
    (
        "permissions deny",
        &["permissions deny 'Bash(rm:*)' --scope local"],
    ),
    (
        "permissions remove",
        &["permissions remove files/read_file"],
    ),
    (
        "audit",
        &[
            "audit",
            "audit --since 1h --decision deny",
            "audit --server time --json",
        ],
    ),
    ("up", &["up", "up --detach", "up --http 8765"]),
    ("down", &["down"]),
    ("clients list", &["clients list", "clients list --json"]),
    (
        "clients connect",
        &[
            "clients connect --dry-run",
            "clients connect",
            "clients connect cursor --profile review",
            "clients connect claude-code --move",
        ],
    ),
    (
        "clients disconnect",
        &["clients disconnect cursor", "clients disconnect"],
    ),
    ("clients status", &["clients status"]),
    (
        "tokens create",
        &[
            "tokens create laptop",
            "tokens create ci --profile work --expires 30d",
        ],
    ),
    ("tokens list", &["tokens list", "tokens list --json"]),
    ("tokens revoke", &["tokens revoke ci"]),
    ("completions", &["completions bash", "completions zsh"]),
    (
        "help",
        &[
            "help call",
            "help scopes",
            "help --man ~/.local/share/man/man1",
        ],
    ),
    ("version", &["version"]),
];

/// Adds the examples to the commands.
pub(crate) fn added(program: Command) -> Command {
    EXAMPLES.iter().fold(program, |program, (path, lines)| {
        let path: Vec<&str> = path.split(' ').collect();
        add(program, &path, lines)
    })
}

fn add(command: Command, path: &[&str], lines: &[&str]) -> Command {
    if let Some((first, rest)) = path.split_first() {
        return command.mut_subcommand(*first, |command| add(command, rest, lines));
    }
    let lines = lines.iter().map(|line| format!("  switchboard {line}"));
    let lines: Vec<String> = lines.collect();
    command.after_help(format!("Examples:\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{argument_flags, cli};

    fn leaves(command: &Command, path: &str, found: &mut Vec<(String, String)>) {
        let children: Vec<&Command> = command
            .get_subcommands()
            .filter(|child| !child.is_hide_set() && child.get_name() != "help")
            .collect();
        for child in &children {
            leaves(child, &format!("{path} {}", child.get_name()), found);
        }
        if children.is_empty() {
            let help = command.clone().render_help().to_string();
            found.push((path.to_owned(), help));
        }
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let mut found = Vec::new();
        leaves(&cli::command(), "switchboard", &mut found);
        assert!(found.len() > 40, "{}", found.len());
        for (path, help) in found {
            let examples = help.split_once("Examples:\n");
            let (_, examples) = examples.unwrap_or_else(|| panic!("`{path}` has no examples"));
            let own = examples
                .lines()
                .map(str::trim)
                .filter(|line| line.starts_with("switchboard"));
            for line in own.filter(|line| !line.contains(['|', '<'])) {
                let words = switchboard_config::words::split(line).unwrap();
                let words = argument_flags::moved(words.into_iter().map(Into::into).collect());
                let parsed = cli::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
            }
        }
    }
}
