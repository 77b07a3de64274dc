//! The call pipeline: prepare, permit, send or run, inspect, return. Straight-line code, used by every front end.
//!
//! Owns what happens between a name with arguments and a result, for tools of servers and for [local] ones alike. It
//! never passes through the manager; it works on the snapshot and talks to the server directly.

pub(crate) mod arguments;
mod context;
pub(crate) mod gate;
pub(crate) mod local;
mod result;
pub(crate) mod shape;
pub(crate) mod spill;
mod target;
mod under_way;
mod unmade;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_config::redact::Redactor;
use switchboard_protocol::encode::ToolCall;
use switchboard_protocol::headers::Header;
use switchboard_protocol::types::Outcome;
use switchboard_protocol::types::method::{CallTool, Request as _};
use switchboard_protocol::types::tool::CallToolResult;
use switchboard_protocol::{Era, ErrorCode, Method};
use tokio::time::Instant;

use crate::catalog::{Catalog, CatalogTool, LiveAnnotations, LookupError, exposed};
use crate::events::{CallResult, Event};
use crate::host::{Host, RECONNECT_PATIENCE, ServerError, waits_for_first_use};
use crate::json::SharedJson;
use crate::manager::{Command, Live, Trouble, login};
use crate::names::{CallId, CalledTool, ExposedName, ServerName};
use crate::peer::{ListKind, ProgressSink, RequestError, RequestOptions};
use crate::person;
use crate::status::ServerStatus;
use crate::transport::TransportErrorKind;
use arguments::ArgumentsError;
use gate::{PendingCall, Permit, Sight, Verdict, Witness};
use local::{LocalCall, LocalOutput};

pub use context::{CallContext, ToolSubset};
pub use target::CallTarget;
pub(crate) use under_way::UnderWay;
pub(crate) use unmade::UNFIT;

/// A call to make.
#[derive(Clone, Default)]
pub struct CallRequest {
    /// The tool: its exposed name, `server/tool` or `server.tool`, or the bare name of one of the context's tools.
    pub tool: String,
    /// The arguments, an object.
    pub arguments: Option<Box<RawValue>>,
    /// How long it may go without an answer or progress. `None`: what the configuration says; a local tool has no limit.
    pub timeout: Option<Duration>,
    /// How long it may take in all once it is permitted, however much progress it reports. `None`: what the
    /// configuration says; a local tool has no limit.
    pub total_timeout: Option<Duration>,
    /// Who hears of its progress. It runs on the task that reads, so it must be short.
    pub progress: Option<ProgressSink>,
    /// The session that makes the call. `None`: it may reach every server's tool, and there are no others.
    #[doc(hidden)]
    pub context: Option<Arc<CallContext>>,
}

/// A call that has a result.
#[derive(Debug, Clone)]
pub struct CallOutcome {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: CalledTool,
    /// The result as the server sent it; that of a local tool has the same form.
    pub result: SharedJson,
    /// Whether the tool itself says that it failed.
    pub is_error: bool,
    /// What a person is shown in place of the result, where a local tool says so.
    pub display: Option<String>,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether its text is a local tool's own, to be shown exactly.
    is_exact: bool,
}

/// Why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The name leads to no tool.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The tool's server cannot be used.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The arguments do not fit the tool's schema.
    #[error("the arguments do not fit {tool}: {error}")]
    Arguments {
        /// The tool.
        tool: CalledTool,
        /// What is wrong with them.
        error: ArgumentsError,
    },
    /// The call is not permitted.
    #[error("the call of {tool} is not permitted: {reason}")]
    Denied {
        /// The tool.
        tool: CalledTool,
        /// Why.
        reason: String,
    },
    /// The call was made, or at least begun, and has no result.
    #[error("the call of {tool} failed: {error}")]
    Request {
        /// The tool.
        tool: CalledTool,
        /// What happened.
        error: RequestError,
    },
}

