//! `switchboard help`: the help of a command, of a topic, and man pages.

use std::path::Path;

use clap::Command;
use serde_json::json;
use switchboard_config::entry::keys::nearest;
use switchboard_config::text::visible;

use crate::cli::{self, HelpArguments};
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::Printer;

/// Topics, what they are about, and their text.
const TOPICS: [(&str, &str, &str); 5] = [
    (
        "scopes",
        "Which configuration files are read, and which wins",
        include_str!("scopes.txt"),
    ),
    (
        "trust",
        "Why a project's servers wait for your approval",
        include_str!("trust.txt"),
    ),
    (
        "rules",
        "Which calls are allowed, prompted for or denied",
        include_str!("rules.txt"),
    ),
    (
        "transports",
        "How a server is reached: stdio, HTTP, SSE, WebSocket",
        include_str!("transports.txt"),
    ),
    (
        "completion",
        "Completion in bash, zsh, fish and PowerShell",
        include_str!("completion.txt"),
    ),
];

/// The names of the topics, and what they are about.
pub(crate) fn topics() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOPICS.iter().map(|(name, about, _)| (*name, *about))
}

/// Text after the flags in `switchboard --help`.
pub(crate) fn after_help() -> String {
    let width = topics()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or_default();
    let lines = topics().map(|(name, about)| format!("  {name:width$}  {about}"));
    let lines: Vec<String> = lines.collect();
    format!(
        "Topics, for `switchboard help TOPIC`:\n{}",
        lines.join("\n")
    )
}

pub(crate) fn run(arguments: &HelpArguments, printer: &Printer) -> Outcome {
    if let Some(folder) = &arguments.man {
        return man(folder, printer);
    }
    if let [word] = arguments.words.as_slice()
        && let Some((_, _, text)) = TOPICS.iter().find(|(name, ..)| name == word)
    {
        printer.data(text.trim_end())?;
        return Ok(Exit::Done);
    }
    let mut command = cli::command();
    command.build();
    let mut found = &mut command;
    for word in &arguments.words {
        if found.find_subcommand(word).is_none() {
            return Err(unknown(word, found));
        }
        found = found
            .find_subcommand_mut(word)
            .ok_or_else(|| Failure::usage("unknown command"))?;
    }
    let help = found.render_long_help();
    printer.data(help.ansi())?;
    Ok(Exit::Done)
}

fn unknown(word: &str, command: &Command) -> Failure {
    let message = format!("no command or topic named `{}`", visible(word));
    let commands: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let topics: Vec<&str> = topics().map(|(name, _)| name).collect();
    let known = commands.into_iter().chain(topics.iter().copied());
    match nearest(word, known) {
        Some(near) => Failure::usage(message).hint(format!("did you mean `{near}`?")),
        None => Failure::usage(message).hint(format!("topics: {}", topics.join(", "))),
    }
}

/// Writes one man page per command into a folder.
fn man(folder: &Path, printer: &Printer) -> Outcome {
    let shown = folder.display().to_string();
    let failed = |error: std::io::Error| {
        Failure::failed(format!("could not write man pages to {}", visible(&shown)))
            .because(error)
            .hint("pass a folder that you can write to")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_page(&command, "switchboard", folder, &mut pages).map_err(failed)?;
    if printer.json {
        printer.json(&json!({ "folder": shown, "pages": pages }))?;
    } else {
        printer.note(format!(
            "wrote {} man pages to {}",
            pages.len(),
            visible(&shown)
        ));
    }
    Ok(Exit::Done)
}

fn write_page(
    command: &Command,
    name: &str,
    folder: &Path,
    pages: &mut Vec<String>,
) -> std::io::Result<()> {
    let page = command.clone().version(env!("CARGO_PKG_VERSION"));
    let mut text = Vec::new();
    clap_mangen::Man::new(page).title(name).render(&mut text)?;
    let file = format!("{name}.1");
    std::fs::write(folder.join(&file), text)?;
    pages.push(file);
    for each in command.get_subcommands().filter(|each| !each.is_hide_set()) {
        if each.get_name() != "help" {
            write_page(each, &format!("{name}-{}", each.get_name()), folder, pages)?;
        }
    }
    Ok(())
}
