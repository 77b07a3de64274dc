//! Creates a provider from keys, URLs and the name of a model.
//!
//! Decides which endpoint serves a name, and which model is the default. Does not read the environment: values are
//! passed in.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use switchboard::internal::transport::http::{HttpClient, HttpSettings};
use switchboard::transport::TransportError;
use switchboard_config::secret::Secret;

use super::anthropic::{self, Anthropic};
use super::http::{Endpoint, secret_header};
use super::local::LocalServer;
use super::models::{self, Kind};
use super::offers::{self, Named};
use super::openai::{self, Limit, OpenAi};
use super::responses::OpenAiResponses;
use super::retry::{RetryPolicy, Retrying};
use super::{Provider, ProviderError};

/// Idle timeout: a model may think for minutes without output.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// Idle timeout of a self-hosted server, which may need long to process a long conversation.
const IDLE_LOCAL: Duration = Duration::from_secs(20 * 60);

/// Keys, URLs and the name of a model, as set by the user.
#[derive(Debug, Clone, Default)]
pub struct ProviderSettings {
    /// `ANTHROPIC_API_KEY`.
    pub anthropic_key: Option<Secret>,
    /// `ANTHROPIC_BASE_URL`.
    pub anthropic_url: Option<String>,
    /// `OPENAI_API_KEY`.
    pub openai_key: Option<Secret>,
    /// `OPENAI_BASE_URL`.
    pub openai_url: Option<String>,
    /// `anthropic/NAME`, `openai/NAME`, or a bare name; `None`: the default of the endpoint.
    pub model: Option<String>,
    /// Context window of a self-hosted model, in tokens; `None`: ask the server.
    pub window: Option<u64>,
    /// Servers on this machine to look for if neither a key nor a URL is set.
    pub local: Vec<LocalServer>,
    /// Whether to use the Responses API; `None`: if the model is one of `OpenAI` that reasons between its calls.
    pub responses: Option<bool>,
    /// Retries of failed requests.
    pub retry: RetryPolicy,
    /// Proxies, certificates and connect timeout.
    pub http: HttpSettings,
    /// Existing client to use instead of creating one from `http`.
    pub client: Option<HttpClient>,
}

/// Why no provider could be created.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No key or URL is set.
    #[error(
        "no model is configured: neither ANTHROPIC_API_KEY nor OPENAI_API_KEY nor OPENAI_BASE_URL is set"
    )]
    Nothing,
    /// The endpoint of the chosen model requires a key.
    #[error("the model {model} needs a key: {variable} is not set")]
    NoKey {
        /// Name of the model.
        model: String,
        /// Environment variable to set.
        variable: &'static str,
    },
    /// A URL is invalid.
    #[error("{variable} is not a valid URL: {reason}")]
    BadUrl {
        /// Environment variable that holds it.
        variable: &'static str,
        /// Parser error.
        reason: String,
    },
    /// A key contains characters not allowed in an HTTP header.
    #[error("{variable} is not a valid key: it contains characters not allowed in an HTTP header")]
    BadKey {
        /// Environment variable that holds it.
        variable: &'static str,
    },
    /// A self-hosted server lists no models.
    #[error("{url} offers no model")]
    NoModels {
        /// URL of the list, without credentials.
        url: String,
    },
    /// A self-hosted server lists models, but not this one.
    #[error("{url} has no model `{model}`")]
    UnknownModel {
        /// The requested name.
        model: String,
        /// URL of the list, without credentials.
        url: String,
        /// The most similar names, or the first ones if none is similar; sanitized.
        nearest: Vec<String>,
        /// Number of models not in `nearest`.
        others: usize,
    },
    /// A self-hosted server could not list its models.
    #[error("cannot list the server's models: {0}")]
    Asking(#[from] ProviderError),
    /// The HTTP client could not be created.
    #[error(transparent)]
    Client(#[from] TransportError),
}

impl SettingsError {
    /// Suggested remedy; `None` if the message suffices.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        let hint = match self {
            Self::Nothing | Self::NoKey { .. } => {
                "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or OPENAI_BASE_URL for a self-hosted server, \
                 such as http://localhost:11434/v1"
            }
            Self::BadUrl { .. } => "an address looks like http://localhost:8080/v1",
            Self::NoModels { .. } | Self::Asking(_) => "name a model with --model",
            Self::UnknownModel {
                nearest, others, ..
            } => {
                let mut hint = format!("it has {}", nearest.join(", "));
                if *others > 0 {
                    let _ = write!(hint, " and {others} more");
                }
                return Some(hint.into());
            }
            _ => return None,
        };
        Some(hint.into())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) kind: Kind,
    /// `None`: the first model that the server lists.
    pub(super) id: Option<String>,
}