impl CallError {
    /// What to do about it, for people and models.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Lookup(error) => return error.hint(),
            Self::Server(ServerError::Unknown(_)) => "list the servers to see what there is",
            Self::Server(ServerError::Disabled(_)) => "enable the server first",
            Self::Server(ServerError::NeedsAuth(_)) => "log in to the server first",
            Self::Server(ServerError::Failed { .. }) => {
                "it is not being reconnected; go on without it, or ask the user to reconnect it"
            }
            Self::Server(ServerError::Pending(_)) => "it is being connected; call again later",
            Self::Server(ServerError::Removed(_)) => "go on without it; its tools are gone",
            Self::Server(ServerError::Withheld { server, state }) => {
                return state.remedy(server).map(|remedy| remedy.to_string());
            }
            Self::Server(_) => "restart the server, or look at its log",
            Self::Arguments { .. } => "correct the arguments and call again",
            Self::Denied { .. } => "do not try to reach the same by other means; ask the user",
            Self::Request { error, .. } => match error {
                RequestError::Idle(_) | RequestError::Expired(_) => {
                    "the call was called off; ask for less, or allow it more time"
                }
                RequestError::Lost(_) => {
                    "whether it had an effect is not known; check before calling again"
                }
                RequestError::NotSent(_) => "nothing was done; it may be called again",
                RequestError::TooLarge(_) => "ask for less at a time",
                RequestError::NotVisited(_) => "ask the user before calling again",
                RequestError::Refused(refusal) if refusal.wants_more_scope() => {
                    "log in to the server again to agree to more than so far"
                }
                _ => return None,
            },
        };
        Some(hint.to_owned())
    }

    /// Whether a deadline ended the call: it was silent for too long, or took too long in all.
    pub fn is_timeout(&self) -> bool {
        let Self::Request { error, .. } = self else {
            return false;
        };
        matches!(error, RequestError::Idle(_) | RequestError::Expired(_))
    }

    /// The error as a result that a model can act on.
    pub fn for_model(&self) -> String {
        if let Self::Lookup(LookupError::Unknown { nearest, .. }) = self {
            let names: Vec<&str> = nearest.iter().map(ExposedName::as_str).collect();
            return match names.as_slice() {
                [] => format!("{self}. Use one of the listed tools."),
                names => format!("{self}. Did you mean {}?", names.join(", ")),
            };
        }
        match self.hint() {
            Some(hint) => format!("{self}. Hint: {hint}."),
            None => format!("{self}."),
        }
    }
}

impl Host {
    /// Calls a tool. Dropping the future cancels the call, and the server is told.
    pub async fn request(&self, mut request: CallRequest) -> Result<CallOutcome, CallError> {
        // Prepare.
        let id = self.next_call();
        let session = request.context.take();
        let session = session.as_deref();
        let caller = session.map(|session| session.session.as_str());
        let (local, catalog, newer);
        // In a box, so that it does not make the future of every call larger.
        local = session.and_then(|session| {
            let call = LocalCall::of(self, id, &request.tool, session)?;
            Some(Box::new(call))
        });
        let tool = if let Some(call) = &local {
            CallTarget::Local(call)
        } else {
            catalog = self.catalog();
            CallTarget::Server(match find(&catalog, &request.tool, session) {
                Ok(tool) => tool,
                Err(unknown) => {
                    let noted = |error: &CallError| self.note_unknown(id, &request, error);
                    let found = self.catalog_with(&request.tool, session, unknown).await;
                    newer = found.inspect_err(noted)?;
                    let found = find(&newer, &request.tool, session).map_err(CallError::from);
                    found.inspect_err(noted)?
                }
            })
        };
        let mut arguments = request.arguments;
        self.check(id, tool, &mut arguments)?;

        // Permit.
        let gate = &self.options().gate;
        let is_open = gate.is_open();
        let mut permit = Permit::default();
        if !is_open {
            let pending = PendingCall {
                id,
                tool,
                arguments: arguments.as_deref(),
                session: caller,
            };
            match gate.before(&pending).answer().await {
                Verdict::Pass(granted) => permit = granted,
                Verdict::Change(changed, granted) => {
                    arguments = Some(changed);
                    self.check(id, tool, &mut arguments)?;
                    permit = granted;
                }
                Verdict::Deny { reason } => {
                    let tool = tool.called();
                    return Err(CallError::Denied { tool, reason });
                }
            }
        }

        // Send, or run.
        let pending = PendingCall {
            id,
            tool,
            arguments: arguments.as_deref(),
            session: caller,
        };
        let started = Instant::now();
        let witness = (!is_open).then(|| Witness::new(&**gate, pending, permit, started));
        let running = Running::begin(self, id, tool, request.progress, started);
        let outcome = match tool {
            CallTarget::Server(tool) => {
                let sending = Sending {
                    host: self,
                    tool,
                    arguments: arguments.as_deref(),
                    timeout: request.timeout,
                    total: request.total_timeout,
                    started,
                    id,
                };
                sending.send().await
            }
            // In a box, for the same reason.
            CallTarget::Local(call) => {
                let (idle, total) = (request.timeout, request.total_timeout);
                let run = Box::pin(call.run(arguments.as_deref(), idle, total));
                match run.await {
                    Ok((result, output)) => Ok(ToolReply::of_local(result, output)),
                    Err(error) => Err(CallError::Request {
                        tool: tool.called(),
                        error,
                    }),
                }
            }
        };

        // Look at it, and hand it over.
        let outcome = match outcome {
            Ok(answer) if !is_open => match gate.after(&pending, &answer.result).answer().await {
                Sight::Keep => Ok(answer),
                Sight::Replace(seen) => Ok(answer.replaced_by(seen)),
                Sight::Withhold { reason } => Err(CallError::Denied {
                    tool: tool.called(),
                    reason,
                }),
            },
            outcome => outcome,
        };
        let elapsed = started.elapsed();
        let outcome = running.end(outcome, elapsed);
        if let Some(witness) = witness {
            witness.end(&outcome, elapsed);
        }
        outcome
    }

