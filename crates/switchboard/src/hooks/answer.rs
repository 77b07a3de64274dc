//! The answer of a hook, in Switchboard's own format and in those of other agents.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::SharedJson;

/// A hook's answer about a call. The default changes nothing.
#[derive(Debug, Clone, Default)]
pub struct HookAnswer {
    /// The decision about the call.
    pub decision: Option<HookDecision>,
    /// The reason, for the model and for people.
    pub reason: Option<String>,
    /// The arguments to send instead.
    pub arguments: Option<Box<RawValue>>,
    /// The result to return instead.
    pub result: Option<SharedJson>,
}

/// A hook's decision about a call, in order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookDecision {
    /// It needs no approval. Deny rules still apply.
    Allow,
    /// The user is prompted.
    Ask,
    /// The call is not made, or its result is not returned.
    Block,
}

impl HookAnswer {
    /// Blocks the call.
    pub fn block(reason: impl Into<String>) -> Self {
        Self {
            decision: Some(HookDecision::Block),
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Parses an answer as JSON text. No text is an answer that changes nothing.
    ///
    /// # Errors
    ///
    /// What the text is instead of an answer, such as `an unknown decision`. It contains no part of the text, which
    /// could be a secret.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        if !text.starts_with('{') {
            return Err("something other than a JSON object");
        }
        // Omit the parser's message, which could quote a secret.
        let wire: Wire = serde_json::from_str(text).map_err(|_| "JSON that cannot be read")?;
        let specific = wire.specific.unwrap_or_default();
        let decisions = [
            wire.decision.as_deref(),
            specific.decision.as_deref(),
            (wire.goes_on == Some(false)).then_some("block"),
        ];
        let mut decision = None;
        for word in decisions.into_iter().flatten() {
            let said = match word {
                "allow" | "approve" => HookDecision::Allow,
                "ask" => HookDecision::Ask,
                "block" | "deny" => HookDecision::Block,
                _ => return Err("an unknown decision"),
            };
            decision = decision.max(Some(said));
        }
        let arguments = wire.arguments.or(specific.arguments);
        let result = wire.result.or(specific.result);
        let is_object = |value: &Option<Box<RawValue>>| {
            value
                .as_ref()
                .is_none_or(|value| value.get().starts_with('{'))
        };
        if !is_object(&arguments) || !is_object(&result) {
            return Err("arguments or a result that is not an object");
        }
        Ok(Self {
            decision,
            reason: wire.reason.or(specific.reason).or(wire.stop_reason),
            arguments,
            result: result.map(SharedJson::from),
        })
    }
}

#[derive(Debug, Default, Deserialize)]
struct Wire {
    decision: Option<String>,
    reason: Option<String>,
    arguments: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    #[serde(rename = "stopReason")]
    stop_reason: Option<String>,
    #[serde(rename = "hookSpecificOutput")]
    specific: Option<Specific>,
}

#[derive(Debug, Default, Deserialize)]
struct Specific {
    #[serde(rename = "permissionDecision")]
    decision: Option<String>,
    #[serde(rename = "permissionDecisionReason")]
    reason: Option<String>,
    #[serde(rename = "updatedInput")]
    arguments: Option<Box<RawValue>>,
    #[serde(rename = "updatedMCPToolOutput")]
    result: Option<Box<RawValue>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_any_of_the_known_shapes_are_understood() {
        use HookDecision::{Allow, Ask, Block};
        type Expected<'a> =
            Result<(Option<HookDecision>, Option<&'a str>, Option<&'a str>), &'a str>;
        let check = |text: &str, expected: Expected<'_>| {
            let found = HookAnswer::parse(text);
            let found = found.as_ref().map_err(|error| *error).map(|answer| {
                let arguments = answer.arguments.as_deref().map(RawValue::get);
                (answer.decision, answer.reason.as_deref(), arguments)
            });
            assert_eq!(found, expected, "{text}");
        };
        check("", Ok((None, None, None)));
        check(" \n", Ok((None, None, None)));
        check("{}", Ok((None, None, None)));
        check(r#"{"other": 1}"#, Ok((None, None, None)));
        check(
            r#"{"decision": "block", "reason": "no"}"#,
            Ok((Some(Block), Some("no"), None)),
        );
        check(r#"{"decision": "approve"}"#, Ok((Some(Allow), None, None)));
        check(
            r#"{"continue": false, "stopReason": "s"}"#,
            Ok((Some(Block), Some("s"), None)),
        );
        check(
            r#"{"arguments": {"a": 1}}"#,
            Ok((None, None, Some(r#"{"a": 1}"#))),
        );
        let specific = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
            "permissionDecisionReason": "r", "updatedInput": {"a": 2}}}"#;
        check(specific, Ok((Some(Ask), Some("r"), Some(r#"{"a": 2}"#))));
        // The stricter of two decisions wins.
        let both = r#"{"decision": "allow", "hookSpecificOutput": {"permissionDecision": "deny"}}"#;
        check(both, Ok((Some(Block), None, None)));
        check("ok", Err("something other than a JSON object"));
        check("{", Err("JSON that cannot be read"));
        check(r#"{"decision": "perhaps"}"#, Err("an unknown decision"));
        check(
            r#"{"arguments": [1]}"#,
            Err("arguments or a result that is not an object"),
        );
        check(r#"{"decision": 5}"#, Err("JSON that cannot be read"));
    }
}
