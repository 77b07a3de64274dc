//! Forwards questions of the agent and its servers to the client of a session.
//!
//! An approval is requested within the task of its turn, which leads to its client. An elicitation by a server comes
//! over a connection that all sessions share: it is forwarded if exactly one client has a turn running and supports it.
//! With several candidates, it is declined, because it is unknown whose question it is.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::{Value, json};
use switchboard::internal::catalog::text::{cut, neutralise};
use switchboard::internal::permissions::consent::sanitized;
use switchboard::permissions::{Approver, ConsentView, GrantPlace, Offer, PromptAnswer, Question};
use switchboard::{ClientHandler, ServerName};
use switchboard_protocol::ErrorObject;
use switchboard_protocol::types::capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability,
};
use switchboard_protocol::types::elicitation::{ElicitAction, ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::roots::{ListRootsResult, Root};
use switchboard_protocol::types::{IntoOwned as _, RawObject, decode};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use url::Url;

/// Time for a client to answer; after that the answer is no.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// Maximum number of queued questions per turn.
const MAX_WAITING: usize = 16;
/// Maximum length of a call shown in a form, in characters. A longer call cannot be approved in a form.
const MAX_SHOWN: usize = 100_000;
/// Maximum length of a hook's remark, in characters.
const MAX_REMARK: usize = 2000;
/// The values of a form's answers.
const ONCE: &str = "once";
const ALWAYS: &str = "always";
const NO: &str = "no";

/// Asks the clients of agent sessions. Cheap to clone; clones share their state.
///
/// Use it as the approver of the agent's permission gate and as the handler of its host, and pass it to
/// [`AgentService`](super::AgentService).
#[derive(Clone, Default)]
pub struct ClientQuestions {
    /// The lines of all running turns.
    lines: Arc<Mutex<Vec<Weak<Line>>>>,
    /// The folder reported to servers as their root.
    folder: Option<Arc<Path>>,
}

/// A question to a client, waiting for its answer.
pub(super) struct Asked {
    pub(super) params: ElicitRequestParams<'static>,
    answer: oneshot::Sender<ElicitResult<'static>>,
}

/// The channel to the client of one turn.
pub(super) struct Line {
    questions: mpsc::Sender<Asked>,
    can_ask: bool,
    can_ask_url: bool,
}

tokio::task_local! {
    /// The line of the turn that runs in this task.
    static LINE: Arc<Line>;
}

impl ClientQuestions {
    /// Reports no roots to servers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports this folder to servers as their root.
    #[must_use]
    pub fn about(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Opens a line to a client with these capabilities, and returns the receiver of its questions.
    pub(super) fn line(
        &self,
        capabilities: &ClientCapabilities<'_>,
    ) -> (Arc<Line>, mpsc::Receiver<Asked>) {
        let (sender, questions) = mpsc::channel(MAX_WAITING);
        let offered = capabilities.elicitation.as_ref();
        let line = Arc::new(Line {
            questions: sender,
            can_ask: capabilities.offers_elicitation()
                && offered.is_none_or(ElicitationCapability::allows_form),
            can_ask_url: offered.is_some_and(|offered| offered.url.is_some()),
        });
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|line| line.strong_count() > 0);
        lines.push(Arc::downgrade(&line));
        (line, questions)
    }

    /// The only line whose client can answer; `None` if there are several.
    fn only_line(&self, params: &ElicitRequestParams<'_>) -> Option<Arc<Line>> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = lines.iter().filter_map(Weak::upgrade);
        let line = lines.next().filter(|_| lines.next().is_none())?;
        let can_ask = match params {
            ElicitRequestParams::Url(_) => line.can_ask_url,
            _ => line.can_ask,
        };
        can_ask.then_some(line)
    }
}

impl Line {
    /// Runs a turn whose questions go to this line.
    pub(super) async fn scope<F: Future>(self: Arc<Self>, turn: F) -> F::Output {
        LINE.scope(self, turn).await
    }

    /// Sends a question and waits for its answer.
    async fn ask(&self, params: ElicitRequestParams<'static>) -> Option<ElicitResult<'static>> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { params, answer };
        let answered = async {
            self.questions.send(asked).await.ok()?;
            answered.await.ok()
        };
        timeout(PATIENCE, answered).await.ok().flatten()
    }
}

impl Asked {
    /// Sends the answer. The asker may have gone away.
    pub(super) fn answer(self, result: ElicitResult<'static>) {
        let _ = self.answer.send(result);
    }

    /// Whether the asker no longer waits for the answer.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.answer.is_closed()
    }
}

impl Approver for ClientQuestions {
    fn is_there(&self) -> bool {
        LINE.try_with(|line| line.can_ask).unwrap_or(false)
    }