    /// Whether a server's tool changes nothing, by the word of a server that is trusted.
    #[doc(hidden)]
    pub fn is_read_only(&self, tool: &CatalogTool) -> bool {
        let hints = tool.live_annotations();
        let server = tool.reference().server.as_str();
        hints.is_some_and(LiveAnnotations::is_read_only) && self.options().gate.trusts(server)
    }

    /// Whether calls pass a gate that decides about them. Without one, every call is permitted.
    #[doc(hidden)]
    pub fn has_gate(&self) -> bool {
        !self.options().gate.is_open()
    }

    /// Checks arguments against the tool's schema, and notes a call whose arguments do not fit.
    fn check(
        &self,
        id: CallId,
        tool: CallTarget<'_>,
        arguments: &mut Option<Box<RawValue>>,
    ) -> Result<(), CallError> {
        let checked = tool.argument_check().fit(arguments);
        checked.map_err(|error| {
            let tool = tool.called();
            self.note_unfit(id, &tool, arguments.as_deref());
            CallError::Arguments { tool, error }
        })
    }

    /// A newer catalogue, which may have the tool of that name: its server may first have to be connected.
    async fn catalog_with(
        &self,
        name: &str,
        session: Option<&CallContext>,
        unknown: LookupError,
    ) -> Result<Arc<Catalog>, CallError> {
        if session.is_some_and(|session| !session.may_reach(name)) {
            return Err(unknown.into());
        }
        let view = self.view();
        let statuses = &view.statuses;
        // One that can be started comes before one that cannot, whose name may be anything.
        let is_meant = |status: &&ServerStatus| begins_with_server(name, status.name.as_str());
        let meant = statuses.iter().filter(is_meant);
        let meant = meant.min_by_key(|status| status.state.is_withheld());
        if let Some(status) = meant {
            // Its server may have to be connected first, or be back; if it cannot be, that is what is wrong.
            self.connected(&status.name).await?;
        } else if let Some(server) = self.removed_server_of(name) {
            return Err(ServerError::Removed(server).into());
        } else if statuses
            .iter()
            .any(|status| !status.state.is_settled() || waits_for_first_use(status))
        {
            // A server that is not connected yet may have it.
            self.connect_all().await;
            self.settled_or(|catalog| catalog.find(name).is_ok()).await;
        } else {
            return Err(unknown.into());
        }
        Ok(self.catalog())
    }

    /// The server that was removed while the host ran and whose tool this name would be.
    pub(crate) fn removed_server_of(&self, tool: &str) -> Option<ServerName> {
        let view = self.view();
        let mut removed = view.removed.iter();
        removed
            .find(|server| begins_with_server(tool, server.as_str()))
            .cloned()
    }
}

/// Whether a name is written as that of one of the server's tools would be. Routing never depends on this.
fn begins_with_server(name: &str, server: &str) -> bool {
    let is_followed_by = |name: &str, separators: &[&str]| {
        name.strip_prefix(server)
            .is_some_and(|rest| separators.iter().any(|after| rest.starts_with(after)))
    };
    is_followed_by(name, &["/", "."]) || exposed::is_like_tool_of(name, server)
}

