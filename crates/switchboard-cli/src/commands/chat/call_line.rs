//! Formats a call as one line: tool, arguments, outcome, duration.

use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_agent::FailedServer;
use switchboard_agent::message::Content;
use switchboard_config::text::visible;

use crate::consent;
use crate::live::Line;
use crate::markdown::DiffColors;
use crate::printer::style;
use crate::questions::safe;
use crate::servers::doctor_hint;
use crate::startup::counted;
use crate::state;

/// The most informative arguments, shown without their names.
const KEY_ARGUMENTS: [&str; 8] = [
    "command",
    "file_path",
    "path",
    "pattern",
    "query",
    "uri",
    "url",
    "prompt",
];
/// Lines shown of a call's display text.
pub(super) const MAX_DISPLAY_LINES: usize = 20;

/// A short form of the arguments, with secrets masked and sanitized.
pub(super) fn summary(arguments: Option<&RawValue>) -> String {
    let lines = consent::arguments(arguments);
    let key_argument = KEY_ARGUMENTS.iter().find_map(|name| {
        let own = |line: &&String| line.split_once(": ").is_some_and(|(key, _)| key == *name);
        lines.iter().find(own)
    });
    match key_argument.and_then(|line| line.split_once(": ")) {
        Some((_, value)) => value.to_owned(),
        None => lines.join(", "),
    }
}

/// A tool as `switchboard call` takes it: `server/tool`, or the name of a built-in tool.
pub(super) fn name(server: Option<&str>, tool: &str) -> String {
    match server {
        Some(server) => safe(&format!("{server}/{tool}")),
        None => safe(tool),
    }
}

/// A duration for people.
pub(super) fn elapsed(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", elapsed.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The first line of an error.
pub(super) fn trouble(content: &[Content]) -> String {
    let text = content.iter().find_map(|part| match part {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let mut lines = text.unwrap_or_default().lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty());
    let line = line.unwrap_or("failed without a message");
    // The rest is addressed to the model.
    let line = line.split(" Hint: ").next().unwrap_or(line);
    // Of a JSON error, show only its message.
    let parsed = serde_json::from_str::<Value>(line).ok();
    let message = parsed
        .as_ref()
        .and_then(|value| value.get("message")?.as_str());
    let short: String = message.unwrap_or(line).chars().take(300).collect();
    safe(&short)
}

/// The first lines of the text that a call displays in place of its result, usually a diff: added and removed
/// lines are highlighted. `number` is that of the result, which has all of it.
pub(super) fn display(text: &str, most: usize, number: Option<usize>) -> Vec<Line> {
    let count = text.lines().count();
    let mut colors = DiffColors::new(style::QUIET);
    let mut lines: Vec<Line> = text
        .lines()
        .take(most)
        .map(|line| colors.line(&safe(&line.replace('\t', "    "))))
        .collect();
    if count > most {
        let keys = number.map(|number| format!(": ctrl-O or /show {number}"));
        let more = counted(count - most, "more line");
        let more = format!("… {more}{}", keys.unwrap_or_default());
        lines.push(vec![(style::QUIET, more)]);
    }
    lines
}

/// The warning and hint for a server that the turn continues without. `None` if the configuration's diagnostics have
/// already reported it.
pub(super) fn missing_server(server: &FailedServer) -> Option<(String, String)> {
    if state::is_in_findings(&server.state) {
        return None;
    }
    let name = visible(&server.name);
    let hint = match server.state.as_str() {
        "needs-auth" => format!("`switchboard mcp login {name}`"),
        "untrusted" => format!("`switchboard trust approve {name}`"),
        "pending" | "lazy" => "its tools join the session when it is ready".to_owned(),
        _ => doctor_hint(&name),
    };
    let message = format!(
        "continuing without {name} ({}): {}",
        server.state,
        visible(&server.reason)
    );
    Some((message, hint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_summarised_by_its_key_argument() {
        let check = |arguments: Value, expected: &str| {
            let raw = serde_json::value::to_raw_value(&arguments).unwrap();
            assert_eq!(summary(Some(&raw)), expected, "{arguments}");
        };
        check(json!({}), "");
        check(json!({"timeout": 5, "command": "ls -l"}), "ls -l");
        check(json!({"a": 1, "b": "x"}), "a: 1, b: x");
        check(json!({"path": "a\u{1b}[2J"}), "a\\u{1b}[2J");
        check(json!({"api_token": "abc"}), "api_token: ********");
        assert_eq!(summary(None), "");
    }

    #[test]
    fn a_tool_is_named_with_its_server() {
        assert_eq!(name(Some("time"), "now"), "time/now");
        assert_eq!(name(None, "Bash"), "Bash");
        assert_eq!(name(Some("a\u{1b}"), "b"), "a\\u{1b}/b");
    }

    #[test]
    fn a_long_display_says_how_to_see_the_rest() {
        let rows = display(&"+line\n".repeat(5), 3, Some(7));
        let last = rows.last().map(|row| row[0].1.as_str());
        assert_eq!(last, Some("… 2 more lines: ctrl-O or /show 7"));
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn durations_are_rounded() {
        for (millis, expected) in [
            (0, "0.0 s"),
            (340, "0.3 s"),
            (9_940, "9.9 s"),
            (12_900, "12 s"),
            (72_000, "1 min 12 s"),
        ] {
            assert_eq!(elapsed(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn errors_are_one_short_line() {
        let check = |text: &str, expected: &str| {
            let content = [Content::Text {
                text: text.to_owned(),
            }];
            assert_eq!(trouble(&content), expected);
        };
        check("\n  first\nsecond", "first");
        check(
            r#"{"code": 1, "message": "no such\u0007 file"}"#,
            "no such\\u{7} file",
        );
        check("", "failed without a message");
        assert_eq!(trouble(&[]), "failed without a message");
    }
}
