//! `/export`: the conversation as a Markdown file.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use switchboard::internal::catalog::text::neutralise;
use switchboard_agent::Session as Conversation;
use switchboard_agent::message::{Content, Message, Part, Role};
use switchboard_agent::provider::Model;
use switchboard_config::text::visible;
use switchboard_config::write::create_private;

use super::failure;
use crate::context::Context;
use crate::error::Failure;
use crate::printer::{paint, style};
use crate::view;

/// Beginning of a message that the program wrote to the model.
const NOTE: &str = "[Note of the program";
/// Names tried for a file without a name of its own.
const ATTEMPTS: usize = 100;

/// Writes the conversation, and returns the line that says where.
pub(super) async fn run(
    typed: &str,
    conversation: &Conversation,
    model: &Model,
    context: &Context,
) -> Result<String, Failure> {
    let messages = conversation.transcript().await;
    let messages = messages.map_err(|error| failure::of(&error))?;
    if messages.is_empty() {
        return Err(Failure::failed("the session is still empty").hint("say something first"));
    }
    let text = markdown(&messages, conversation, model);
    let path = write(typed.trim(), conversation, text.as_bytes(), context)?;
    let shown = view::path(&path, &context.environment.home);
    Ok(format!("exported to {}", paint(style::NAME, shown)))
}

/// Writes a file that only this user can read: results may hold secrets.
fn write(
    typed: &str,
    conversation: &Conversation,
    text: &[u8],
    context: &Context,
) -> Result<PathBuf, Failure> {
    if !typed.is_empty() {
        let path = context.cwd.join(typed);
        create_private(&path, text).map_err(|error| unwritable(&path, &error))?;
        return Ok(path);
    }
    let id: String = conversation.id().as_str().chars().take(8).collect();
    let mut number = 1;
    loop {
        let name = match number {
            1 => format!("chat-{id}.md"),
            number => format!("chat-{id}-{number}.md"),
        };
        let path = context.cwd.join(name);
        match create_private(&path, text) {
            Ok(()) => return Ok(path),
            Err(error) if is_taken(&error) && number < ATTEMPTS => number += 1,
            Err(error) => return Err(unwritable(&path, &error)),
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display().to_string();
    let failure = Failure::failed(format!("cannot write {}", visible(&shown)));
    if is_taken(error) {
        return failure
            .because("it exists")
            .hint("name another file: /export FILE");
    }
    failure.because(error)
}

fn markdown(messages: &[Message], conversation: &Conversation, model: &Model) -> String {
    let mut text = format!(
        "# Chat {}\n\n- model: {}\n- folder: {}\n",
        conversation.id(),
        model.id,
        conversation.workspace().display(),
    );
    for message in messages {
        for part in &message.parts {
            part_text(message.role, part, &mut text);
        }
    }
    // Text of models and servers must not control the terminal that prints the file.
    neutralise(&text).into_owned()
}

fn part_text(role: Role, part: &Part, text: &mut String) {
    let who = match role {
        Role::User => "You",
        Role::Assistant => "Model",
    };
    // Writing to a `String` cannot fail.
    let _ = match part {
        Part::Text { text: said } if role == Role::User && said.starts_with(NOTE) => {
            writeln!(text, "\n*{}*", said.trim_end())
        }
        Part::Text { text: said } => writeln!(text, "\n## {who}\n\n{}", said.trim_end()),
        Part::Image(image) => writeln!(text, "\n*[image, {}]*", image.mime_type),
        Part::Thinking(thinking) if !thinking.text.trim().is_empty() => {
            let lines = thinking.text.trim_end().lines();
            let quoted: Vec<String> = lines.map(|line| format!("> {line}")).collect();
            writeln!(text, "\n{}", quoted.join("\n"))
        }
        Part::ToolCall(call) => {
            let fenced = fenced(&call.arguments, "json");
            writeln!(text, "\n### Call of `{}`\n\n{fenced}", call.name)
        }
        Part::ToolResult(result) => {
            let content = result.content.iter().map(|content| match content {
                Content::Text { text } => text.clone(),
                Content::Image(image) => format!("[image, {}]", image.mime_type),
                _ => "[other content]".to_owned(),
            });
            let content = content.collect::<Vec<_>>().join("\n");
            let heading = if result.is_error { "Error" } else { "Result" };
            writeln!(text, "\n### {heading}\n\n{}", fenced(&content, ""))
        }
        _ => Ok(()),
    };
}

/// A code block with a fence longer than any in the text.
fn fenced(text: &str, language: &str) -> String {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or_default().max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("a", "json"), "```json\na\n```");
        assert_eq!(fenced("a\n```\nb\n", ""), "````\na\n```\nb\n````");
    }
}