/// The server's tool of that name, among those that the session may reach.
fn find<'c>(
    catalog: &'c Catalog,
    name: &str,
    session: Option<&CallContext>,
) -> Result<&'c CatalogTool, LookupError> {
    let found = catalog.find(name);
    match session {
        Some(session) => session.reached(name, found),
        None => found,
    }
}

/// What a tool answered.
struct ToolReply {
    result: SharedJson,
    is_error: bool,
    display: Option<String>,
    is_exact: bool,
}

impl ToolReply {
    /// A server's answer.
    fn new(result: SharedJson, is_error: bool) -> Self {
        Self {
            result,
            is_error,
            display: None,
            is_exact: false,
        }
    }

    /// The answer of a local tool.
    fn of_local(result: SharedJson, output: LocalOutput) -> Self {
        Self {
            result,
            is_error: output.is_error,
            display: output.display,
            is_exact: true,
        }
    }

    /// A result, if it is one. What is plainly right is not decoded: a glance tells all that has to be known of it.
    fn read(result: SharedJson) -> Result<Self, RequestError> {
        let raw = result.raw();
        if let Some(is_error) = CallToolResult::error_flag_at_a_glance(raw) {
            return Ok(Self::new(result, is_error));
        }
        let is_error = match CallTool::decode_result(raw) {
            Ok(Outcome::Complete(result)) => result.is_error(),
            Ok(_) => return Err(RequestError::Malformed("it is not complete".to_owned())),
            Err(error) => return Err(RequestError::Malformed(error.to_string())),
        };
        Ok(Self::new(result, is_error))
    }

    /// An error without the secrets that the server was given. What looks secret and is not known to be stays: it is
    /// the tool's own text.
    #[cold]
    fn redacted(self, redactor: &Redactor) -> Self {
        let Cow::Owned(text) = redactor.redact_known(self.result.as_str()) else {
            return self;
        };
        let result = match RawValue::from_string(text) {
            Ok(result) => SharedJson::from(result),
            // A secret of digits may stand in a number.
            Err(_) => SharedJson::from(&serde_json::json!({
                "content": [{
                    "type": "text",
                    "text": "the tool failed; its answer repeats a secret and is left out",
                }],
                "isError": true,
            })),
        };
        Self { result, ..self }
    }

    /// What somebody put in its place, which nearly always is itself.
    fn replaced_by(self, result: SharedJson) -> Self {
        if result.is_same(&self.result) {
            return self;
        }
        // Whoever changes a result answers for it: one that cannot be read is no error of the tool.
        Self::read(result.clone()).unwrap_or_else(|_| Self::new(result, false))
    }
}

/// A call on its way to the server, with what it takes to send it again.
struct Sending<'a> {
    host: &'a Host,
    tool: &'a CatalogTool,
    arguments: Option<&'a RawValue>,
    timeout: Option<Duration>,
    total: Option<Duration>,
    started: Instant,
    id: CallId,
}

