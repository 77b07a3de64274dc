//! Models listed by a self-hosted endpoint, and the size of their context windows.
//!
//! No standard covers context windows: vLLM, LM Studio and gateways report them in the list of models, llama.cpp at
//! `/props`, Ollama at `/api/show`. The data is untrusted: names are sanitized before they are shown, and implausible
//! windows are ignored.

use std::borrow::Cow;
use std::time::Duration;
use switchboard_config::sort;

use reqwest::Url;
use serde_json::{Value, json};
use switchboard::internal::catalog::text::{cut, neutralise};
use tokio::time::timeout;

use super::ProviderError;
use super::http::Endpoint;

/// Timeout of one request. Starting a chat waits for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Windows outside this range are ignored.
const BELIEVED: std::ops::RangeInclusive<u64> = 512..=100_000_000;
/// Maximum number of suggested names.
const OFFERED: usize = 5;
/// Minimum similarity of a suggested name.
const ALIKE: f64 = 0.5;
/// Maximum length of a suggested name.
const LONGEST_NAME: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) id: String,
    /// The window if the list has it, and whether it is the configured one: the trained window is only an upper bound.
    window: Option<(u64, IsInUse)>,
}

type IsInUse = bool;

impl Offer {
    /// Whether the name is that of a model that cannot chat. Servers list those, too.
    pub(super) fn is_for_embeddings(&self) -> bool {
        let id = self.id.to_lowercase();
        ["embed", "rerank", "whisper"]
            .iter()
            .any(|word| id.contains(word))
    }
}

/// Result of looking up a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    Offered(Offer),
    /// No such model; `nearest` is sanitized.
    Unknown {
        nearest: Vec<String>,
        others: usize,
    },
    /// The endpoint lists no models, so any name is accepted.
    Untold,
}

/// Lists the models of an endpoint whose `url` is that of the list.
pub(super) async fn list(endpoint: &Endpoint) -> Result<Vec<Offer>, ProviderError> {
    let list = endpoint.get().await?;
    let list: Value = serde_json::from_slice(&list).unwrap_or_default();
    let offers = list["data"]
        .as_array()
        .or_else(|| list["models"].as_array());
    Ok(offers.into_iter().flatten().filter_map(offer).collect())
}

/// Looks up a name. An endpoint that does not answer counts as listing no models: its error surfaces with the first
/// request.
pub(super) async fn find(endpoint: &Endpoint, name: &str) -> Named {
    match timeout(PATIENCE, list(endpoint)).await {
        Ok(Ok(offers)) => choose(offers, name),
        _ => Named::Untold,
    }
}

/// Determines the window of a model, by every known method; `None` if the endpoint does not report it.
pub(super) async fn window(endpoint: &Endpoint, base: &Url, offer: &Offer) -> Option<u64> {
    if let Some((window, true)) = offer.window {
        return Some(window);
    }
    // llama.cpp and Ollama serve these next to `/v1`, each at a path that the other does not have.
    let (props, shown) = tokio::join!(
        props(endpoint, base),
        shown_by_ollama(endpoint, base, &offer.id)
    );
    let trained = offer.window.map(|(window, _)| window);
    props.or(shown).or(trained)
}

fn offer(item: &Value) -> Option<Offer> {
    let names = [&item["id"], &item["name"], &item["model"]];
    let id = names.into_iter().find_map(Value::as_str)?;
    // vLLM, LM Studio, llama.cpp and gateways.
    let in_use = [
        &item["max_model_len"],
        &item["loaded_context_length"],
        &item["meta"]["n_ctx"],
        &item["context_length"],
        &item["context_window"],
        &item["top_provider"]["context_length"],
    ];
    let trained = [&item["meta"]["n_ctx_train"], &item["max_context_length"]];
    let in_use = in_use.into_iter().find_map(believed);
    let trained = || trained.into_iter().find_map(believed);
    let window = match in_use {
        Some(window) => Some((window, true)),
        None => trained().map(|window| (window, false)),
    };
    Some(Offer {
        id: id.to_owned(),
        window,
    })
}

