//! From keys, addresses and the name of a model to a provider.
//!
//! Owns the choice: which endpoint a name belongs to, what is asked when there is no name, and what to tell somebody who
//! has set nothing. It reads no environment: values come in.

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
use super::models::{self, Kind};
use super::offers::{self, Named};
use super::openai::{self, Limit, OpenAi};
use super::retry::{RetryPolicy, Retrying};
use super::{Provider, ProviderError};

/// How long nothing may come from an endpoint: a model may think for minutes without a word.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// The same for a server of one's own, which may have to read a long conversation on a slow machine first.
const IDLE_LOCAL: Duration = Duration::from_secs(20 * 60);

/// Keys, addresses and the name of a model, as somebody has set them.
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
    /// The model: `anthropic/NAME`, `openai/NAME`, or a bare name.
    pub model: Option<String>,
    /// The window of a model at a server of one's own, in tokens; `None` to ask the server.
    pub window: Option<u64>,
    /// How often it is asked.
    pub retry: RetryPolicy,
    /// How endpoints are reached: proxies, certificates, time to connect.
    pub http: HttpSettings,
    /// A client that is there already, such as that of the servers; it is used in place of one of these settings.
    pub client: Option<HttpClient>,
}

/// Why there is no provider.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Nothing is set.
    #[error(
        "no model can be asked: neither ANTHROPIC_API_KEY nor OPENAI_API_KEY nor OPENAI_BASE_URL is set"
    )]
    Nothing,
    /// A model was chosen whose endpoint wants a key.
    #[error("the model {model} needs a key: {variable} is not set")]
    NoKey {
        /// The model.
        model: String,
        /// What has to be set.
        variable: &'static str,
    },
    /// An address is none.
    #[error("{variable} is not a valid URL: {reason}")]
    BadUrl {
        /// The variable.
        variable: &'static str,
        /// Why not.
        reason: String,
    },
    /// A key has letters that no key has.
    #[error("{variable} is not a valid key: it contains characters not allowed in an HTTP header")]
    BadKey {
        /// The variable.
        variable: &'static str,
    },
    /// A server of one's own has no model.
    #[error("{url} offers no model")]
    NoModels {
        /// Where.
        url: String,
    },
    /// A server of one's own has models, and none of that name.
    #[error("{url} has no model `{model}`")]
    UnknownModel {
        /// The name that was asked for.
        model: String,
        /// Where.
        url: String,
        /// The nearest names, or the first ones where none is near; sanitized.
        nearest: Vec<String>,
        /// How many others there are.
        others: usize,
    },
    /// A server of one's own could not be asked which model it has.
    #[error("cannot list the server's models: {0}")]
    Asking(#[from] ProviderError),
    /// The client cannot be set up.
    #[error(transparent)]
    Client(#[from] TransportError),
}

impl SettingsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        let hint = match self {
            Self::Nothing | Self::NoKey { .. } => {
                "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, \
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

/// An endpoint and a name, as they were chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    kind: Kind,
    /// Nothing: whatever the server has.
    id: Option<String>,
}

impl ProviderSettings {
    /// The settings in the variables of these names. The environment itself is not read here; `variable` looks a name
    /// up.
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
            ..Self::default()
        }
    }

    /// The provider that these settings lead to, which tries again when that may help.
    ///
    /// Only a server of one's own is asked anything: which models it has, and how large the window of this one is.
    pub async fn provider(&self) -> Result<Arc<dyn Provider>, SettingsError> {
        let choice = self.choose()?;
        let client = match &self.client {
            Some(client) => client.clone(),
            None => HttpClient::new(self.http.clone())?,
        };
        let client = client.pooled().clone();
        let provider: Arc<dyn Provider> = match choice.kind {
            Kind::Anthropic => Arc::new(self.anthropic(client, choice.id)?),
            Kind::OpenAi | Kind::Local => Arc::new(self.openai(client, choice).await?),
        };
        Ok(Arc::new(Retrying::new(provider, self.retry)))
    }

    fn choose(&self) -> Result<Choice, SettingsError> {
        let has_anthropic = self.anthropic_key.is_some() || self.anthropic_url.is_some();
        let has_openai = self.openai_key.is_some() || self.openai_url.is_some();
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
            // A gateway of one's own may have models of others; a key for the others goes before it.
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

    async fn openai(
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

    /// A model at a server of one's own: the one of that name, or the first that the server offers.
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
            let first = offers.into_iter().next();
            let url = || endpoint.shown();
            first.ok_or_else(|| SettingsError::NoModels { url: url() })?
        };
        let told = match self.window {
            Some(_) => None,
            None => offers::window(endpoint, base, &offer).await,
        };
        Ok(self.described(&offer.id, told))
    }

    /// What is known of a model at a server of one's own. What the user has set counts before what the server tells.
    fn described(&self, id: &str, told: Option<u64>) -> super::Model {
        let mut model = models::describe(Kind::Local, id);
        if let Some(window) = self.window.or(told) {
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

/// An address with `/v1` at its end, also where somebody left it out.
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