impl Sending<'_> {
    /// Sends the call, and once more where nothing can have come of the first time.
    async fn send(&self) -> Result<ToolReply, CallError> {
        let server = &self.tool.reference().server;
        let view = self.host.view();
        let connected;
        let live = match view.live.get(server) {
            Some(live) => live,
            None => match self.host.connected(server).await {
                Ok(live) => {
                    self.is_offered(&live)?;
                    connected = live;
                    &connected
                }
                // In a box, so that what is rare does not make the future of every call larger.
                Err(error) => return Box::pin(self.without_connection(error)).await,
            },
        };
        let error = match self.once(live).await {
            Ok(answer) if answer.is_error => return Ok(answer.redacted(&live.spec.redactor)),
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if error.wants_pages() {
            // In a box, for the same reason.
            return Box::pin(self.after_visit(error, live)).await;
        }
        let again = match self.after(&error, live).await {
            Some(live) => {
                self.is_offered(&live)?;
                self.once(&live).await
            }
            None => Err(error),
        };
        let again = again.map(|answer| {
            if answer.is_error {
                answer.redacted(&live.spec.redactor)
            } else {
                answer
            }
        });
        again.map_err(|error| self.failed(error.redacted(&live.spec.redactor)))
    }

    /// Sends the call once more when the user has visited the pages that the server asked for instead of acting on it.
    async fn after_visit(&self, error: RequestError, live: &Live) -> Result<ToolReply, CallError> {
        let limit = self.left().unwrap_or(live.spec.tool_max);
        let visited = live.peer.visit(error, limit).await;
        let again = match visited {
            Ok(()) => self.once(live).await,
            Err(error) => Err(error),
        };
        again.map_err(|error| self.failed(error.redacted(&live.spec.redactor)))
    }

    fn failed(&self, error: RequestError) -> CallError {
        let error = match (error, self.total) {
            // The last attempt had what the others left of it.
            (RequestError::Expired(_), Some(total)) => RequestError::Expired(total),
            (error, _) => error,
        };
        CallError::Request {
            tool: CalledTool::from(self.tool.reference()),
            error,
        }
    }

    /// How much is left of the time that the request gives the call in all.
    fn left(&self) -> Option<Duration> {
        let total = self.total?;
        Some(total.saturating_sub(self.started.elapsed()))
    }

    /// Whether a connection that is newer than the call still offers the tool: it may be gone or withheld.
    fn is_offered(&self, live: &Live) -> Result<(), CallError> {
        let reference = self.tool.reference();
        if live.tools.get(reference.tool.as_str()).is_some() {
            return Ok(());
        }
        let gone = self.host.catalog().find(self.tool.exposed().as_str()).err();
        let pending = || ServerError::Pending(reference.server.clone()).into();
        Err(gone.map_or_else(pending, CallError::from))
    }

    /// What a call comes to whose server is not connected.
    async fn without_connection(&self, error: ServerError) -> Result<ToolReply, CallError> {
        let reference = self.tool.reference();
        match error {
            ServerError::NeedsAuth(server) if reference.tool.as_str() == login::AUTHENTICATE => {
                let (result, is_error) = login::answer(self.host, &server).await;
                Ok(ToolReply::new(result, is_error))
            }
            error => Err(error.into()),
        }
    }

    /// The connection to send the call over again, if that is safe and sensible.
    async fn after(&self, error: &RequestError, live: &Live) -> Option<Live> {
        let server = &self.tool.reference().server;
        let tell = |trouble| {
            let command = Command::Trouble(server.clone(), live.generation, trouble);
            self.host.tell(command)
        };
        if error.wants_authorization() {
            tell(Trouble::Unauthorized).await;
            return None;
        }
        if is_header_mismatch(error) {
            // The server refused it unread: the tool's definition has changed.
            live.lists.changed(ListKind::Tools);
            return self.host.refreshed(server).await;
        }
        let harmless = self.tool.live_annotations().is_some_and(|hints| {
            live.spec.trust_annotations && (hints.is_read_only() || hints.is_idempotent())
        });
        let is_open = !matches!(error, RequestError::NotSent(error) if error.kind == TransportErrorKind::Closed);
        if error.session_expired() {
            tell(Trouble::SessionExpired).await;
        } else if matches!(error, RequestError::Unwritable(_)) {
            // The next time it would be as before.
            return None;
        } else if error.never_sent() && is_open && self.is_back(live).await {
            return Some(live.clone());
        } else if error.never_sent() || (matches!(error, RequestError::Lost(_)) && harmless) {
            tell(Trouble::Suspect).await;
        } else {
            if matches!(error, RequestError::Lost(_)) {
                tell(Trouble::Suspect).await;
            }
            return None;
        }
        self.host
            .connected_after(server, live.generation, RECONNECT_PATIENCE)
            .await
    }

    /// Whether the server can be reached after all over the connection there is.
    async fn is_back(&self, live: &Live) -> bool {
        let deadline = self.host.options().settings.health_timeout;
        live.peer.probe(deadline).await.is_ok()
    }

    async fn once(&self, live: &Live) -> Result<ToolReply, RequestError> {
        let answered = live.peer.answered();
        let outcome = self.attempt(live).await;
        // While a person answers what the server asks, the call does nothing.
        person::add(live.peer.answered().saturating_sub(answered));
        outcome
    }

    async fn attempt(&self, live: &Live) -> Result<ToolReply, RequestError> {
        let name = self.tool.reference().tool.as_str();
        // The connection may know the tool by a newer definition.
        let tool = live.tools.get(name).unwrap_or(self.tool);
        let as_task = live.peer.revision().era() == Era::Stateful && tool.must_be_task();
        let call = ToolCall {
            name,
            arguments: self.arguments,
            as_task,
        };
        let options = RequestOptions {
            idle: self.timeout.unwrap_or_else(|| live.spec.timeout_of(name)),
            total: self.left().unwrap_or(live.spec.tool_max),
            progress: Some(self.host.under_way().route(self.id)),
            headers: self.mirrored(tool, live)?,
            as_task,
        };
        let first = live.peer.call(call, &options).await?;
        // Nearly every answer is plainly the result.
        let glance = CallToolResult::error_flag_of_one_text(first.as_bytes())
            .or_else(|| CallToolResult::error_flag_at_a_glance(first.raw()));
        if let (Some(is_error), false) = (glance, as_task) {
            return Ok(ToolReply::new(first, is_error));
        }
        // In a box, so that what is rare does not make the future of every call larger.
        let result = Box::pin(async {
            let params = call.params();
            let params = switchboard_protocol::trusted(&params);
            live.peer
                .follow(Method::ToolsCall, params, first, &options)
                .await
        });
        ToolReply::read(result.await?)
    }

    /// The arguments that the tool wants mirrored as headers.
    fn mirrored(&self, tool: &CatalogTool, live: &Live) -> Result<Vec<Header>, RequestError> {
        let headers = tool.param_headers();
        if headers.is_empty() || live.peer.revision().era() == Era::Stateful {
            return Ok(Vec::new());
        }
        headers
            .headers(self.arguments)
            .map_err(|error| RequestError::Unwritable(error.to_string()))
    }
}

