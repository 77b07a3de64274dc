//! A call in one line: what was called with what, how it ended, how long it took.

use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_agent::events::FailedServer;
use switchboard_agent::message::Content;
use switchboard_config::text::visible;

use crate::consent;
use crate::live::Line;
use crate::printer::style;
use crate::questions::safe;
use crate::servers::look_closer;
use crate::state;

/// Arguments that say most about a call, which are shown without their names.
const TELLING: [&str; 8] = [
    "command",
    "file_path",
    "path",
    "pattern",
    "query",
    "uri",
    "url",
    "prompt",
];
/// So many lines of what a call shows are shown.
const SHOWN_LINES: usize = 20;

/// The arguments in a few words. Secrets are masked, and nothing in it fools a terminal.
pub(super) fn summary(arguments: Option<&RawValue>) -> String {
    let lines = consent::arguments(arguments);
    let telling = TELLING.iter().find_map(|name| {
        let own = |line: &&String| line.split_once(": ").is_some_and(|(key, _)| key == *name);
        lines.iter().find(own)
    });
    match telling.and_then(|line| line.split_once(": ")) {
        Some((_, value)) => value.to_owned(),
        None => lines.join(", "),
    }
}

/// How long something took, for people.
pub(super) fn elapsed(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", elapsed.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The first words of what went wrong.
pub(super) fn trouble(content: &[Content]) -> String {
    let text = content.iter().find_map(|part| match part {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let mut lines = text.unwrap_or_default().lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty());
    let line = line.unwrap_or("it failed without a word");
    // What follows is for the model.
    let line = line.split(" Hint: ").next().unwrap_or(line);
    // What a server wrapped in JSON is told by its message.
    let told = serde_json::from_str::<Value>(line).ok();
    let message = told
        .as_ref()
        .and_then(|value| value.get("message")?.as_str());
    let short: String = message.unwrap_or(line).chars().take(300).collect();
    safe(&short)
}

/// What a call shows in place of its result, a difference mostly: lines that came and went stand out.
pub(super) fn display(text: &str) -> Vec<Line> {
    let count = text.lines().count();
    let mut lines: Vec<Line> = text
        .lines()
        .take(SHOWN_LINES)
        .map(|line| {
            let style = match line.chars().next() {
                Some('+') => style::GOOD,
                Some('-') => style::REMOVED,
                Some('@') => style::HINT,
                _ => style::QUIET,
            };
            vec![(style, safe(&line.replace('\t', "    ")))]
        })
        .collect();
    if count > SHOWN_LINES {
        let more = format!("… {} more lines", count - SHOWN_LINES);
        lines.push(vec![(style::QUIET, more)]);
    }
    lines
}

/// What a person is told of a server that the turn goes on without: what, and what to do. `None` where the findings about
/// the configuration have told it.
pub(super) fn missing_server(server: &FailedServer) -> Option<(String, String)> {
    if state::is_in_findings(&server.state) {
        return None;
    }
    let name = visible(&server.name);
    let hint = match server.state.as_str() {
        "needs-auth" => format!("`switchboard mcp login {name}`"),
        "untrusted" => format!("`switchboard trust approve {name}`"),
        "pending" | "lazy" => "its tools join the session when it is ready".to_owned(),
        _ => look_closer(&name),
    };
    let message = format!(
        "going on without {name} ({}): {}",
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
    fn a_call_is_told_by_what_matters() {
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
    fn times_are_as_exact_as_anybody_needs() {
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
    fn what_went_wrong_is_one_short_line() {
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
        check("", "it failed without a word");
        assert_eq!(trouble(&[]), "it failed without a word");
    }
}
