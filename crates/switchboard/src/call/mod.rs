//! The call pipeline: prepare, permit, send or run, inspect, return. Straight-line code, used by every front end.
//!
//! Covers everything from a name with arguments to a result, for server tools and [local] tools alike. Bypasses the
//! manager: it works on the catalogue snapshot and talks to the server directly.

pub(crate) mod arguments;
mod context;
pub(crate) mod gate;
pub(crate) mod local;
pub(crate) mod result;
mod running;
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
use switchboard_protocol::types::result::{ResultType, declared_type};
use switchboard_protocol::types::tool::CallToolResult;
use switchboard_protocol::{Era, ErrorCode, Method};
use tokio::time::Instant;

use crate::caller::Caller;
use crate::catalog::{Catalog, CatalogTool, LookupError, TrustedAnnotations, exposed};
use crate::host::{Host, RECONNECT_PATIENCE, ServerError, waits_for_first_use};
use crate::json::SharedJson;
use crate::manager::{Command, Live, Trouble, login};
use crate::names::{CallId, CalledTool, ExposedName, ServerName};
use crate::peer::{ListKind, Peer, ProgressSink, RequestError, RequestOptions};
use crate::person;
use crate::profile::Profile;
use crate::status::ServerStatus;
use crate::transport::TransportErrorKind;
use arguments::ArgumentsError;
use gate::{PendingCall, Permit, Sight, Verdict, Witness};
use local::{LocalCall, LocalOutput};
use running::Running;

pub use context::{CallContext, ToolSubset};
pub use target::CallTarget;
pub(crate) use under_way::UnderWay;
pub(crate) use unmade::UNFIT;

/// A call to make.
#[derive(Clone, Default)]
pub struct CallRequest {
    /// Tool name: exposed name, `server/tool`, `server.tool`, or the bare name of a tool in the context.
    pub tool: String,
    /// Arguments, an object; `None` means `{}`.
    pub arguments: Option<Box<RawValue>>,
    /// Idle timeout: maximum time without an answer or progress. `None`: the configured value; unlimited for a local
    /// tool.
    pub timeout: Option<Duration>,
    /// Total timeout, counted from the permission, regardless of progress. `None`: the configured value; unlimited for
    /// a local tool.
    pub total_timeout: Option<Duration>,
    /// Progress callback. Runs on the read task, so it must not block.
    pub progress: Option<ProgressSink>,
    /// Client that the call is made for; see [`Caller`].
    #[doc(hidden)]
    pub caller: Option<Arc<Caller>>,
    /// Session that makes the call. `None`: all server tools are reachable, and no local tools.
    #[doc(hidden)]
    pub context: Option<Arc<CallContext>>,
}

/// Result of a completed call.
#[derive(Debug, Clone)]
pub struct CallOutcome {
    /// Call id, unique in the process.
    pub id: CallId,
    /// Tool that was called.
    pub tool: CalledTool,
    /// Result as the server sent it; results of local tools have the same form.
    pub result: SharedJson,
    /// Whether the tool reports a failure.
    pub is_error: bool,
    /// Text for the user instead of the result, if a local tool provides one.
    pub display: Option<String>,
    /// Time since the call was permitted.
    pub elapsed: Duration,
    /// The text comes from a local tool and is not sanitized again.
    is_exact: bool,
}

/// Reason why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No tool matches the name.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The tool's server is unavailable.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The arguments do not match the tool's schema.
    #[error("invalid arguments for {tool}: {error}")]
    Arguments {
        /// Tool that was called.
        tool: CalledTool,
        /// Violations of the schema.
        error: ArgumentsError,
    },
    /// Permission was denied, or a hook withheld the result.
    #[error("permission denied for tool {tool}: {reason}")]
    Denied {
        /// Tool that was called.
        tool: CalledTool,
        /// Reason for the model and the user.
        reason: String,
    },
    /// The profile of the client does not include the tool.
    #[error("tool {tool} is not in the profile \"{profile}\"")]
    #[doc(hidden)]
    Profile {
        /// Name, as it was called.
        tool: String,
        /// Profile of the client.
        profile: String,
    },
    /// The call was started and has no result.
    #[error("the call of {tool} failed: {error}")]
    Request {
        /// Tool that was called.
        tool: CalledTool,
        /// Cause of the failure.
        error: RequestError,
    },
}

