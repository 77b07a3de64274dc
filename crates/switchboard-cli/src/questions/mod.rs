//! Answers requests from servers on the terminal: elicitation, sampling and roots.
//!
//! One question is asked at a time. Without a terminal the elicitation and sampling capabilities are not declared, and
//! requests are declined.

pub(crate) mod entry;
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
use switchboard::internal::catalog::text::{MAX_DESCRIPTION, cut, neutralise};
use switchboard::{ClientHandler, QuestionLimits, ServerName, declined};
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
use crate::dialog::Dialog;
use crate::markdown::wrapped;
use crate::printer::{Printer, style};
use crate::{live, screen, terminal};

/// The client handler of every host in this program.
pub(crate) struct AtTerminal {
    printer: Printer,
    project: PathBuf,
    /// The environment for the browser.
    variables: Arc<[(OsString, OsString)]>,
    /// Whether the user can be prompted.
    is_attended: bool,
    /// Whether the command only lists: capabilities are declared as for a terminal, but every request is declined.
    is_listing: bool,
    /// The model for sampling requests, if any.
    sampling: Arc<SamplingModel>,
    /// Servers whose requests were declined with a warning.
    unanswered: Mutex<HashSet<ServerName>>,
}

impl AtTerminal {
    /// Prompts on the terminal if there is one and the command is attended.
    pub(crate) fn new(context: &Context, attended: bool, sampling: Arc<SamplingModel>) -> Self {
        Self {
            printer: context.printer.clone(),
            project: context.project.clone(),
            variables: Arc::clone(&context.environment.all),
            is_attended: attended && terminal::is_there(),
            is_listing: false,
            sampling,
            unanswered: Mutex::default(),
        }
    }

    /// For a command that only lists what servers offer.
    pub(crate) fn listing(self) -> Self {
        Self {
            is_attended: false,
            is_listing: true,
            ..self
        }
    }

    async fn ask(
        &self,
        server: &ServerName,
        params: &ElicitRequestParams<'_>,
    ) -> io::Result<ElicitResult<'static>> {
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
            elicitation: (self.is_attended || self.is_listing).then_some(elicitation),
            sampling: (self.is_listing || self.is_attended && self.sampling.is_there())
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
                let mut unanswered = self
                    .unanswered
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                if unanswered.insert(server.clone()) {
                    let message = format!("declined a question of {name}: no terminal to ask on");
                    self.printer.warning(message, None);
                }
                return Ok(ElicitResult::new(ElicitAction::Decline));
            }
            let Some(answer) = live::unless_dismissed(self.ask(server, &params)).await else {
                self.printer.ask("\n");
                return Ok(ElicitResult::new(ElicitAction::Cancel));
            };
            Ok(answer.unwrap_or_else(|error| {
                let message = format!("cannot show the question of {name}: {error}");
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
                    "sampling needs the user's consent, but no terminal is available",
                ));
            }
            self.sampling.ask(server, &params, &self.printer).await
        }
        .boxed()
    }

    fn flooded(&self, server: &ServerName, limits: QuestionLimits) {
        let name = visible(server.as_str());
        let message = format!(
            "{name} asks too much: it may ask {} questions at once and {} per minute; the rest are refused",
            limits.waiting, limits.per_minute
        );
        let hint = format!(
            "`switchboard mcp disable {name}` stops it; questions_per_minute sets the limit"
        );
        if !live::is_paused() {
            self.printer.warning(message, Some(&hint));
            return;
        }
        // Wait for an open prompt.
        let printer = self.printer.clone();
        tokio::spawn(async move {
            let _lock = live::lock_terminal(&printer).await;
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

/// Reads a typed or pasted line; `None` if cancelled. Dropping the future restores the terminal.
pub(crate) async fn line(printer: &Printer, title: &str) -> Option<String> {
    let mut dialog = Dialog::open(title, printer).await.ok()?;
    if dialog.is_panel() {
        dialog.say_text(title);
    }
    let prompt = vec![(style::HINT, "› ".to_owned())];
    match dialog.line(&prompt, "").await {
        Ok(entry::Entered::Line(line)) => Some(line),
        Ok(entry::Entered::Left) | Err(_) => None,
    }
}

/// Sanitizes a server's text for one line.
pub(crate) fn safe(text: &str) -> String {
    visible(&neutralise(text)).into_owned()
}

/// Says a server's text: sanitized and indented, with its line breaks, limited in length.
fn paragraph(text: &str, dialog: &mut Dialog<'_>) {
    let short = cut(neutralise(text), MAX_DESCRIPTION);
    let width = screen::size().columns.saturating_sub(1);
    for line in short.lines() {
        for row in wrapped(&safe(line), "  ", width) {
            dialog.say_text(&row);
        }
    }
}