impl ProviderSettings {
    /// Reads the settings with `variable`, which looks up an environment variable.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let find = |name: &str| {
            let value = variable(name)?;
            let value = value.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        Self {
            anthropic_key: find("ANTHROPIC_API_KEY").map(Secret::new),
            anthropic_url: find("ANTHROPIC_BASE_URL"),
            openai_key: find("OPENAI_API_KEY").map(Secret::new),
            openai_url: find("OPENAI_BASE_URL"),
            local: LocalServer::from_variables(&variable),
            ..Self::default()
        }
    }

    /// Creates the provider, with retries.
    ///
    /// Sends requests only to a self-hosted server: for its list of models, and for the context window of the chosen
    /// one. If neither a key nor a URL is set, looks for a server on this machine, for a few seconds at most.
    pub async fn provider(&self) -> Result<Arc<dyn Provider>, SettingsError> {
        let choice = match self.choose() {
            Ok(choice) => choice,
            Err(error) if self.may_be_local() => return self.find_local().await.ok_or(error),
            Err(error) => return Err(error),
        };
        let client = match &self.client {
            Some(client) => client.clone(),
            None => HttpClient::new(self.http.clone())?,
        };
        let client = client.pooled().clone();
        let provider: Arc<dyn Provider> = match choice.kind {
            Kind::Anthropic => Arc::new(self.anthropic(client, choice.id)?),
            Kind::OpenAi | Kind::Local => self.openai(client, choice).await?,
        };
        Ok(Arc::new(Retrying::new(provider, self.retry)))
    }

    /// Whether a key or a URL is set.
    pub fn has_endpoint(&self) -> bool {
        self.has_anthropic() || self.has_openai()
    }

    fn has_anthropic(&self) -> bool {
        self.anthropic_key.is_some() || self.anthropic_url.is_some()
    }

    fn has_openai(&self) -> bool {
        self.openai_key.is_some() || self.openai_url.is_some()
    }

    /// Whether a server on this machine may have the model.
    fn may_be_local(&self) -> bool {
        let model = self.model.as_deref().unwrap_or_default().trim();
        let is_theirs = ["claude", "anthropic/", "openai/"]
            .iter()
            .any(|start| model.starts_with(start));
        !self.has_endpoint() && !is_theirs
    }

    fn choose(&self) -> Result<Choice, SettingsError> {
        let (has_anthropic, has_openai) = (self.has_anthropic(), self.has_openai());
        let of_openai = if self.openai_url.is_some() {
            Kind::Local
        } else {
            Kind::OpenAi
        };
        let Some(model) = self
            .model
            .as_deref()
            .map(str::trim)
            .filter(|model| !model.is_empty())
        else {
            return match (has_anthropic, of_openai) {
                (true, _) => Ok(Choice::of(Kind::Anthropic, models::DEFAULT_ANTHROPIC)),
                (false, Kind::Local) => Ok(Choice {
                    kind: Kind::Local,
                    id: None,
                }),
                (false, _) if has_openai => Ok(Choice::of(Kind::OpenAi, models::DEFAULT_OPENAI)),
                (false, _) => Err(SettingsError::Nothing),
            };
        };
        let choice = if let Some(id) = model.strip_prefix("anthropic/") {
            Choice::of(Kind::Anthropic, id)
        } else if let Some(id) = model.strip_prefix("openai/") {
            Choice::of(of_openai, id)
        } else if model.starts_with("claude") && (has_anthropic || of_openai != Kind::Local) {
            // A gateway may serve Claude models too; an Anthropic key takes precedence.
            Choice::of(Kind::Anthropic, model)
        } else {
            Choice::of(of_openai, model)
        };
        let (has_any, variable) = match choice.kind {
            Kind::Anthropic => (has_anthropic, "ANTHROPIC_API_KEY"),
            Kind::OpenAi | Kind::Local => (has_openai, "OPENAI_API_KEY"),
        };
        if !has_any {
            let model = model.to_owned();
            return Err(SettingsError::NoKey { model, variable });
        }
        Ok(choice)
    }

    fn anthropic(
        &self,
        client: reqwest::Client,
        id: Option<String>,
    ) -> Result<Anthropic, SettingsError> {
        let base = self.anthropic_url.as_deref().unwrap_or(anthropic::BASE_URL);
        let base = base_url("ANTHROPIC_BASE_URL", base)?;
        let mut headers = HeaderMap::new();
        let version = HeaderValue::from_static(anthropic::VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
        if let Some(key) = &self.anthropic_key {
            let name = HeaderName::from_static("x-api-key");
            secret_header(&mut headers, name, key.expose()).map_err(|_| SettingsError::BadKey {
                variable: "ANTHROPIC_API_KEY",
            })?;
        }
        let id = id.unwrap_or_else(|| models::DEFAULT_ANTHROPIC.to_owned());
        let known = models::look_up(Kind::Anthropic, &id);
        let endpoint = Endpoint {
            provider: anthropic::NAME.to_owned(),
            client,
            url: below(&base, "messages"),
            headers,
            key: self.anthropic_key.clone(),
            idle: IDLE,
        };
        Ok(Anthropic {
            endpoint,
            model: known.model,
            thinking: known.thinking,
        })
    }

    /// A client of `OpenAI` or a compatible server, with the API that suits the model.
    async fn openai(
        &self,
        client: reqwest::Client,
        choice: Choice,
    ) -> Result<Arc<dyn Provider>, SettingsError> {
        let openai = self.chat_completions(client, choice).await?;
        let is_theirs = openai.limit == Limit::MaxCompletionTokens;
        let suits = || is_theirs && models::look_up(Kind::OpenAi, &openai.model.id).responses;
        if !self.responses.unwrap_or_else(suits) {
            return Ok(Arc::new(openai));
        }
        let OpenAi {
            mut endpoint,
            model,
            ..
        } = openai;
        let base = self.openai_url.as_deref().unwrap_or(openai::BASE_URL);
        endpoint.url = below(&base_url("OPENAI_BASE_URL", base)?, "responses");
        Ok(Arc::new(OpenAiResponses {
            endpoint,
            model,
            is_without_summaries: AtomicBool::new(false),
        }))
    }

    /// A client for the Chat Completions API.
    pub(super) async fn chat_completions(
        &self,
        client: reqwest::Client,
        choice: Choice,
    ) -> Result<OpenAi, SettingsError> {
        let base = self.openai_url.as_deref().unwrap_or(openai::BASE_URL);
        let base = base_url("OPENAI_BASE_URL", base)?;
        let is_theirs = base.host_str() == Some("api.openai.com");
        let kind = if is_theirs { Kind::OpenAi } else { choice.kind };
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.openai_key {
            let value = format!("Bearer {}", key.expose());
            secret_header(&mut headers, AUTHORIZATION, &value).map_err(|_| {
                SettingsError::BadKey {
                    variable: "OPENAI_API_KEY",
                }
            })?;
        }
        let mut endpoint = Endpoint {
            provider: openai::NAME.to_owned(),
            client,
            url: below(&base, "models"),
            headers,
            key: self.openai_key.clone(),
            idle: if kind == Kind::Local {
                IDLE_LOCAL
            } else {
                IDLE
            },
        };
        let model = match (kind, choice.id) {
            (Kind::Local, id) => self.of_ones_own(&endpoint, &base, id).await?,
            (_, Some(id)) => models::describe(kind, &id),
            (_, None) => models::describe(kind, models::DEFAULT_OPENAI),
        };
        let no_reasoning_with_tools = models::look_up(kind, &model.id).no_reasoning_with_tools;
        endpoint.url = below(&base, "chat/completions");
        let limit = if is_theirs {
            Limit::MaxCompletionTokens
        } else {
            Limit::MaxTokens
        };
        Ok(OpenAi {
            endpoint,
            model,
            limit,
            no_reasoning_with_tools: AtomicBool::new(no_reasoning_with_tools),
            is_blind: AtomicBool::new(false),
        })
    }

    /// Describes a model of a self-hosted server: the named one, or the first in the list.
    async fn of_ones_own(
        &self,
        endpoint: &Endpoint,
        base: &Url,
        id: Option<String>,
    ) -> Result<super::Model, SettingsError> {
        let offer = if let Some(id) = id {
            match offers::find(endpoint, &id).await {
                Named::Offered(offer) => offer,
                Named::Untold => return Ok(self.described(&id, None)),
                Named::Unknown { nearest, others } => {
                    return Err(SettingsError::UnknownModel {
                        model: id,
                        url: endpoint.shown(),
                        nearest,
                        others,
                    });
                }
            }
        } else {
            let offers = offers::list(endpoint).await?;
            let can_chat = offers.iter().position(|offer| !offer.is_for_embeddings());
            let first = offers.into_iter().nth(can_chat.unwrap_or_default());
            let url = || endpoint.shown();
            first.ok_or_else(|| SettingsError::NoModels { url: url() })?
        };
        let reported = match self.window {
            Some(_) => None,
            None => offers::window(endpoint, base, &offer).await,
        };
        Ok(self.described(&offer.id, reported))
    }

    /// Describes a model of a self-hosted server. The user's setting takes precedence over the reported window.
    fn described(&self, id: &str, reported: Option<u64>) -> super::Model {
        let mut model = models::describe(Kind::Local, id);
        if let Some(window) = self.window.or(reported) {
            model.window = window;
            model.max_output = model.max_output.min(window / 2);
        }
        model
    }
}

impl Choice {
    fn of(kind: Kind, id: &str) -> Self {
        let id = Some(id.to_owned());
        Self { kind, id }
    }
}

/// Parses a URL and appends `/v1` if it is missing.
fn base_url(variable: &'static str, text: &str) -> Result<Url, SettingsError> {
    let bad = |reason: &str| SettingsError::BadUrl {
        variable,
        reason: reason.to_owned(),
    };
    let mut url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(bad("it does not begin with http:// or https://"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let is_bare = path.is_empty() || (variable == "ANTHROPIC_BASE_URL" && !path.ends_with("/v1"));
    url.set_path(&if is_bare { format!("{path}/v1") } else { path });
    Ok(url)
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path()));
    url
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
