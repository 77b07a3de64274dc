//! Rules about an entry as a whole, checked after every field was read.

use super::{Field, Reader, ServerEntry, Transport};
use crate::mask;
use crate::tree::Span;

/// The schemes a URL may have.
const SCHEMES: &[&str] = &["http", "https", "ws", "wss", "unix"];

/// Names are shown, matched and made into tool names; longer ones help nobody.
const LONGEST_NAME: usize = 128;

pub(super) fn validate(
    name: &str,
    entry: &ServerEntry,
    spans: &[(Field, Span)],
    whole: Span,
    reader: &mut Reader<'_, '_>,
) {
    let at = |field: Field| {
        spans
            .iter()
            .find(|(other, _)| *other == field)
            .map_or(whole, |(_, span)| *span)
    };
    if let Some(fault) = name_fault(name) {
        reader.error(
            "bad-name",
            whole,
            format!("server name {name:?} {fault}"),
            "rename the server",
        );
    }
    endpoint(entry, spans, whole, reader);
    if let Some(url) = &entry.url {
        let scheme = url
            .split_once("://")
            .map(|(scheme, _)| scheme.to_ascii_lowercase());
        // A scheme behind a variable is checked once the variable is known.
        let unknown = match &scheme {
            Some(scheme) => !SCHEMES.contains(&scheme.as_str()) && !scheme.contains("${"),
            None => !url.starts_with("${"),
        };
        if unknown {
            let shown = mask::url(url);
            let message = format!(
                "`url` must start with http://, https://, ws://, wss:// or unix://, but is \"{shown}\""
            );
            reader.error(
                "bad-value",
                at(Field::Url),
                message,
                "write the whole address, such as https://example.com/mcp",
            );
        }
    }
    for (variable, _) in &entry.env {
        if variable.is_empty() || variable.contains(['=', '\0']) {
            let shown = mask::argument(variable);
            let message = format!("`env` has a variable with the impossible name {shown:?}");
            reader.error(
                "bad-value",
                at(Field::Env),
                message,
                "a name is not empty and has no `=`",
            );
        }
    }
    for (header, value) in &entry.headers {
        if !is_header_name(header) {
            // `"Authorization: Bearer …"` is a mistake that people make, and its end is secret.
            let shown = mask::name(header);
            let message = format!("`headers` has the impossible name {shown:?}");
            reader.error(
                "bad-value",
                at(Field::Headers),
                message,
                "a header name has letters, digits and dashes",
            );
        }
        if value.expose().contains(['\r', '\n']) {
            let message = format!("the value of the header {header} has a line break in it");
            reader.error(
                "bad-value",
                at(Field::Headers),
                message,
                "write it on one line",
            );
        }
    }
    if entry.command.as_deref() == Some("") {
        reader.error(
            "bad-value",
            at(Field::Command),
            "`command` is empty",
            "name the program to start",
        );
    }
}

/// Either a program or an address, and the one that the transport wants.
fn endpoint(
    entry: &ServerEntry,
    spans: &[(Field, Span)],
    whole: Span,
    reader: &mut Reader<'_, '_>,
) {
    let stated = |field: Field| {
        spans
            .iter()
            .find(|(other, _)| *other == field)
            .map(|(_, span)| *span)
    };
    // A value of the wrong type was reported already and is not missing.
    let (command, url) = (stated(Field::Command), stated(Field::Url));
    let transport = entry.transport.or(match (command, url) {
        (Some(_), None) => Some(Transport::Stdio),
        (None, Some(_)) => Some(
            entry
                .url
                .as_deref()
                .map_or(Transport::Http, Transport::of_url),
        ),
        _ => None,
    });
    match (transport, command, url) {
        (None, Some(_), Some(span)) => {
            reader.error(
                "conflict",
                span,
                "the entry has both `command` and `url`",
                "keep one of the two, or state `transport`",
            );
        }
        (None, None, None) if stated(Field::Transport).is_none() => {
            let hint = "add `command` for a program, or `url` for a remote server";
            reader.error(
                "missing-key",
                whole,
                "the entry has neither `command` nor `url`",
                hint,
            );
        }
        (Some(Transport::Stdio), None, _) => {
            reader.error(
                "missing-key",
                whole,
                "a stdio server needs `command`",
                "add command = \"…\"",
            );
        }
        (Some(Transport::Stdio), Some(_), Some(span)) => {
            reader.error(
                "conflict",
                span,
                "a stdio server has no `url`",
                "remove `url`, or change `transport`",
            );
        }
        (Some(transport @ (Transport::Http | Transport::Sse | Transport::Ws)), command, None) => {
            let hint = if command.is_some() {
                "change `transport` to \"stdio\", or add `url`"
            } else {
                "add url = \"…\""
            };
            reader.error(
                "missing-key",
                whole,
                format!("a server with transport {transport} needs `url`"),
                hint,
            );
        }
        (
            Some(transport @ (Transport::Http | Transport::Sse | Transport::Ws)),
            Some(span),
            Some(_),
        ) => {
            reader.error(
                "conflict",
                span,
                format!("a server with transport {transport} has no `command`"),
                "remove `command`, or change `transport`",
            );
        }
        _ => {}
    }
    let local_only = [
        Field::Args,
        Field::Env,
        Field::EnvVars,
        Field::InheritEnv,
        Field::Cwd,
        Field::Sandbox,
    ];
    let remote_only = [
        Field::Headers,
        Field::HeadersHelper,
        Field::BearerTokenEnvVar,
        Field::OAuth,
    ];
    let (misplaced, kind): (&[Field], _) = match transport {
        Some(Transport::Stdio) => (&remote_only, "a program that is started"),
        Some(Transport::Http | Transport::Sse | Transport::Ws) => {
            (&local_only, "a server that is reached by URL")
        }
        _ => return,
    };
    for field in misplaced {
        if let Some(span) = stated(*field) {
            reader.warning(
                "no-effect",
                span,
                format!("`{}` has no effect on {kind}", field.name()),
                "remove it",
            );
        }
    }
}

/// What is wrong with a server name, if anything.
pub(crate) fn name_fault(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() {
        Some("is empty")
    } else if name
        .chars()
        .any(|character| character.is_control() || crate::text::is_invisible(character))
    {
        Some("has a control or invisible character")
    } else if name.chars().count() > LONGEST_NAME {
        Some("is longer than 128 characters")
    } else {
        None
    }
}

/// Whether a text is a token as HTTP defines it.
fn is_header_name(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}
