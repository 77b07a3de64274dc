//! What servers ask the person at the terminal: forms, pages to visit, an answer of the model, and the folder that
//! is worked in.
//!
//! Owns the handler that every host of this program has. One question is asked at a time. With no terminal, nothing is
//! asked: servers are told beforehand that they cannot, and one that asks all the same is declined.

mod entry;
mod field;
mod form;
mod page;
mod sampling;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use switchboard::catalog::text::{MAX_DESCRIPTION, cut, neutralise};
use switchboard::handler::{ClientHandler, QuestionLimits, declined};
use switchboard::names::ServerName;
use switchboard_config::text::visible;
use switchboard_protocol::ErrorObject;
use switchboard_protocol::types::capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability,
};
use switchboard_protocol::types::elicitation::{ElicitAction, ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::roots::{ListRootsResult, Root};
use switchboard_protocol::types::sampling::{CreateMessageRequestParams, CreateMessageResult};
use switchboard_protocol::types::wire::Raw;
use url::Url;

pub(crate) use self::sampling::SamplingModel;
use crate::context::Context;
use crate::printer::Printer;
use crate::terminal::Keyboard;
use crate::{live, terminal};

/// Answers what servers ask.
pub(crate) struct AtTerminal {
    printer: Printer,
    project: PathBuf,
    /// The environment, for the browser.
    variables: Arc<[(OsString, OsString)]>,
    /// Whether somebody can be asked.
    is_attended: bool,
    /// Whether nothing is called, so that servers are told they may ask, and what is asked is declined.
    is_looking: bool,
    /// The model, where there is one.
    sampling: Arc<SamplingModel>,
    /// Servers that asked something while nobody could be asked, of which it was said.
    unanswered: Mutex<HashSet<ServerName>>,
}

impl AtTerminal {
    /// Asks on the terminal, if there is one and somebody is to be asked.
    pub(crate) fn new(context: &Context, attended: bool, sampling: Arc<SamplingModel>) -> Self {
        Self {
            printer: context.printer.clone(),
            project: context.project.clone(),
            variables: Arc::clone(&context.environment.all),
            is_attended: attended && terminal::is_there(),
            is_looking: false,
            sampling,
            unanswered: Mutex::default(),
        }
    }

    /// For a command that only lists what servers have.
    pub(crate) fn looking(self) -> Self {
        Self {
            is_attended: false,
            is_looking: true,
            ..self
        }
    }

    async fn ask(
        &self,
        server: &ServerName,
        params: &ElicitRequestParams<'_>,
    ) -> io::Result<ElicitResult<'static>> {
        let name = visible(server.as_str());
        live::knock(&format!("{name} asks something: press enter to see it"));
        let _floor = live::floor(&self.printer).await;
        terminal::forget_keys();
        let server = server.as_str();
        match params {
            ElicitRequestParams::Form(params) => form::fill_in(server, params, &self.printer).await,
            ElicitRequestParams::Url(params) => {
                page::visit(server, params, &self.variables, &self.printer).await
            }
            ElicitRequestParams::Unknown(_) => Ok(ElicitResult::new(ElicitAction::Decline)),
        }
    }
}

impl ClientHandler for AtTerminal {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        let elicitation = ElicitationCapability {
            form: Raw::parse("{}").ok(),
            url: Raw::parse("{}").ok(),
            ..ElicitationCapability::default()
        };
        ClientCapabilities {
            roots: Some(RootsCapability::default()),
            elicitation: (self.is_attended || self.is_looking).then_some(elicitation),
            sampling: (self.is_looking || self.is_attended && self.sampling.is_there())
                .then(SamplingCapability::default),
            ..ClientCapabilities::default()
        }
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        async move {
            let name = visible(server.as_str());
            if !self.is_attended {
                let mut told = self
                    .unanswered
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                if told.insert(server.clone()) {
                    let message =
                        format!("{name} asks something, and there is nobody to answer; declined");
                    self.printer.warning(message, None);
                }
                return Ok(ElicitResult::new(ElicitAction::Decline));
            }
            let Some(answer) = live::unless_dismissed(self.ask(server, &params)).await else {
                self.printer.ask("\n");
                return Ok(ElicitResult::new(ElicitAction::Cancel));
            };
            Ok(answer.unwrap_or_else(|error| {
                let message = format!("the question of {name} could not be asked: {error}");
                self.printer.warning(message, None);
                ElicitResult::new(ElicitAction::Cancel)
            }))
        }
        .boxed()
    }

    fn create_message<'a>(
        &'a self,
        server: &'a ServerName,
        params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        async move {
            if !self.is_attended {
                return Err(declined(
                    "there is nobody to ask whether the model may be asked",
                ));
            }
            self.sampling.ask(server, &params, &self.printer).await
        }
        .boxed()
    }

    fn flooded(&self, server: &ServerName, limits: QuestionLimits) {
        let name = visible(server.as_str());
        let message = format!(
            "{name} asks too much: more than {} questions at once or {} within a minute are refused",
            limits.waiting, limits.per_minute
        );
        let hint = format!(
            "`switchboard mcp disable {name}` stops it; questions_per_minute sets the limit"
        );
        if !live::is_paused() {
            self.printer.warning(message, Some(&hint));
            return;
        }
        // Not in the middle of a question.
        let printer = self.printer.clone();
        tokio::spawn(async move {
            let _floor = live::floor(&printer).await;
            printer.warning(message, Some(&hint));
        });
    }

    fn list_roots<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        let _ = server;
        let root = Url::from_directory_path(&self.project).ok().map(|url| {
            let name = self.project.file_name();
            let name = name.map(|name| name.to_string_lossy().into_owned());
            Root {
                name: name.map(Into::into),
                ..Root::new(String::from(url).into())
            }
        });
        let roots = root.into_iter().collect();
        std::future::ready(Ok(ListRootsResult::new(roots))).boxed()
    }
}

/// A line that is typed or pasted; `None` if nothing is to be. Dropping the future leaves the terminal as it was.
pub(crate) async fn line(printer: &Printer, prompt: &str) -> Option<String> {
    let mut keyboard = Keyboard::open().ok()?;
    match entry::line(&mut keyboard, printer, prompt).await {
        Ok(entry::Entered::Line(line)) => Some(line),
        Ok(entry::Entered::Left) | Err(_) => None,
    }
}

/// Text of a server on one line, with nothing in it that fools a terminal.
pub(crate) fn safe(text: &str) -> String {
    visible(&neutralise(text)).into_owned()
}

/// Text of a server, indented, its own line breaks kept, no longer than anybody reads.
fn paragraph(text: &str) -> String {
    let short = cut(neutralise(text), MAX_DESCRIPTION);
    let lines = short.lines().map(|line| format!("  {}\n", safe(line)));
    lines.collect()
}
