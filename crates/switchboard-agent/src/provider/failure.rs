//! Maps HTTP errors and error events of model endpoints to [`ProviderError`]s.
//!
//! Recognises the error formats of Anthropic, `OpenAI` and compatible servers. Messages contain no secrets: the key is
//! redacted if a server echoes it.

use std::error::Error;
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use switchboard_config::redact::Redactor;
use switchboard_config::secret::Secret;

use super::{ProviderError, ProviderErrorKind};

/// Maximum length of an error message.
const LONGEST: usize = 600;
/// Upper bound for `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Phrases for a conversation that exceeds the context window.
const TOO_LONG: [&str; 8] = [
    "context_length_exceeded",
    "exceed_context_size",
    "prompt is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the available context size",
    "context window",
    "request_too_large",
];
/// Phrases for an unknown model.
const UNKNOWN_MODEL: [&str; 3] = ["model_not_found", "not_found_error", "does not exist"];
/// Phrases for an exhausted account.
const NO_CREDIT: [&str; 4] = [
    "insufficient_quota",
    "credit balance",
    "billing",
    "payment required",
];

/// An HTTP response with an error status.
pub(super) struct ErrorResponse<'a> {
    pub(super) provider: &'a str,
    pub(super) url: &'a str,
    pub(super) status: u16,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) key: Option<&'a Secret>,
}

/// Converts an HTTP error response.
pub(super) fn refused(response: &ErrorResponse<'_>) -> ProviderError {
    let parsed: Value = serde_json::from_slice(response.body).unwrap_or_default();
    let (words, message) = if let Some(error) = error_of(&parsed) {
        (words(error), message_of(error))
    } else {
        let text = String::from_utf8_lossy(response.body).into_owned();
        let is_page = text.trim_start().starts_with('<');
        (text.clone(), Some(text).filter(|_| !is_page))
    };
    let kind = kind_of_status(response.status, &words);
    let message = message.filter(|message| !message.trim().is_empty());
    let message = match (message, response.status) {
        (Some(message), _) => message,
        (None, 300..=399) => format!("{} redirects elsewhere", response.url),
        (None, 404) => format!("not found: {}", response.url),
        (None, status) => format!("{} answered with status {status}", response.url),
    };
    let mut error =
        ProviderError::new(response.provider, kind, presentable(&message, response.key));
    error.retry_after = retry_after(response.headers);
    error
}

/// Converts an error event of a stream; `None` for other events.
pub(super) fn in_stream(provider: &str, event: &Value) -> Option<ProviderError> {
    let error = error_of(event)?;
    let words = words(error);
    let status = [&error["code"], &error["status"], &event["status"]];
    let status = status.into_iter().find_map(Value::as_u64);
    let kind = match status.and_then(|status| u16::try_from(status).ok()) {
        Some(status @ 400..) => kind_of_status(status, &words),
        _ => kind_of_words(&words),
    };
    let message = message_of(error).unwrap_or_else(|| "an error without a message".to_owned());
    Some(ProviderError::new(
        provider,
        kind,
        presentable(&message, None),
    ))
}

/// Converts an error of the HTTP client.
pub(super) fn not_sent(provider: &str, url: &str, error: &reqwest::Error) -> ProviderError {
    let is_out_of_reach = error.is_connect() || error.is_timeout();
    let (kind, what) = if is_out_of_reach {
        (ProviderErrorKind::Unreachable, "cannot be reached")
    } else {
        (ProviderErrorKind::Broken, "did not answer")
    };
    let message = format!("{url} {what}: {}", innermost(error));
    ProviderError::new(provider, kind, presentable(&message, None))
}

/// The root cause. Outer errors only repeat the context and may contain the URL.
pub(super) fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

fn kind_of_status(status: u16, words: &str) -> ProviderErrorKind {
    use ProviderErrorKind as Kind;
    let lower = words.to_ascii_lowercase();
    let says = |list: &[&str]| list.iter().any(|word| lower.contains(word));
    match status {
        401..=403 => Kind::Unauthorized,
        429 if says(&NO_CREDIT) => Kind::Unauthorized,
        429 => Kind::RateLimited,
        408 => Kind::TimedOut,
        413 => Kind::TooLong,
        404 if lower.contains("model") || says(&UNKNOWN_MODEL) => Kind::UnknownModel,
        _ if says(&TOO_LONG) => Kind::TooLong,
        500.. => Kind::Unavailable,
        _ if says(&NO_CREDIT) => Kind::Unauthorized,
        400 | 422 if says(&["model_not_found"]) => Kind::UnknownModel,
        _ => Kind::Refused,
    }
}