fn believed(value: &Value) -> Option<u64> {
    value.as_u64().filter(|window| BELIEVED.contains(window))
}

async fn props(endpoint: &Endpoint, base: &Url) -> Option<u64> {
    let props = ask(&at(endpoint, base, "props"), None).await?;
    let windows = [
        &props["default_generation_settings"]["n_ctx"],
        &props["n_ctx"],
    ];
    windows.into_iter().find_map(believed)
}

async fn shown_by_ollama(endpoint: &Endpoint, base: &Url, id: &str) -> Option<u64> {
    let question = json!({"model": id}).to_string();
    let shown = ask(&at(endpoint, base, "api/show"), Some(question)).await?;
    // The configured window takes precedence over the trained one.
    let parameters = shown["parameters"].as_str().unwrap_or_default();
    let set_up = parameters.lines().find_map(|line| {
        let value = line.trim().strip_prefix("num_ctx")?.trim();
        value
            .parse()
            .ok()
            .filter(|window| BELIEVED.contains(window))
    });
    let trained = || {
        let info = shown["model_info"].as_object()?;
        let mut lengths = info
            .iter()
            .filter(|(key, _)| key.ends_with(".context_length"));
        lengths.find_map(|(_, value)| believed(value))
    };
    set_up.or_else(trained)
}

async fn ask(endpoint: &Endpoint, question: Option<String>) -> Option<Value> {
    let answer = timeout(PATIENCE, endpoint.fetch(question)).await.ok()?;
    serde_json::from_slice(&answer.ok()?).ok()
}

/// The same endpoint at a path next to `/v1`.
fn at(endpoint: &Endpoint, base: &Url, path: &str) -> Endpoint {
    let mut endpoint = endpoint.clone();
    let folder = base.path().trim_end_matches('/');
    let folder = folder.strip_suffix("/v1").unwrap_or(folder);
    endpoint.url = base.clone();
    endpoint.url.set_path(&format!("{folder}/{path}"));
    endpoint
}