impl CallError {
    /// Returns a remedy for users and models, if one is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Lookup(error) => return error.hint(),
            Self::Server(ServerError::Unknown(_)) => "list the configured servers",
            Self::Server(ServerError::Disabled(_)) => "enable the server first",
            Self::Server(ServerError::NeedsAuth(_)) => "log in to the server first",
            Self::Server(ServerError::Failed { .. }) => {
                "it is not being reconnected; continue without it, or ask the user to reconnect it"
            }
            Self::Server(ServerError::Pending(_)) => "it is connecting; try again later",
            Self::Server(ServerError::Removed(_)) => "continue without it; its tools are gone",
            Self::Server(ServerError::Withheld { server, state }) => {
                return state.remedy(server).map(|remedy| remedy.to_string());
            }
            Self::Server(_) => "restart the server, or check its log",
            Self::Arguments { .. } => "correct the arguments and call again",
            Self::Profile { .. } => "use one of the listed tools",
            Self::Denied { .. } => "do not try to achieve the same by other means; ask the user",
            Self::Request { error, .. } => match error {
                RequestError::Idle(_) | RequestError::Expired(_) => {
                    "the call was cancelled; request less, or allow more time"
                }
                RequestError::Lost(_) => {
                    "it may or may not have taken effect; check before calling again"
                }
                RequestError::NotSent(_) => "the call had no effect; it can be retried",
                RequestError::TooLarge(_) => "request less at a time",
                RequestError::Overloaded { .. } | RequestError::Paused { .. } => {
                    "the call had no effect; try again later"
                }
                RequestError::NotVisited(_) => "ask the user before calling again",
                RequestError::Refused(refusal) if refusal.wants_more_scope() => {
                    "log in to the server again to grant more scopes"
                }
                _ => return None,
            },
        };
        Some(hint.to_owned())
    }

    fn outside(tool: &str, profile: &Profile) -> Self {
        Self::Profile {
            tool: tool.to_owned(),
            profile: profile.name().to_owned(),
        }
    }

    /// Whether the idle or total timeout ended the call.
    pub fn is_timeout(&self) -> bool {
        let Self::Request { error, .. } = self else {
            return false;
        };
        matches!(error, RequestError::Idle(_) | RequestError::Expired(_))
    }

    /// Formats the error as a result that a model can act on.
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
    /// Calls a tool. Dropping the future cancels the call and notifies the server.
    pub async fn request(&self, mut request: CallRequest) -> Result<CallOutcome, CallError> {
        // Prepare.
        let id = self.next_call();
        let session = request.context.take();
        let session = session.as_deref();
        let caller = session.map(|session| session.session.as_str());
        let made_for = request.caller.clone();
        let made_for = made_for.as_ref();
        let profile = made_for.and_then(|caller| caller.profile.as_deref());
        let client = made_for.map(|caller| &caller.principal);
        let (local, catalog, newer);
        // Boxed to keep the future of every call small.
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
                    let found = self
                        .catalog_with(&request.tool, session, profile, unknown)
                        .await;
                    newer = found.inspect_err(noted)?;
                    let found = find(&newer, &request.tool, session).map_err(CallError::from);
                    found.inspect_err(noted)?
                }
            })
        };
        if let Some(profile) = profile {
            self.check_profile(id, tool, profile, &request)?;
        }
        let mut arguments = request.arguments;
        self.check(id, tool, &mut arguments, client)?;

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
                profile,
                client,
            };
            match gate.before(&pending).answer().await {
                Verdict::Pass(granted) => permit = granted,
                Verdict::Change(changed, granted) => {
                    arguments = Some(changed);
                    self.check(id, tool, &mut arguments, client)?;
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
            profile,
            client,
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
                    caller: request.caller.clone(),
                };
                sending.send().await
            }
            // Boxed for the same reason.
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

        // Inspect and return.
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

    /// Whether a gate decides on calls. Without one, every call is permitted.
    #[doc(hidden)]
    pub fn has_gate(&self) -> bool {
        !self.options().gate.is_open()
    }

    /// Validates arguments against the tool's schema; records invalid calls in the audit log.
    fn check(
        &self,
        id: CallId,
        tool: CallTarget<'_>,
        arguments: &mut Option<Box<RawValue>>,
        client: Option<&Arc<str>>,
    ) -> Result<(), CallError> {
        let checked = tool.argument_check().fit(arguments);
        checked.map_err(|error| {
            let tool = tool.called();
            self.note_unfit(id, &tool, arguments.as_deref(), client);
            CallError::Arguments { tool, error }
        })
    }

    /// Refuses a tool that is not in the profile of the client; records the refused call in the audit log.
    fn check_profile(
        &self,
        id: CallId,
        tool: CallTarget<'_>,
        profile: &Profile,
        request: &CallRequest,
    ) -> Result<(), CallError> {
        let is_included = match tool {
            CallTarget::Server(tool) => profile.has_tool(tool),
            CallTarget::Local(_) => false,
        };
        if is_included {
            return Ok(());
        }
        self.note_outside(id, tool.called(), request, profile.name());
        Err(CallError::outside(&request.tool, profile))
    }

    /// Connects the server that the name points to, if necessary, and returns the resulting catalogue.
    async fn catalog_with(
        &self,
        name: &str,
        session: Option<&CallContext>,
        profile: Option<&Profile>,
        unknown: LookupError,
    ) -> Result<Arc<Catalog>, CallError> {
        if session.is_some_and(|session| !session.may_reach(name)) {
            return Err(unknown.into());
        }
        let view = self.view();
        let statuses = &view.statuses;
        // Prefer a server that can be started: the name of a withheld one may be anything.
        let is_meant = |status: &&ServerStatus| begins_with_server(name, status.name.as_str());
        let meant = statuses.iter().filter(is_meant);
        let meant = meant.min_by_key(|status| status.state.is_withheld());
        if let (Some(status), Some(profile)) = (meant, profile)
            && !profile.has_server(status.name.as_str())
        {
            return Err(CallError::outside(name, profile));
        }
        if let Some(status) = meant {
            // If the server cannot be connected, its error explains the failed lookup.
            self.connected(&status.name).await?;
        } else if let Some(server) = self.removed_server_of(name) {
            return Err(ServerError::Removed(server).into());
        } else if statuses
            .iter()
            .any(|status| !status.state.is_settled() || waits_for_first_use(status))
        {
            // A server that is not connected yet may have the tool.
            self.connect_all().await;
            self.settled_or(|catalog| catalog.find(name).is_ok()).await;
        } else {
            return Err(unknown.into());
        }
        Ok(self.catalog())
    }

    /// Returns the server, removed while the host ran, that this tool name belongs to.
    pub(crate) fn removed_server_of(&self, tool: &str) -> Option<ServerName> {
        let view = self.view();
        let mut removed = view.removed.iter();
        removed
            .find(|server| begins_with_server(tool, server.as_str()))
            .cloned()
    }
}

