//! Validates an entry as a whole, after all fields were decoded.

use super::{Field, Reader, ServerEntry, Transport};
use crate::confusable;
use crate::mask;
use crate::tree::Span;

/// Names are shown, matched and used as prefixes of tool names.
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
    } else if let Some((fault, instead)) = reserved(name) {
        reader.error(
            "reserved-name",
            whole,
            format!("server name {name:?} {fault}"),
            format!("rename the server, for example to `{instead}`"),
        );
    }
    endpoint(entry, spans, whole, reader);
    let faults = entry.value_faults();
    // Header faults were already reported when the headers were read.
    for fault in faults.iter().filter(|fault| fault.field != Field::Headers) {
        let message = match (&entry.url, fault.field) {
            (Some(url), Field::Url) => {
                format!("{}, but is \"{}\"", fault.message(), mask::url(url))
            }
            _ => fault.message(),
        };
        reader.error("bad-value", at(fault.field), message, fault.hint);
    }
    if let Some(command) = &entry.command
        && entry.args.is_empty()
        && command
            .split_once(' ')
            .is_some_and(|(program, _)| !program.is_empty() && !program.contains(['/', '\\', '$']))
    {
        reader.warning(
            "no-shell",
            at(Field::Command),
            "`command` contains a space, but is not split into words by a shell",
            "name the program in `command` and list the rest in `args`",
        );
    }
}

/// An invalid value. The message does not contain the value, which may come from a variable.
pub(crate) struct ValueFault {
    pub(crate) field: Field,
    pub(crate) hint: &'static str,
    expected: String,
}

impl ValueFault {
    /// A fragment such as "`command` must not be empty".
    pub(crate) fn message(&self) -> String {
        format!("`{}` must {}", self.field.name(), self.expected)
    }
}

impl ServerEntry {
    /// Invalid values. Values with references are checked after expansion.
    pub(crate) fn value_faults(&self) -> Vec<ValueFault> {
        let mut faults = Vec::new();
        if let Some(url) = self.url.as_deref().filter(|url| !url.contains("${"))
            && let Some(expected) = url_fault(url)
        {
            faults.push(ValueFault {
                field: Field::Url,
                hint: "write the whole address, such as https://example.com/mcp",
                expected,
            });
        }
        if self
            .command
            .as_deref()
            .is_some_and(|command| command.trim().is_empty())
        {
            faults.push(ValueFault {
                field: Field::Command,
                hint: "name the program to start",
                expected: "not be empty".to_owned(),
            });
        }
        for (header, value) in &self.headers {
            if has_line_break(value.expose()) {
                faults.push(ValueFault {
                    field: Field::Headers,
                    hint: ON_ONE_LINE,
                    expected: format!("have no line break in the value of {}", mask::name(header)),
                });
            }
        }
        faults
    }
}

const ON_ONE_LINE: &str = "write it on one line";

fn has_line_break(text: &str) -> bool {
    text.contains(['\r', '\n', '\0'])
}

fn url_fault(url: &str) -> Option<String> {
    let scheme = url
        .split_once("://")
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("unix") => None,
        Some(scheme) if Transport::SCHEMES.contains(&scheme) => {
            let error = url::Url::parse(url).err()?;
            Some(format!("be an address ({error})"))
        }
        _ => Some("start with http://, https://, ws://, wss:// or unix://".to_owned()),
    }
}

/// What is wrong with a variable, with a hint.
pub(super) fn variable_fault(variable: &str, _: &str) -> Option<(String, &'static str)> {
    let wrong = variable.is_empty() || variable.contains(['=', '\0']);
    wrong.then(|| {
        let shown = mask::argument(variable);
        let message = format!("`env` has a variable with the invalid name {shown:?}");
        (message, "a name is not empty and has no `=`")
    })
}

/// What is wrong with a header, with a hint.
pub(super) fn header_fault(header: &str, value: &str) -> Option<(String, &'static str)> {
    // `"Authorization: Bearer …"` as a name is a common mistake, and its end is secret.
    let shown = mask::name(header);
    if !is_header_name(header) {
        let message = format!("`headers` has the invalid name {shown:?}");
        return Some((message, "a header name has letters, digits and dashes"));
    }
    has_line_break(value).then(|| {
        let message = format!("the value of the header {shown} contains a line break");
        (message, ON_ONE_LINE)
    })
}

/// Requires either a program or a URL, as the transport demands.
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
    // A value of the wrong type was already reported, and is not missing.
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
        // Already reported values, such as null, contradict nothing.
        (_, Some(_), Some(_)) if entry.command.is_none() || entry.url.is_none() => {}
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
                "a stdio server takes no `url`",
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
                format!("a server with transport {transport} takes no `command`"),
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
        Field::CaFile,
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

/// Why a name is reserved, and a name to use instead.
fn reserved(name: &str) -> Option<(String, String)> {
    if let Some(built_in) = confusable::built_in(name) {
        let fault = format!("reads like the built-in tool {built_in}");
        return Some((fault, format!("{}-mcp", built_in.to_ascii_lowercase())));
    }
    if !confusable::has_tool_prefix(name) {
        return None;
    }
    let is_plain =
        |character: &char| character.is_ascii_alphanumeric() || "-_".contains(*character);
    let plain: String = name.chars().filter(is_plain).skip(5).collect();
    let plain = plain.trim_matches('_');
    let instead = if plain.is_empty() || reserved(plain).is_some() {
        "my-server"
    } else {
        plain
    };
    let fault = "begins with \"mcp__\", as the names of tools do".to_owned();
    Some((fault, instead.to_owned()))
}

/// Why a server name is invalid; `None` if it is valid.
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

/// Whether a text is an HTTP token.
fn is_header_name(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}
