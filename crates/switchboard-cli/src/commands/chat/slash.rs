//! Slash commands of the chat.

use strsim::damerau_levenshtein;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Mcp,
    Tools,
    Cost,
    Status,
    Context,
    Agents,
    Config,
    Permissions,
    Diff,
    Undo,
    Export,
    Call,
    Resume,
    New,
    Compact,
    Model,
    Show,
    Theme,
    Vi,
    Exit,
}

/// A command's name and description.
pub(super) struct Entry {
    pub(super) command: Command,
    pub(super) name: &'static str,
    aliases: &'static [&'static str],
    pub(super) arguments: &'static str,
    pub(super) about: &'static str,
}

const fn entry(
    command: Command,
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: &'static str,
    about: &'static str,
) -> Entry {
    Entry {
        command,
        name,
        aliases,
        arguments,
        about,
    }
}

/// All commands, in display order.
pub(super) const COMMANDS: &[Entry] = &[
    entry(Command::Help, "help", &["?"], "", "show this help"),
    entry(
        Command::Mcp,
        "mcp",
        &[],
        "",
        "show the servers, and choose what to do with one",
    ),
    entry(
        Command::Tools,
        "tools",
        &[],
        "",
        "list the tools of all servers and their token costs",
    ),
    entry(
        Command::Cost,
        "cost",
        &["usage"],
        "",
        "show the tokens and the cost of this session",
    ),
    entry(
        Command::Call,
        "call",
        &[],
        "TOOL [ARGUMENTS]",
        "call a tool yourself, without the model",
    ),
    entry(
        Command::Status,
        "status",
        &[],
        "",
        "show the model, the session, servers and limits",
    ),
    entry(
        Command::Context,
        "context",
        &[],
        "",
        "show what fills the context window",
    ),
    entry(
        Command::Agents,
        "agents",
        &[],
        "",
        "show the sub-agents and what they did last",
    ),
    entry(
        Command::Permissions,
        "permissions",
        &[],
        "[revoke N]",
        "show the rules and what this session was granted",
    ),
    entry(
        Command::Config,
        "config",
        &[],
        "",
        "show the configuration and its sources",
    ),
    entry(
        Command::Diff,
        "diff",
        &["changes"],
        "",
        "show the files changed in this session",
    ),
    entry(
        Command::Undo,
        "undo",
        &[],
        "[N]",
        "undo the last change of a file, or change N",
    ),
    entry(
        Command::Export,
        "export",
        &[],
        "[FILE]",
        "write the conversation to a Markdown file",
    ),
    entry(
        Command::Model,
        "model",
        &[],
        "[NAME]",
        "show or change the model",
    ),
    entry(
        Command::New,
        "new",
        &["clear", "reset"],
        "",
        "start a new session",
    ),
    entry(
        Command::Resume,
        "resume",
        &["sessions"],
        "[ID]",
        "resume a session",
    ),
    entry(
        Command::Show,
        "show",
        &["result"],
        "[N]",
        "show the result of a call in full",
    ),
    entry(
        Command::Theme,
        "theme",
        &[],
        "[NAME]",
        "show or change the colours",
    ),
    entry(
        Command::Vi,
        "vi",
        &["vim"],
        "",
        "switch between vi and Emacs keys",
    ),
    entry(Command::Compact, "compact", &[], "", "compact the session"),
    entry(Command::Exit, "exit", &["quit", "q"], "", "leave"),
];

/// The meaning of a line that starts with a slash.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning<'l> {
    /// A built-in command and its arguments.
    Command(Command, &'l str),
    /// A prompt of a server and its arguments.
    Prompt(&'l str, &'l str),
    /// Unknown, with a suggestion.
    Unknown { name: &'l str, near: Option<String> },
}

/// Parses a line; `None` if it is not a command.
pub(super) fn read<'l>(line: &'l str, prompts: &[&str]) -> Option<Meaning<'l>> {
    let line = line.trim();
    let rest = line.strip_prefix('/')?;
    let (name, arguments) = match rest.split_once(char::is_whitespace) {
        Some((name, arguments)) => (name, arguments.trim()),
        None => (rest, ""),
    };
    // A path is not a command.
    if name.contains('/') {
        return None;
    }
    let named = |entry: &&Entry| entry.name == name || entry.aliases.contains(&name);
    if let Some(entry) = COMMANDS.iter().find(named) {
        return Some(Meaning::Command(entry.command, arguments));
    }
    if prompts.contains(&name) {
        return Some(Meaning::Prompt(name, arguments));
    }
    let own = COMMANDS.iter().map(|entry| entry.name);
    let near = nearest(name, own.chain(prompts.iter().copied()));
    let near = near.map(|name| format!("/{name}"));
    Some(Meaning::Unknown { name, near })
}

/// The closest known name.
pub(super) fn nearest<'n>(typed: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if typed.is_empty() || typed.len() > 128 {
        return None;
    }
    let scored = known.map(|name| {
        // A prefix or suffix of a long name counts as close.
        let is_part = name.starts_with(typed) || name.ends_with(typed);
        let distance = if is_part {
            1
        } else {
            damerau_levenshtein(typed, name)
        };
        (distance, name)
    });
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + name.len() / 4).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        let prompts = ["mcp__docs__summary", "mcp__git__review"];
        let check = |line: &str, expected: Option<Meaning<'_>>| {
            assert_eq!(read(line, &prompts), expected, "{line}");
        };
        let unknown = |name, near: Option<&str>| {
            let near = near.map(str::to_owned);
            Some(Meaning::Unknown { name, near })
        };
        check("hello", None);
        check("/etc/passwd is a file", None);
        check("/help", Some(Meaning::Command(Command::Help, "")));
        check(" /quit ", Some(Meaning::Command(Command::Exit, "")));
        check(
            "/mcp login  docs",
            Some(Meaning::Command(Command::Mcp, "login  docs")),
        );
        check(
            "/mcp__docs__summary topic=a b",
            Some(Meaning::Prompt("mcp__docs__summary", "topic=a b")),
        );
        check("/hlep", unknown("hlep", Some("/help")));
        check(
            "/mcp__docs__sumary",
            unknown("mcp__docs__sumary", Some("/mcp__docs__summary")),
        );
        check("/review", unknown("review", Some("/mcp__git__review")));
        check("/nothing-like-it", unknown("nothing-like-it", None));
        check("/", unknown("", None));
    }
}