/// Finds a model by name. The tag or the folder may be left out if the result is unique, and a variant of a listed
/// model may be requested with a colon.
fn choose(mut offers: Vec<Offer>, name: &str) -> Named {
    if offers.is_empty() {
        return Named::Untold;
    }
    let lower = name.to_lowercase();
    let bare = |id: &str| id.rsplit('/').next().unwrap_or(id).to_lowercase();
    let is_exactly = |offer: &Offer| offer.id == name;
    let is_spelled = |offer: &Offer| offer.id.to_lowercase() == lower;
    let is_latest = |offer: &Offer| offer.id.to_lowercase() == format!("{lower}:latest");
    let is_bare = |offer: &Offer| bare(&offer.id) == lower;
    let rules: [&dyn Fn(&Offer) -> bool; 4] = [&is_exactly, &is_spelled, &is_latest, &is_bare];
    for rule in rules {
        let mut fitting = offers.iter().enumerate().filter(|(_, offer)| rule(offer));
        if let (Some((place, _)), None) = (fitting.next(), fitting.next()) {
            return Named::Offered(offers.swap_remove(place));
        }
    }
    if let Some((model, _)) = name.rsplit_once(':')
        && let Some(offer) = offers.iter().find(|offer| offer.id == model)
    {
        return Named::Offered(Offer {
            id: name.to_owned(),
            window: offer.window,
        });
    }
    let alike = |offer: &Offer| {
        let whole = strsim::normalized_damerau_levenshtein(&offer.id.to_lowercase(), &lower);
        let short = strsim::normalized_damerau_levenshtein(&bare(&offer.id), &lower);
        whole.max(short)
    };
    let count = offers.len();
    let mut scored: Vec<(f64, &Offer)> = offers
        .iter()
        .map(|offer| {
            let has_it = offer.id.to_lowercase().contains(&lower);
            (if has_it { 1.0 } else { alike(offer) }, offer)
        })
        .collect();
    // Stable sort: equally similar names stay in the endpoint's order.
    sort::by(&mut scored, |one, other| other.0.total_cmp(&one.0));
    let has_alike = scored.first().is_some_and(|(score, _)| *score >= ALIKE);
    let shown = |offer: &Offer| {
        let name: Cow<'_, str> = neutralise(&offer.id);
        cut(name, LONGEST_NAME).replace(['\n', '\t'], " ")
    };
    let nearest: Vec<String> = if has_alike {
        let alike = scored.iter().filter(|(score, _)| *score >= ALIKE);
        alike.take(OFFERED).map(|(_, offer)| shown(offer)).collect()
    } else {
        offers.iter().take(OFFERED).map(shown).collect()
    };
    Named::Unknown {
        others: count - nearest.len(),
        nearest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(ids: &[&str]) -> Vec<Offer> {
        let offers = ids.iter().map(|id| offer(&json!({"id": id})).unwrap());
        offers.collect()
    }

    #[test]
    fn windows_are_read_as_each_kind_of_server_tells_them() {
        for (item, expected) in [
            (
                json!({"id": "vllm", "max_model_len": 16_384}),
                Some((16_384, true)),
            ),
            (
                json!({"id": "lm-studio", "loaded_context_length": 4_096, "max_context_length": 131_072}),
                Some((4_096, true)),
            ),
            (
                json!({"id": "llama.cpp", "meta": {"n_ctx_train": 131_072}}),
                Some((131_072, false)),
            ),
            (
                json!({"id": "llama.cpp", "meta": {"n_ctx_train": 131_072, "n_ctx": 8_192}}),
                Some((8_192, true)),
            ),
            (
                json!({"id": "gateway", "context_length": 200_000}),
                Some((200_000, true)),
            ),
            (
                json!({"name": "other", "context_window": 32_768}),
                Some((32_768, true)),
            ),
            // Implausibly small or large.
            (json!({"id": "tiny", "max_model_len": 1}), None),
            (json!({"id": "huge", "context_length": u64::MAX}), None),
            (json!({"id": "text", "context_length": "32768"}), None),
            (json!({"id": "silent"}), None),
        ] {
            assert_eq!(offer(&item).unwrap().window, expected, "{item}");
        }
        assert_eq!(offer(&json!({"object": "model"})), None);
        assert_eq!(offer(&json!("text")), None);
    }

    #[test]
    fn a_name_means_one_model_or_is_refused_with_the_nearest() {
        let known = offers(&[
            "qwen3:8b",
            "llama3.2:latest",
            "openai/gpt-oss-20b",
            "vendor/one",
            "other/one",
        ]);
        let check = |name: &str, expected: &str| match choose(known.clone(), name) {
            Named::Offered(offer) => assert_eq!(offer.id, expected, "{name}"),
            other => panic!("{name}: {other:?}"),
        };
        check("qwen3:8b", "qwen3:8b");
        check("QWEN3:8B", "qwen3:8b");
        check("llama3.2", "llama3.2:latest");
        check("gpt-oss-20b", "openai/gpt-oss-20b");
        check("vendor/one", "vendor/one");
        // A variant of a listed model.
        check("vendor/one:free", "vendor/one:free");
        let refused = |name: &str| match choose(known.clone(), name) {
            Named::Unknown { nearest, others } => (nearest, others),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(refused("qwen3:4b"), (vec!["qwen3:8b".to_owned()], 4));
        assert_eq!(refused("lama3.2").0, ["llama3.2:latest"]);
        // Ambiguous.
        assert_eq!(refused("one").0, ["vendor/one", "other/one"]);
        // Without similar names, the first models are listed.
        let (nearest, others) = refused("nosuchmodel");
        assert_eq!((nearest.len(), others), (5, 0));
        assert_eq!(choose(Vec::new(), "any"), Named::Untold);
        let hostile = offers(&["evil\u{1b}[2J\u{202e}\nname"]);
        let Named::Unknown { nearest, .. } = choose(hostile, "x") else {
            panic!("it is not there");
        };
        assert!(
            nearest[0]
                .chars()
                .all(|letter| !letter.is_control() && letter != '\u{202e}'),
            "{nearest:?}"
        );
    }
}
