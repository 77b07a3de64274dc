//! Builds the agent for `chat` and `serve` from the configuration and the environment.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use switchboard::internal::places::LOCK_FOLDER;
use switchboard::internal::transport::http::{HttpSettings, ProxySettings};
use switchboard_agent::provider::{
    Chunk, Model, Provider, ProviderError, ProviderErrorKind, ProviderSettings, Request,
    SettingsError,
};
use switchboard_agent::{Agent, AgentOptions, Shell};
use switchboard_config::settings::Setting;
use switchboard_config::text::visible;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::printer::{paint, style};
use crate::servers::Servers;
use crate::session::{self, CommandHost};

/// Builds an agent from the configuration that the session started with.
pub(crate) fn of_session(session: &CommandHost<'_>, provider: &Arc<dyn Provider>) -> Agent {
    of_servers(session.servers, session, provider)
}

/// Builds an agent from a configuration that may be newer than the one the session started with.
pub(crate) fn of_servers(
    configured: &Servers,
    session: &CommandHost<'_>,
    provider: &Arc<dyn Provider>,
) -> Agent {
    let context = session.context;
    let settings = &configured.config.settings;
    let environment = context.environment.all.iter().cloned();
    Agent::new(AgentOptions {
        store: Arc::clone(&session.store),
        lock_folder: Some(context.environment.state.join(LOCK_FOLDER)),
        shell: Shell::new(environment)
            .without_tokens_of(&configured.config)
            .supervised_by(configured.supervisor())
            .confined_to(configured.bash_sandbox(context)),
        spill_folder: Some(session::spill_folder(context)),
        // A scripted run has no later turn, so the answer waits for installing servers up to the startup timeout.
        install_patience: if session.is_scripted {
            settings.duration(Setting::StartupTimeout)
        } else {
            Duration::ZERO
        },
        ..AgentOptions::new(session.host.clone(), Arc::clone(provider)).with_settings(settings)
    })
}

/// Returns the requested model, or the one that the environment selects, or one found on this machine, which is named to
/// the user.
pub(crate) async fn provider(
    model: Option<&str>,
    configured: &Servers,
    context: &Context,
) -> Result<Arc<dyn Provider>, Failure> {
    let settings = settings(model, configured, context);
    let provider = settings
        .provider()
        .await
        .map_err(|error| unusable(&error))?;
    if !settings.has_endpoint() {
        let Model { id, provider, .. } = provider.model();
        let found = format!("using {} of {}", visible(id), visible(provider));
        context.printer.note(paint(style::QUIET, found));
    }
    Ok(provider)
}

/// The keys, addresses and limits that select a model.
pub(crate) fn settings(
    model: Option<&str>,
    configured: &Servers,
    context: &Context,
) -> ProviderSettings {
    let variable = |name: &str| context.environment.variables.get(name).map(str::to_owned);
    ProviderSettings {
        model: model.map(str::to_owned),
        window: configured.config.settings.model_window(),
        http: HttpSettings {
            proxy: ProxySettings::from_variables(variable),
            ..HttpSettings::default()
        },
        ..ProviderSettings::from_variables(variable)
    }
}

/// Explains how to configure a model, for each kind of provider.
pub(crate) fn unusable(error: &SettingsError) -> Failure {
    match error {
        SettingsError::Nothing => Failure::new(Exit::Configuration, "no model configured")
            .because("neither ANTHROPIC_API_KEY nor OPENAI_API_KEY nor OPENAI_BASE_URL is set")
            .hint("Anthropic: export ANTHROPIC_API_KEY=…   (a key from console.anthropic.com)")
            .hint("OpenAI:    export OPENAI_API_KEY=…      (a key from platform.openai.com)")
            .hint("your own:  export OPENAI_BASE_URL=http://localhost:11434/v1   (Ollama, llama.cpp, vLLM, LM Studio)")
            .hint("no key:    start Ollama, LM Studio or llama.cpp: it is found by itself"),
        SettingsError::Asking(error) => unanswered(error),
        error => {
            let failure = Failure::new(Exit::Configuration, visible(&error.to_string()).into_owned());
            match error.hint() {
                Some(hint) => failure.hint(visible(&hint)),
                None => failure,
            }
        }
    }
}

/// The failure of a command whose model returned no answer.
pub(crate) fn unanswered(error: &ProviderError) -> Failure {
    use ProviderErrorKind as Kind;
    let (exit, hint) = match error.kind {
        Kind::Unauthorized => (
            Exit::Configuration,
            "check the key: `switchboard chat --help` lists the variables",
        ),
        Kind::Unreachable => (
            Exit::Failed,
            "check the network, and the base URL if you have set one",
        ),
        Kind::RateLimited => (
            Exit::Failed,
            "try again later, or check the limits of your account",
        ),
        Kind::Unavailable => (Exit::Failed, "try again later"),
        Kind::UnknownModel => (Exit::Configuration, "choose another model with --model"),
        Kind::TooLong => (
            Exit::Failed,
            "shorten the session with /compact, or start a new one",
        ),
        Kind::TimedOut => (Exit::TimedOut, "try again"),
        _ => (Exit::Failed, "try again, or use another model with --model"),
    };
    Failure::new(exit, "the model returned no answer")
        .because(visible(&error.to_string()))
        .hint(hint)
}

/// Whether this is the model of [`no_model`].
pub(crate) fn is_missing(model: &Model) -> bool {
    model.max_output == 0
}

/// A placeholder for sessions that have no model, or never query it.
pub(crate) fn no_model() -> Arc<dyn Provider> {
    Arc::new(NoModel(Model {
        id: "no model".to_owned(),
        provider: "none".to_owned(),
        window: 0,
        max_output: 0,
        vision: false,
        tools: false,
        price: None,
    }))
}

#[derive(Debug)]
struct NoModel(Model);

impl Provider for NoModel {
    fn model(&self) -> &Model {
        &self.0
    }

    fn ask<'a>(&'a self, _: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        let error =
            ProviderError::new("none", ProviderErrorKind::UnknownModel, "no model selected");
        stream::iter([Err(error)]).boxed()
    }
}
