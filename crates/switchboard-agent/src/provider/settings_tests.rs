use super::*;

const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-ant");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "sk-oai");
const LOCAL: (&str, &str) = ("OPENAI_BASE_URL", "http://localhost:8080");

fn settings(variables: &[(&str, &str)], model: Option<&str>) -> ProviderSettings {
    let variable = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    ProviderSettings {
        model: model.map(str::to_owned),
        ..ProviderSettings::from_variables(variable)
    }
}

#[test]
fn a_name_leads_to_an_endpoint() {
    let check = |variables: &[(&str, &str)], model: Option<&str>, kind: Kind, id: Option<&str>| {
        let chosen = settings(variables, model).choose().unwrap();
        let id = id.map(str::to_owned);
        assert_eq!(chosen, Choice { kind, id }, "{variables:?} {model:?}");
    };
    check(
        &[ANTHROPIC],
        None,
        Kind::Anthropic,
        Some(models::DEFAULT_ANTHROPIC),
    );
    check(&[OPENAI], None, Kind::OpenAi, Some(models::DEFAULT_OPENAI));
    check(&[LOCAL], None, Kind::Local, None);
    check(&[OPENAI, LOCAL], None, Kind::Local, None);
    check(
        &[ANTHROPIC, OPENAI, LOCAL],
        None,
        Kind::Anthropic,
        Some(models::DEFAULT_ANTHROPIC),
    );
    check(
        &[ANTHROPIC, OPENAI],
        Some("gpt-4o"),
        Kind::OpenAi,
        Some("gpt-4o"),
    );
    check(
        &[ANTHROPIC, OPENAI],
        Some("openai/gpt-4o"),
        Kind::OpenAi,
        Some("gpt-4o"),
    );
    check(
        &[ANTHROPIC, OPENAI],
        Some(" claude-opus-5 "),
        Kind::Anthropic,
        Some("claude-opus-5"),
    );
    check(
        &[ANTHROPIC, OPENAI],
        Some("anthropic/claude-x"),
        Kind::Anthropic,
        Some("claude-x"),
    );
    check(&[LOCAL], Some("qwen3:4b"), Kind::Local, Some("qwen3:4b"));
    check(
        &[LOCAL],
        Some("openai/openai/gpt-oss-20b"),
        Kind::Local,
        Some("openai/gpt-oss-20b"),
    );
    // A gateway that also serves other vendors' models.
    check(
        &[OPENAI, LOCAL],
        Some("claude-opus-5"),
        Kind::Local,
        Some("claude-opus-5"),
    );
    check(
        &[("ANTHROPIC_BASE_URL", "http://gateway")],
        None,
        Kind::Anthropic,
        Some(models::DEFAULT_ANTHROPIC),
    );
    check(
        &[ANTHROPIC, ("OPENAI_API_KEY", " ")],
        Some(""),
        Kind::Anthropic,
        Some(models::DEFAULT_ANTHROPIC),
    );
}

#[test]
fn what_is_missing_is_told() {
    let check = |variables: &[(&str, &str)], model: Option<&str>, message: &str| {
        let error = settings(variables, model).choose().unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(error.hint().is_some());
    };
    check(
        &[],
        None,
        "no model is configured: neither ANTHROPIC_API_KEY nor OPENAI_API_KEY nor OPENAI_BASE_URL is set",
    );
    check(
        &[OPENAI],
        Some("claude-opus-5"),
        "the model claude-opus-5 needs a key: ANTHROPIC_API_KEY is not set",
    );
    check(
        &[ANTHROPIC],
        Some("gpt-5"),
        "the model gpt-5 needs a key: OPENAI_API_KEY is not set",
    );
    check(
        &[],
        Some("openai/x"),
        "the model openai/x needs a key: OPENAI_API_KEY is not set",
    );
}

#[tokio::test]
async fn bad_settings_are_told_without_their_secrets() {
    let check = async |variables: &[(&str, &str)], message: &str| {
        let error = settings(variables, Some("gpt-5"))
            .provider()
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), message);
    };
    check(
        &[("OPENAI_BASE_URL", "localhost:8080")],
        "OPENAI_BASE_URL is not a valid URL: it does not begin with http:// or https://",
    )
    .await;
    check(
        &[("OPENAI_BASE_URL", "nonsense")],
        "OPENAI_BASE_URL is not a valid URL: relative URL without a base",
    )
    .await;
    check(
        &[("OPENAI_API_KEY", "sk-\nabc")],
        "OPENAI_API_KEY is not a valid key: it contains characters not allowed in an HTTP header",
    )
    .await;
    let shown = format!("{:?}", settings(&[ANTHROPIC, OPENAI], None));
    assert!(!shown.contains("sk-"), "{shown}");
    let provider = settings(&[ANTHROPIC], None).provider().await.unwrap();
    let shown = format!("{provider:?}");
    assert!(!shown.contains("sk-"), "{shown}");
}

#[tokio::test]
async fn models_that_reason_between_calls_use_the_responses_api() {
    let api = async |variables: &[(&str, &str)], model: &str| {
        let provider = settings(variables, Some(model)).provider().await.unwrap();
        let shown = format!("{provider:?}");
        (
            shown.contains("OpenAiResponses"),
            shown.contains("/v1/responses"),
        )
    };
    for model in ["gpt-5", "gpt-5.5", "gpt-5.5-2026-04-01", "gpt-6-sol", "o3"] {
        assert_eq!(api(&[OPENAI], model).await, (true, true), "{model}");
    }
    for model in ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest"] {
        assert_eq!(api(&[OPENAI], model).await, (false, false), "{model}");
    }
    // Other servers rarely have it.
    assert_eq!(api(&[OPENAI, LOCAL], "gpt-5.5").await, (false, false));
}

#[test]
fn addresses_are_completed() {
    let check = |variable: &'static str, base: &str, path: &str, expected: &str| {
        let base = base_url(variable, base).unwrap();
        assert_eq!(below(&base, path).as_str(), expected);
    };
    let anthropic = "ANTHROPIC_BASE_URL";
    check(
        anthropic,
        anthropic::BASE_URL,
        "messages",
        "https://api.anthropic.com/v1/messages",
    );
    check(
        anthropic,
        "http://gateway/v1/",
        "messages",
        "http://gateway/v1/messages",
    );
    check(
        anthropic,
        "http://gateway/anthropic",
        "messages",
        "http://gateway/anthropic/v1/messages",
    );
    let openai = "OPENAI_BASE_URL";
    check(
        openai,
        openai::BASE_URL,
        "models",
        "https://api.openai.com/v1/models",
    );
    check(
        openai,
        "http://localhost:8080",
        "chat/completions",
        "http://localhost:8080/v1/chat/completions",
    );
    check(
        openai,
        "http://localhost:8080/v1/",
        "chat/completions",
        "http://localhost:8080/v1/chat/completions",
    );
    check(
        openai,
        "http://host/api/v3?key=1",
        "models",
        "http://host/api/v3/models?key=1",
    );
}