    fn asks_one_at_a_time(&self) -> bool {
        // Clients are asked in parallel: one that does not answer must not block the others.
        false
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, PromptAnswer> {
        async move {
            let Ok(line) = LINE.try_with(Arc::clone) else {
                return PromptAnswer::No;
            };
            let params = match approval(&question) {
                Ok(params) => params,
                Err(reason) => return PromptAnswer::Unshown(reason),
            };
            line.ask(params)
                .await
                .map_or(PromptAnswer::No, |result| read(&result, question.offers))
        }
        .boxed()
    }
}

impl ClientHandler for ClientQuestions {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        let mut capabilities = ClientCapabilities::new();
        capabilities.elicitation = Some(ElicitationCapability::new());
        capabilities.roots = self.folder.as_ref().map(|_| RootsCapability::new());
        capabilities
    }

    fn list_roots<'a>(
        &'a self,
        _server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        let uri = self
            .folder
            .as_deref()
            .and_then(|folder| Url::from_directory_path(folder).ok());
        let roots: Vec<Root<'static>> = uri
            .into_iter()
            .map(|uri| Root::new(String::from(uri).into()))
            .collect();
        ready(Ok(ListRootsResult::new(roots.into()))).boxed()
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        async move {
            let declined = || ElicitResult::new(ElicitAction::Decline);
            let Some(line) = self.only_line(&params) else {
                return Ok(declined());
            };
            Ok(line.ask(params.into_owned()).await.unwrap_or_else(declined))
        }
        .boxed()
    }
}

impl std::fmt::Debug for ClientQuestions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ClientQuestions")
            .finish_non_exhaustive()
    }
}

/// The form that asks for an approval and shows the complete call; an error if it is too long.
pub(crate) fn approval(question: &Question<'_>) -> Result<ElicitRequestParams<'static>, String> {
    let view = ConsentView::of(question);
    let mut message = match &view.server {
        Some(server) => format!("Allow the tool {} of the server {server}?", view.tool),
        None => format!("Allow the tool {}?", view.tool),
    };
    let call = view.whole();
    // Refused because a client would truncate it without notice.
    let size = call.chars().count();
    if size > MAX_SHOWN {
        return Err(format!(
            "the call has {size} characters to approve, and a form shows {MAX_SHOWN} at most; split it into smaller calls"
        ));
    }
    if !call.is_empty() {
        message.push('\n');
        message.push_str(&call);
    }
    // Writing to a string cannot fail.
    let _ = write!(
        message,
        "\nAsked because {}",
        sanitized(&question.because.to_string()).text
    );
    if let Some(remark) = question.remark {
        let remark = cut(neutralise(remark), MAX_REMARK);
        message.push('\n');
        message.push_str(&remark.replace('\n', " ⏎ "));
    }
    let mut answers = vec![(ONCE.to_owned(), "Yes, once".to_owned())];
    for (index, offer) in question.offers.iter().enumerate() {
        let name = match index {
            0 => ALWAYS.to_owned(),
            _ => format!("{ALWAYS}-{}", offer.name),
        };
        let words = format!(
            "Yes, and while this server runs do not ask again for {}",
            offer.words
        );
        answers.push((name, words));
    }
    answers.push((NO.to_owned(), "No".to_owned()));
    let (values, titles): (Vec<String>, Vec<String>) = answers.into_iter().unzip();
    let form = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "answer": {
                    "type": "string",
                    "title": "Answer",
                    "enum": values,
                    "enumNames": titles,
                    "default": NO,
                },
            },
            "required": ["answer"],
        },
    });
    let unwritable = |error: &dyn std::fmt::Display| format!("cannot encode the question: {error}");
    let raw = serde_json::value::to_raw_value(&form).map_err(|error| unwritable(&error))?;
    let params = decode::<ElicitRequestParams<'_>>(&raw).map_err(|error| unwritable(&error))?;
    Ok(params.into_owned())
}

/// Decodes the answer to an approval. Anything that is not clearly a yes is a no.
pub(crate) fn read(result: &ElicitResult<'_>, offers: &[Offer]) -> PromptAnswer {
    if result.action != ElicitAction::Accept {
        return PromptAnswer::No;
    }
    let content = result.content.as_ref().map_or("{}", RawObject::get);
    let content: Value = serde_json::from_str(content).unwrap_or_default();
    let grant = |offer| PromptAnswer::Grant {
        offer,
        place: GrantPlace::Session,
    };
    match content.get("answer").and_then(Value::as_str) {
        Some(ONCE) => PromptAnswer::Once,
        Some(ALWAYS) if !offers.is_empty() => grant(0),
        Some(other) => {
            let name = other
                .strip_prefix(ALWAYS)
                .and_then(|rest| rest.strip_prefix('-'));
            let named = |offer: &Offer| Some(offer.name) == name;
            let offer = offers.iter().skip(1).position(named);
            offer.map_or(PromptAnswer::No, |offer| grant(offer + 1))
        }
        None => PromptAnswer::No,
    }
}