/// Whether a name has the form of one of the server's tool names. Routing never depends on this.
fn begins_with_server(name: &str, server: &str) -> bool {
    let is_followed_by = |name: &str, separators: &[&str]| {
        name.strip_prefix(server)
            .is_some_and(|rest| separators.iter().any(|after| rest.starts_with(after)))
    };
    is_followed_by(name, &["/", "."]) || exposed::is_like_tool_of(name, server)
}

/// Finds a server tool that the session may reach.
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

struct ToolReply {
    result: SharedJson,
    is_error: bool,
    display: Option<String>,
    is_exact: bool,
}

impl ToolReply {
    /// Reply of a server.
    fn new(result: SharedJson, is_error: bool) -> Self {
        Self {
            result,
            is_error,
            display: None,
            is_exact: false,
        }
    }

    /// Reply of a local tool.
    fn of_local(result: SharedJson, output: LocalOutput) -> Self {
        Self {
            result,
            is_error: output.is_error,
            display: output.display,
            is_exact: true,
        }
    }

    /// Validates a result. An obviously complete one is not decoded: a scan finds the error flag.
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

    /// Masks known secrets of the server in an error result. Text that only resembles a secret stays: it is the tool's
    /// own text.
    #[cold]
    fn redacted(self, redactor: &Redactor) -> Self {
        let Cow::Owned(text) = redactor.redact_known(self.result.as_str()) else {
            return self;
        };
        let result = match RawValue::from_string(text) {
            Ok(result) => SharedJson::from(result),
            // A numeric secret may be part of a JSON number.
            Err(_) => SharedJson::from(&serde_json::json!({
                "content": [{
                    "type": "text",
                    "text": "the tool failed; its answer contains a secret and is omitted",
                }],
                "isError": true,
            })),
        };
        Self { result, ..self }
    }

