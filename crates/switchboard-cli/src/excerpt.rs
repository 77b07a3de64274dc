//! Extracts the source line of a diagnostic, with a marker under the position and with secrets replaced by dots.
//!
//! A line that failed to parse can contain a secret anywhere. So only known harmless text is shown: keys, punctuation,
//! and the values of keys that never hold a secret. Dots preserve the length, so that the marker stays in place.

use switchboard_config::source::{Origin, SourceFile};
use switchboard_config::text::is_invisible;

/// Longer lines are generated rather than written by hand, and not shown.
const MAX_LINE: usize = 200;

/// Keys whose values are never secret.
const HARMLESS: &[&str] = &[
    "transport",
    "type",
    "enabled",
    "disabled",
    "required",
    "shared",
    "hidden",
    "permission",
    "pin",
    "sandbox",
    "mode",
    "network",
    "action",
    "tool",
    "event",
    "inherit_env",
    "trust_annotations",
    "fail_open",
    "name",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "tool_max_sec",
    "timeout_sec",
    "timeout",
    "idle_shutdown_sec",
    "limits",
    "concurrent_calls",
    "queued_calls",
    "failures",
    "pause_sec",
    "callback_port",
    "grant_type",
    "enabled_tools",
    "disabled_tools",
    "env_vars",
    "roots",
    "bearer_token_env_var",
    "client_secret_env_var",
    "private_key_env_var",
    "idp_client_secret_env_var",
    "assertion_env_var",
    "dpop",
    "max_output_tokens",
    "max_message_bytes",
    "local_connections",
    "remote_connections",
    "health_interval_sec",
    "health_timeout_sec",
    "reconnect_attempts",
    "reconnect_initial_sec",
    "reconnect_max_sec",
    "reconnect_factor",
    "min_context_window",
    "model_window",
    "max_description_chars",
    "catalog_ttl_sec",
    "needs_auth_memory_sec",
    "progress_interval_sec",
    "tool_search",
    "login_store",
    "mcp_server_allowlist",
    "mcp_server_denylist",
    "command",
    "cwd",
];

/// A line and its marked columns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) line_number: usize,
    pub(crate) line: String,
    /// Characters before the marker.
    pub(crate) indent: usize,
    /// Width of the marker in characters, at least 1.
    pub(crate) width: usize,
}

/// Returns the line on which an origin starts; `None` if it cannot be shown.
pub(crate) fn excerpt(origin: &Origin) -> Option<Excerpt> {
    let position = origin.position();
    let line = line_at(&origin.file, origin.span.start as usize)?;
    if line.chars().count() > MAX_LINE {
        return None;
    }
    let indent = position.column - 1;
    let rest = line.chars().count().saturating_sub(indent);
    let width = origin
        .file
        .slice(origin.span)
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .count();
    Some(Excerpt {
        line_number: position.line,
        line: without_secrets(line),
        indent,
        width: width.min(rest).max(1),
    })
}

fn line_at(file: &SourceFile, offset: usize) -> Option<&str> {
    let text = file.text();
    let offset = offset.min(text.len());
    let start = text.get(..offset)?.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.get(start..)?;
    let line = rest.split('\n').next().unwrap_or_default();
    Some(line.strip_suffix('\r').unwrap_or(line))
}

/// Replaces every character that could be part of a secret with a dot.
fn without_secrets(line: &str) -> String {
    let mut output = String::with_capacity(line.len());
    let characters: Vec<char> = line.chars().collect();
    let mut at = 0;
    let mut expects_key = true;
    let heading = if line.contains([',', '=', ':']) {
        Heading::No
    } else if line.trim_start().starts_with('[') && !line.contains(['"', '\'']) {
        Heading::Table
    } else if line.contains('[') {
        Heading::No
    } else {
        Heading::Block
    };
    let mut harmless = Harmless::No;
    // The line may be inside a multi-line string, so a first word is a key only if a key's delimiter follows.
    while let Some(&character) = characters.get(at) {
        let token = Token::at(&characters, at);
        match token.kind {
            Kind::Punctuation => {
                match character {
                    '=' | ':' => expects_key = false,
                    '{' | '}' | ']' => {
                        expects_key = true;
                        harmless = Harmless::No;
                    }
                    '[' => {
                        expects_key = true;
                        if harmless == Harmless::One {
                            harmless = Harmless::List;
                        }
                    }
                    // A comma is followed by the next key, or the next element of a list.
                    ',' => {
                        expects_key = true;
                        if harmless == Harmless::One {
                            harmless = Harmless::No;
                        }
                    }
                    '#' => {
                        // A comment can contain a commented-out secret.
                        let rest = characters.len() - at - 1;
                        output.push('#');
                        output.extend(std::iter::repeat_n('·', rest));
                        return output;
                    }
                    _ => {}
                }
                output.push(plain(character));
            }
            Kind::Word { text } => {
                let key = expects_key && is_key(&text, &characters, token.end, heading);
                let known = harmless != Harmless::No;
                if key && HARMLESS.contains(&text.as_str()) {
                    harmless = Harmless::One;
                } else if key || harmless == Harmless::One {
                    // A key has one value. Anything after it is a syntax error.
                    harmless = Harmless::No;
                }
                let literal = matches!(text.as_str(), "true" | "false" | "null");
                for character in characters.get(at..token.end).unwrap_or_default() {
                    let quote = matches!(character, '"' | '\'');
                    let is_visible = key || known || literal || quote || character.is_whitespace();
                    output.push(if is_visible { plain(*character) } else { '·' });
                }
            }
        }
        at = token.end;
    }
    output
}