fn is_header_mismatch(error: &RequestError) -> bool {
    let code =
        |error: &switchboard_protocol::ErrorObject<'_>| error.code == ErrorCode::HEADER_MISMATCH;
    match error {
        RequestError::Rejected(error) => code(error),
        RequestError::Refused(refusal) => refusal.rpc_error().is_some_and(|error| code(&error)),
        _ => false,
    }
}

/// A call that has begun, as listeners see it. Dropped before its end, it ends as cancelled.
struct Running<'a> {
    host: &'a Host,
    id: CallId,
    tool: CallTarget<'a>,
    started: Instant,
    ended: bool,
}

impl<'a> Running<'a> {
    fn begin(
        host: &'a Host,
        id: CallId,
        tool: CallTarget<'a>,
        progress: Option<ProgressSink>,
        started: Instant,
    ) -> Self {
        if host.event_channel().has_listeners() {
            let CalledTool { server, tool } = tool.called();
            host.event_channel().send(Event::CallBegin {
                call: id,
                server,
                tool,
            });
        }
        host.under_way().begin(id, started, progress);
        Self {
            host,
            id,
            tool,
            started,
            ended: false,
        }
    }

    fn end(
        mut self,
        outcome: Result<ToolReply, CallError>,
        elapsed: Duration,
    ) -> Result<CallOutcome, CallError> {
        self.ended = true;
        let outcome = outcome.map(|answer| CallOutcome {
            id: self.id,
            tool: self.tool.called(),
            is_error: answer.is_error,
            result: answer.result,
            display: answer.display,
            elapsed,
            is_exact: answer.is_exact,
        });
        match &outcome {
            Ok(outcome) => self.tell_end(elapsed, outcome.is_error, || Ok(outcome.result.clone())),
            Err(error) => self.tell_end(elapsed, true, || Err(error.to_string())),
        }
        outcome
    }

    fn tell_end(
        &self,
        elapsed: Duration,
        is_error: bool,
        result: impl FnOnce() -> Result<SharedJson, String>,
    ) {
        if self.host.event_channel().has_listeners() {
            let (result, error) = match result() {
                Ok(result) => (Some(CallResult(result)), None),
                Err(error) => (None, Some(error)),
            };
            let CalledTool { server, tool } = self.tool.called();
            self.host.event_channel().send(Event::CallEnd {
                call: self.id,
                server,
                tool,
                elapsed,
                is_error,
                result,
                error,
            });
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.host.under_way().end(self.id);
        if !self.ended {
            let cancelled = || Err("cancelled".to_owned());
            self.tell_end(self.started.elapsed(), true, cancelled);
        }
    }
}