    /// Applies the gate's result, which is nearly always the same one.
    fn replaced_by(self, result: SharedJson) -> Self {
        if result.is_same(&self.result) {
            return self;
        }
        // A hook is responsible for its replacement: if it cannot be decoded, it does not count as an error of the
        // tool.
        Self::read(result.clone()).unwrap_or_else(|_| Self::new(result, false))
    }
}

/// A call to a server, with everything needed to retry it.
struct Sending<'a> {
    host: &'a Host,
    tool: &'a CatalogTool,
    arguments: Option<&'a RawValue>,
    timeout: Option<Duration>,
    total: Option<Duration>,
    started: Instant,
    id: CallId,
    caller: Option<Arc<Caller>>,
}

impl Sending<'_> {
    /// Sends the call; retries once if the first attempt cannot have had an effect.
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
                // Boxed: this rare path must not enlarge the future of every call.
                Err(error) => return Box::pin(self.without_connection(error)).await,
            },
        };
        let error = match self.once(live).await {
            Ok(answer) if answer.is_error => return Ok(answer.redacted(&live.spec.redactor)),
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if error.wants_pages() {
            // Boxed for the same reason.
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

    /// Retries the call after the user has visited the pages that the server requested.
    async fn after_visit(&self, error: RequestError, live: &Live) -> Result<ToolReply, CallError> {
        let limit = self.left().unwrap_or(live.spec.tool_max);
        let visited = match live.peer_for(self.caller.as_ref()).await {
            Ok(peer) => peer.visit(error, limit).await,
            Err(error) => Err(error),
        };
        let again = match visited {
            Ok(()) => self.once(live).await,
            Err(error) => Err(error),
        };
        again.map_err(|error| self.failed(error.redacted(&live.spec.redactor)))
    }

    fn failed(&self, error: RequestError) -> CallError {
        let error = match (error, self.total) {
            // The last attempt had only the remaining time as its limit; report the total.
            (RequestError::Expired(_), Some(total)) => RequestError::Expired(total),
            (error, _) => error,
        };
        CallError::Request {
            tool: CalledTool::from(self.tool.reference()),
            error,
        }
    }

    /// Remaining time of the request's total timeout.
    fn left(&self) -> Option<Duration> {
        let total = self.total?;
        Some(total.saturating_sub(self.started.elapsed()))
    }

    /// Checks that a newer connection still offers the tool, which may be gone or withheld.
    fn is_offered(&self, live: &Live) -> Result<(), CallError> {
        let reference = self.tool.reference();
        if live.tools.get(reference.tool.as_str()).is_some() {
            return Ok(());
        }
        let gone = self.host.catalog().find(self.tool.exposed().as_str()).err();
        let pending = || ServerError::Pending(reference.server.clone()).into();
        Err(gone.map_or_else(pending, CallError::from))
    }

    /// Handles a call to a server that cannot be connected.
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

    /// Returns the connection for a retry, if a retry is safe and useful.
    async fn after(&self, error: &RequestError, live: &Live) -> Option<Live> {
        let server = &self.tool.reference().server;
        let report = |trouble| {
            let command = Command::Trouble(server.clone(), live.generation, trouble);
            self.host.tell(command)
        };
        if error.wants_authorization() {
            report(Trouble::Unauthorized).await;
            return None;
        }
        if is_header_mismatch(error) {
            // The server rejected the request unread: the tool's definition has changed.
            live.lists.changed(ListKind::Tools);
            return self.host.refreshed(server).await;
        }
        let harmless = self
            .tool
            .trusted_annotations()
            .is_some_and(TrustedAnnotations::is_idempotent);
        let is_open = !matches!(error, RequestError::NotSent(error) if error.kind == TransportErrorKind::Closed);
        if error.session_expired() {
            report(Trouble::SessionExpired).await;
        } else if matches!(error, RequestError::Unwritable(_)) {
            // A retry would fail in the same way.
            return None;
        } else if error.never_sent() && is_open && self.is_back(live).await {
            return Some(live.clone());
        } else if error.never_sent() || (matches!(error, RequestError::Lost(_)) && harmless) {
            report(Trouble::Suspect).await;
        } else {
            if matches!(error, RequestError::Lost(_)) {
                report(Trouble::Suspect).await;
            }
            return None;
        }
        self.host
            .connected_after(server, live.generation, RECONNECT_PATIENCE)
            .await
    }

    /// Whether the server answers a probe over the current connection.
    async fn is_back(&self, live: &Live) -> bool {
        let deadline = self.host.options().settings.health_timeout;
        live.peer.probe(deadline).await.is_ok()
    }

    async fn once(&self, live: &Live) -> Result<ToolReply, RequestError> {
        let load = &live.spec.load;
        let slot = if let Some(slot) = load.try_enter() {
            slot
        } else {
            // Boxed: this rare path must not enlarge the future of every call.
            let name = self.tool.reference().tool.as_str();
            let idle = self.timeout.unwrap_or_else(|| live.spec.timeout_of(name));
            let patience = self.left().map_or(idle, |left| left.min(idle));
            Box::pin(load.enter(patience)).await?
        };
        let peer = live.peer_for(self.caller.as_ref()).await?;
        let answered = peer.answered();
        let outcome = self.attempt(live, &peer).await;
        slot.end(&outcome);
        // Time that the user spends on the server's requests does not count as time of the call.
        person::add(peer.answered().saturating_sub(answered));
        outcome
    }

    async fn attempt(&self, live: &Live, peer: &Peer) -> Result<ToolReply, RequestError> {
        let name = self.tool.reference().tool.as_str();
        // The connection may have a newer definition of the tool.
        let tool = live.tools.get(name).unwrap_or(self.tool);
        let era = peer.revision().era();
        let caller = self.caller.as_deref();
        let takes_task = caller.is_some_and(|caller| caller.takes_task(era));
        let as_task = era == Era::Stateful && tool.must_be_task() && !takes_task;
        let call = ToolCall {
            name,
            arguments: self.arguments,
            as_task,
        };
        let options = RequestOptions {
            idle: self.timeout.unwrap_or_else(|| live.spec.timeout_of(name)),
            total: self.left().unwrap_or(live.spec.tool_max),
            progress: Some(self.host.under_way().route(self.id)),
            headers: self.mirrored(tool, peer)?,
            as_task,
            caller: self.caller.clone(),
        };
        let task = caller.filter(|_| era == Era::Stateful);
        let task = task.and_then(|caller| caller.task.as_deref());
        let task = task.map(|task| format!("{{\"task\":{task}}}"));
        let members = match &task {
            Some(task) => switchboard_protocol::trusted(task),
            None => caller.and_then(|caller| caller.input.as_deref()),
        };
        let first = match members {
            None => peer.call(call, &options).await?,
            // Boxed: this rare path must not enlarge the future of every call.
            Some(members) => Box::pin(self.with_members(peer, call, members, &options)).await?,
        };
        // Nearly every response is obviously a complete result.
        let glance = CallToolResult::error_flag_of_one_text(first.as_bytes())
            .or_else(|| CallToolResult::error_flag_at_a_glance(first.raw()));
        if let (Some(is_error), false) = (glance, as_task) {
            return Ok(ToolReply::new(first, is_error));
        }
        // Boxed: this rare path must not enlarge the future of every call.
        let result = Box::pin(async {
            let params = call.params();
            let params = switchboard_protocol::trusted(&params);
            peer.follow(Method::ToolsCall, params, first, &options)
                .await
        });
        let result = result.await?;
        let declared = declared_type(result.raw());
        let is_unfinished = declared == Some(ResultType::InputRequired)
            && caller.is_some_and(|caller| caller.takes_unfinished);
        let is_task =
            takes_task && matches!(CallTool::decode_result(result.raw()), Ok(Outcome::Task(_)));
        if is_unfinished || is_task {
            return Ok(ToolReply::new(result, false));
        }
        ToolReply::read(result)
    }

    /// Sends a call with further members in its params: the input that the client provides, or its wish for a task.
    async fn with_members(
        &self,
        peer: &Peer,
        call: ToolCall<'_>,
        members: &RawValue,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        let params = call.params();
        let members = members.get().trim_start().strip_prefix('{');
        let params = match (params.strip_suffix('}'), members) {
            (Some(call), Some(members)) => format!("{call},{members}"),
            _ => {
                return Err(RequestError::Unwritable(
                    "the further members are not an object".to_owned(),
                ));
            }
        };
        let params = RawValue::from_string(params)
            .map_err(|error| RequestError::Unwritable(error.to_string()))?;
        peer.first_answer(Method::ToolsCall, &params, options).await
    }

    /// Returns the arguments that the tool's schema mirrors as headers.
    fn mirrored(&self, tool: &CatalogTool, peer: &Peer) -> Result<Vec<Header>, RequestError> {
        let headers = tool.param_headers();
        if headers.is_empty() || peer.revision().era() == Era::Stateful {
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