/// Lines whose words are names although no value follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heading {
    No,
    /// `[mcp_servers.name]`
    Table,
    /// `mcp_servers "name" {`
    Block,
}

/// Whether the next value is known not to be a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Harmless {
    No,
    /// The next value only.
    One,
    /// All values until the end of the list.
    List,
}

struct Token {
    kind: Kind,
    end: usize,
}

enum Kind {
    Punctuation,
    /// A word or a quoted string, without its quotes.
    Word {
        text: String,
    },
}

impl Token {
    fn at(characters: &[char], start: usize) -> Self {
        let first = characters.get(start).copied().unwrap_or_default();
        let punctuation =
            |character: char| character.is_whitespace() || "=:{}[],#()".contains(character);
        if matches!(first, '"' | '\'') {
            let mut end = start + 1;
            while let Some(&character) = characters.get(end) {
                end += 1;
                if character == '\\' && first == '"' {
                    end += 1;
                } else if character == first {
                    break;
                }
            }
            let end = end.min(characters.len());
            let inner = characters.get(start + 1..end.saturating_sub(1).max(start + 1));
            let text = inner.unwrap_or_default().iter().collect();
            return Self {
                kind: Kind::Word { text },
                end,
            };
        }
        if punctuation(first) {
            return Self {
                kind: Kind::Punctuation,
                end: start + 1,
            };
        }
        let rest = characters.get(start..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|character| punctuation(*character) || matches!(character, '"' | '\''))
            .unwrap_or(rest.len());
        Self {
            kind: Kind::Word {
                text: rest.iter().take(length).collect(),
            },
            end: start + length,
        }
    }
}

/// Whether a word is a key: a plain name with one `=`, `:`, `{` or `]` after it.
fn is_key(text: &str, characters: &[char], end: usize, heading: Heading) -> bool {
    let plain_name = !text.is_empty()
        && text.len() <= 64
        && text
            .chars()
            .all(|character| character.is_alphanumeric() || "_-.$".contains(character));
    let mut rest = characters
        .get(end..)
        .unwrap_or_default()
        .iter()
        .skip_while(|character| character.is_whitespace());
    match rest.next() {
        // `==` is Base64 padding.
        Some('=') => plain_name && rest.next() != Some(&'='),
        Some(':') => plain_name && rest.next() != Some(&'/'),
        Some('{') => plain_name && heading == Heading::Block,
        Some(']') => plain_name && heading == Heading::Table,
        // The label of an HCL block: `mcp_servers "name" {`.
        Some('"') => matches!(text, "mcp_servers" | "hooks" | "settings" | "profiles"),
        _ => false,
    }
}

fn plain(character: char) -> char {
    if character == '\t' {
        ' '
    } else if character.is_control() || is_invisible(character) {
        '·'
    } else {
        character
    }
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn what_could_be_a_secret_is_dots() {
        let check = |line: &str, output: &str| assert_eq!(without_secrets(line), output, "{line}");
        check("comand = \"npx\"", "comand = \"···\"");
        check("transport = \"htpp\"", "transport = \"htpp\"");
        check("tool_timeout_sec = 0", "tool_timeout_sec = 0");
        check("TOKEN = \"sk-1\"", "TOKEN = \"····\"");
        check("TOKEN = sk-12==", "TOKEN = ·····==");
        check("abc== = x", "···== = ·");
        check("Authorization: Bearer abc", "Authorization: ······ ···");
        check(
            "x = { command = \"npx\", env = { K = \"v\" }, enabled = true }",
            "x = { command = \"npx\", env = { K = \"·\" }, enabled = true }",
        );
        check(
            "  \"args\": [\"--key\", \"abc\"]",
            "  \"args\": [\"·····\", \"···\"]",
        );
        check(
            "\"command\": npx\", \"args\": [\"-t\", \"abc\"]",
            "\"command\": npx\"· \"····\"· ·\"··\"· \"···\"·",
        );
        check(
            "enabled_tools = [\"a\", \"b\"] # c",
            "enabled_tools = [\"a\", \"b\"] #··",
        );
        check("[mcp_servers.github]", "[mcp_servers.github]");
        check("mcp_servers \"github\" {", "mcp_servers \"github\" {");
        check("args = [\"abc\"{, \"x\"]", "args = [\"···\"{, \"·\"]");
        check("MIIEvQIBADANBgkq", "················");
        check("# token = abc", "#············");
        check("x = \"unclosed secret", "x = \"········ ······");
        check("url = https://me:pw@host", "url = ·····:····:·······");
    }
}