fn kind_of_words(words: &str) -> ProviderErrorKind {
    use ProviderErrorKind as Kind;
    let lower = words.to_ascii_lowercase();
    let says = |list: &[&str]| list.iter().any(|word| lower.contains(word));
    if says(&TOO_LONG) {
        Kind::TooLong
    } else if says(&["authentication_error", "permission_error"]) || says(&NO_CREDIT) {
        Kind::Unauthorized
    } else if says(&["rate_limit"]) {
        Kind::RateLimited
    } else if says(&UNKNOWN_MODEL) {
        Kind::UnknownModel
    } else if says(&["invalid_request"]) {
        Kind::Refused
    } else {
        Kind::Unavailable
    }
}

/// Finds the error in `{"error": {…}}`, `{"error": "…"}`, or an unwrapped object.
fn error_of(value: &Value) -> Option<&Value> {
    let error = &value["error"];
    if error.is_object() || error.as_str().is_some_and(|text| !text.is_empty()) {
        return Some(error);
    }
    let is_bare = value["object"] == "error" || value["detail"].is_string();
    let is_message = value["message"].is_string() && value["choices"].is_null();
    (is_bare || is_message).then_some(value)
}

fn message_of(error: &Value) -> Option<String> {
    let texts = [error, &error["message"], &error["detail"], &error["error"]];
    texts.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// All fields that help to classify an error.
fn words(error: &Value) -> String {
    let fields = [
        &error["type"],
        &error["code"],
        error,
        &error["message"],
        &error["detail"],
    ];
    let texts = fields.into_iter().filter_map(Value::as_str);
    texts.collect::<Vec<_>>().join(" ")
}

/// Redacts the key, removes control characters and line breaks, and limits the length.
fn presentable(message: &str, key: Option<&Secret>) -> String {
    let redactor = Redactor::default();
    if let Some(key) = key {
        redactor.learn(key);
    }
    let message = redactor.redact(message);
    let line = message.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let mut line = line
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Parses `retry-after-ms` or `retry-after`.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| -> Option<f64> {
        let text = headers.get(name)?.to_str().ok()?;
        text.trim()
            .parse()
            .ok()
            .filter(|number: &f64| *number >= 0.0)
    };
    let seconds = number("retry-after-ms")
        .map(|milliseconds| milliseconds / 1000.0)
        .or_else(|| number("retry-after"))?;
    let most = MAX_RETRY_AFTER.as_secs_f64();
    Duration::try_from_secs_f64(seconds.min(most)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn response(
        status: u16,
        body: &str,
        headers: &[(&'static str, &'static str)],
    ) -> ProviderError {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, reqwest::header::HeaderValue::from_static(value));
        }
        refused(&ErrorResponse {
            provider: "openai",
            url: "http://localhost:1/v1/chat/completions",
            status,
            headers: &map,
            body: body.as_bytes(),
            key: Some(&Secret::new("sk-12345678")),
        })
    }

    #[test]
    fn a_refusal_is_told_by_its_status_and_its_words() {
        use ProviderErrorKind as Kind;
        let check = |status: u16, body: &str, kind: Kind, message: &str| {
            let error = response(status, body, &[]);
            assert_eq!(
                (error.kind, error.message.as_str()),
                (kind, message),
                "{status} {body}"
            );
        };
        let anthropic = |kind: &str, message: &str| {
            json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
        };
        let openai = |code: &str, message: &str| {
            json!({"error": {"message": message, "type": "x", "code": code}}).to_string()
        };
        check(
            401,
            &anthropic("authentication_error", "invalid x-api-key"),
            Kind::Unauthorized,
            "invalid x-api-key",
        );
        check(
            403,
            &anthropic("permission_error", "no"),
            Kind::Unauthorized,
            "no",
        );
        check(
            400,
            &anthropic("invalid_request_error", "prompt is too long: 9 > 8"),
            Kind::TooLong,
            "prompt is too long: 9 > 8",
        );
        check(
            400,
            &anthropic("invalid_request_error", "Your credit balance is too low"),
            Kind::Unauthorized,
            "Your credit balance is too low",
        );
        check(
            400,
            &anthropic("invalid_request_error", "messages: bad"),
            Kind::Refused,
            "messages: bad",
        );
        check(
            404,
            &anthropic("not_found_error", "model: claude-9"),
            Kind::UnknownModel,
            "model: claude-9",
        );
        check(
            413,
            &anthropic("request_too_large", "too large"),
            Kind::TooLong,
            "too large",
        );
        check(
            429,
            &anthropic("rate_limit_error", "slow"),
            Kind::RateLimited,
            "slow",
        );
        check(
            529,
            &anthropic("overloaded_error", "Overloaded"),
            Kind::Unavailable,
            "Overloaded",
        );
        check(
            400,
            &openai("context_length_exceeded", "long"),
            Kind::TooLong,
            "long",
        );
        check(
            429,
            &openai("insufficient_quota", "You exceeded your current quota"),
            Kind::Unauthorized,
            "You exceeded your current quota",
        );
        check(
            404,
            &openai("model_not_found", "no gpt-9"),
            Kind::UnknownModel,
            "no gpt-9",
        );
        // llama.cpp, Ollama, vLLM, and servers that are not model endpoints.
        check(
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            Kind::TooLong,
            "the request exceeds the available context size",
        );
        check(
            404,
            r#"{"error":"model \"x\" not found, try pulling it first"}"#,
            Kind::UnknownModel,
            "model \"x\" not found, try pulling it first",
        );
        check(
            400,
            r#"{"object":"error","message":"bad","type":"BadRequestError","code":400}"#,
            Kind::Refused,
            "bad",
        );
        check(404, r#"{"detail":"Not Found"}"#, Kind::Refused, "Not Found");
        check(
            503,
            "Loading\nmodel\u{7}",
            Kind::Unavailable,
            "Loading model",
        );
        check(
            502,
            "<html>bad gateway</html>",
            Kind::Unavailable,
            "http://localhost:1/v1/chat/completions answered with status 502",
        );
        check(
            404,
            "",
            Kind::Refused,
            "not found: http://localhost:1/v1/chat/completions",
        );
        check(
            307,
            "",
            Kind::Refused,
            "http://localhost:1/v1/chat/completions redirects elsewhere",
        );
    }

    #[test]
    fn the_key_is_never_repeated() {
        let error = response(
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-12345678."}}"#,
            &[],
        );
        assert_eq!(error.message, "Incorrect API key provided: ********.");
    }

    #[test]
    fn the_wait_is_believed_within_reason() {
        let check = |headers: &[(&'static str, &'static str)], wait: Option<u64>| {
            let expected = wait.map(Duration::from_millis);
            assert_eq!(
                response(429, "", headers).retry_after,
                expected,
                "{headers:?}"
            );
        };
        check(&[], None);
        check(&[("retry-after", "7")], Some(7000));
        check(&[("retry-after", " 0.5 ")], Some(500));
        check(
            &[("retry-after", "7"), ("retry-after-ms", "1500")],
            Some(1500),
        );
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "NaN")], None);
        check(&[("retry-after", "inf")], Some(86_400_000));
        check(&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], None);
    }

    #[test]
    fn an_error_in_a_stream_is_told_by_its_type() {
        use ProviderErrorKind as Kind;
        let check = |event: Value, kind: Option<Kind>| {
            assert_eq!(
                in_stream("x", &event).map(|error| error.kind),
                kind,
                "{event}"
            );
        };
        check(
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            Some(Kind::Unavailable),
        );
        check(
            json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}),
            Some(Kind::RateLimited),
        );
        check(
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}}),
            Some(Kind::Refused),
        );
        check(
            json!({"error": {"code": 400, "message": "exceeds the available context size"}}),
            Some(Kind::TooLong),
        );
        check(
            json!({"error": {"code": 502, "message": "upstream"}}),
            Some(Kind::Unavailable),
        );
        check(json!({"error": "out of memory"}), Some(Kind::Unavailable));
        check(json!({"type": "ping"}), None);
        check(json!({"choices": [], "error": null}), None);
    }
}
