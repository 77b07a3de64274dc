//! Finds model servers on this machine at their usual ports, for a user who has configured none.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use reqwest::Url;
use reqwest::header::HeaderMap;
use switchboard::internal::transport::http::{HttpClient, HttpSettings, ProxySettings};
use tokio::time::timeout;

use super::Provider;
use super::http::Endpoint;
use super::models::Kind;
use super::offers;
use super::retry::Retrying;
use super::settings::{Choice, ProviderSettings};

/// Variable with the addresses to try instead of the usual ones; `off` tries none.
const VARIABLE: &str = "SWITCHBOARD_LOCAL_MODELS";

/// Deadline of one server: a machine that swaps is slow, but the user waits.
const PATIENCE: Duration = Duration::from_secs(3);

/// Servers and their usual addresses, in order of preference.
const USUAL: [(&str, &str); 3] = [
    ("Ollama", "http://127.0.0.1:11434"),
    ("LM Studio", "http://127.0.0.1:1234"),
    ("llama.cpp", "http://127.0.0.1:8080"),
];

/// A model server that may run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// Shown to the user.
    pub name: String,
    /// Address without a path.
    pub url: String,
}

impl LocalServer {
    /// The servers to look for: the usual ones, unless `SWITCHBOARD_LOCAL_MODELS` names others or none.
    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Vec<Self> {
        let Some(value) = variable(VARIABLE) else {
            let usual = USUAL.iter().map(|(name, url)| Self {
                name: (*name).to_owned(),
                url: (*url).to_owned(),
            });
            return usual.collect();
        };
        let urls = value.split(',').map(str::trim);
        let urls = urls.filter(|url| !url.is_empty() && !url.eq_ignore_ascii_case("off"));
        let named = urls.map(|url| {
            let usual = USUAL.iter().find(|(_, usual)| *usual == url);
            Self {
                name: usual
                    .map_or("the model server", |(name, _)| name)
                    .to_owned(),
                url: url.to_owned(),
            }
        });
        named.collect()
    }
}

impl ProviderSettings {
    /// Asks all servers at once, and returns a provider for the first one that has a model, or the requested model.
    pub(super) async fn find_local(&self) -> Option<Arc<dyn Provider>> {
        if self.local.is_empty() {
            return None;
        }
        let client = match &self.client {
            Some(client) => client.clone(),
            // A proxy must not see requests to this machine.
            None => HttpClient::new(HttpSettings {
                proxy: ProxySettings::default(),
                ..self.http.clone()
            })
            .ok()?,
        };
        let mut probes = FuturesOrdered::new();
        for server in &self.local {
            let probe = self.probe(server, client.pooled().clone());
            probes.push_back(timeout(PATIENCE, probe).boxed());
        }
        while let Some(found) = probes.next().await {
            if let Ok(Some(found)) = found {
                return Some(found);
            }
        }
        None
    }

    async fn probe(
        &self,
        server: &LocalServer,
        client: reqwest::Client,
    ) -> Option<Arc<dyn Provider>> {
        let name = format!("{} at {}", server.name, server.url);
        let list = Endpoint {
            provider: name.clone(),
            client: client.clone(),
            url: Url::parse(&server.url).ok()?.join("/v1/models").ok()?,
            headers: HeaderMap::new(),
            key: None,
            idle: PATIENCE,
        };
        // Whatever else listens on the port has no list of models.
        if offers::list(&list).await.ok()?.is_empty() {
            return None;
        }
        let settings = Self {
            openai_url: Some(server.url.clone()),
            ..self.clone()
        };
        let id = self.model.as_deref().map(str::trim);
        let id = id.filter(|id| !id.is_empty()).map(str::to_owned);
        let choice = Choice {
            kind: Kind::Local,
            id,
        };
        let mut openai = settings.chat_completions(client, choice).await.ok()?;
        openai.model.provider.clone_from(&name);
        openai.endpoint.provider = name;
        Some(Arc::new(Retrying::new(Arc::new(openai), self.retry)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_test::model::{ScriptedModel, Turn};

    use super::super::SettingsError;
    use super::*;

    fn settings(servers: &str, model: Option<&str>) -> ProviderSettings {
        let variable = |name: &str| (name == VARIABLE).then(|| servers.to_owned());
        ProviderSettings {
            model: model.map(str::to_owned),
            ..ProviderSettings::from_variables(variable)
        }
    }

    fn address(model: &ScriptedModel) -> String {
        model.anthropic_url()
    }

    #[test]
    fn the_variable_names_other_servers_or_none() {
        let urls = |value: Option<&str>| {
            let servers = LocalServer::from_variables(|_| value.map(str::to_owned));
            let named = servers.into_iter().map(|server| (server.name, server.url));
            named.collect::<Vec<_>>()
        };
        assert_eq!(urls(None).len(), 3);
        assert_eq!(urls(None)[0].0, "Ollama");
        assert_eq!(urls(Some("")), []);
        assert_eq!(urls(Some(" off ")), []);
        let two = urls(Some("http://127.0.0.1:1234, http://127.0.0.1:9"));
        assert_eq!(two[0].0, "LM Studio");
        assert_eq!(two[1].1, "http://127.0.0.1:9");
    }

    #[tokio::test]
    async fn the_first_server_with_a_model_is_used() {
        let other = ScriptedModel::start(Vec::new()).await.unwrap();
        // A web application on the port of a model server.
        other.answers("/v1/models", json!({"hello": "world"}));
        let model = ScriptedModel::start(vec![Turn::text("hi")]).await.unwrap();
        let embedding = json!({"id": "nomic-embed-text:latest"});
        model.answers(
            "/v1/models",
            json!({"object": "list", "data": [embedding, {"id": "qwen3:8b", "max_model_len": 8192}]}),
        );
        let servers = format!("http://127.0.0.1:9,{},{}", address(&other), address(&model));
        let found = settings(&servers, None).provider().await.unwrap();
        assert_eq!(found.model().id, "qwen3:8b");
        assert_eq!(found.model().window, 8192);
        let name = format!("the model server at {}", address(&model));
        assert_eq!(found.model().provider, name);
        // A requested model decides which server it is.
        let found = settings(&servers, Some("qwen3")).provider().await;
        assert!(
            matches!(found, Err(SettingsError::NoKey { .. })),
            "{found:?}"
        );
        let found = settings(&servers, Some("QWEN3:8b"))
            .provider()
            .await
            .unwrap();
        assert_eq!(found.model().id, "qwen3:8b");
    }

    #[tokio::test]
    async fn nothing_is_asked_if_a_key_is_set_or_another_provider_named() {
        let model = ScriptedModel::start(Vec::new()).await.unwrap();
        let servers = address(&model);
        let found = settings(&servers, Some("claude-opus-5")).provider().await;
        assert!(
            matches!(found, Err(SettingsError::NoKey { .. })),
            "{found:?}"
        );
        let with_key = ProviderSettings {
            openai_key: Some(switchboard_config::secret::Secret::new("key")),
            ..settings(&servers, None)
        };
        let found = with_key.provider().await.unwrap();
        assert_eq!(found.model().provider, "openai");
        let nothing = settings("off", None).provider().await;
        assert!(
            matches!(nothing, Err(SettingsError::Nothing)),
            "{nothing:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let nothing = settings(&address, None).provider().await;
        assert!(
            matches!(nothing, Err(SettingsError::Nothing)),
            "{nothing:?}"
        );
    }
}
