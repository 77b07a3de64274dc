//! What begins with a slash.

use strsim::damerau_levenshtein;

/// A command of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Mcp,
    Tools,
    Cost,
    Resume,
    New,
    Compact,
    Model,
    Exit,
}

/// A command as it is typed and told of.
pub(super) struct Entry {
    pub(super) command: Command,
    pub(super) name: &'static str,
    /// Other names of it.
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

/// All commands, in the order they are shown.
pub(super) const COMMANDS: [Entry; 9] = [
    entry(Command::Help, "help", &["?"], "", "show this"),
    entry(
        Command::Mcp,
        "mcp",
        &[],
        "",
        "the servers, and how they stand",
    ),
    entry(
        Command::Tools,
        "tools",
        &[],
        "",
        "the tools of all servers, and what each costs",
    ),
    entry(
        Command::Cost,
        "cost",
        &["usage"],
        "",
        "tokens of this session, and of each server",
    ),
    entry(
        Command::Model,
        "model",
        &[],
        "[NAME]",
        "the model, or another one from now on",
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
    entry(Command::Compact, "compact", &[], "", "compact the session"),
    entry(Command::Exit, "exit", &["quit", "q"], "", "leave"),
];

/// What a line that begins with a slash means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning<'l> {
    /// A command, with what follows it.
    Command(Command, &'l str),
    /// A prompt of a server, with what follows it.
    Prompt(&'l str, &'l str),
    /// Nothing, but perhaps this was meant.
    Unknown { name: &'l str, near: Option<String> },
}

/// Reads a line; `None` for one that is no command.
pub(super) fn read<'l>(line: &'l str, prompts: &[&str]) -> Option<Meaning<'l>> {
    let line = line.trim();
    let rest = line.strip_prefix('/')?;
    let (name, arguments) = match rest.split_once(char::is_whitespace) {
        Some((name, arguments)) => (name, arguments.trim()),
        None => (rest, ""),
    };
    // A path is something to talk about.
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

/// The name that was probably meant.
pub(super) fn nearest<'n>(typed: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if typed.is_empty() || typed.len() > 128 {
        return None;
    }
    let scored = known.map(|name| {
        // The beginning of a long name, or its end, is as good as a typing error.
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
    fn lines_are_read() {
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
