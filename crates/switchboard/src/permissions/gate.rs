//! The gate that every call of a host passes: rules, hooks, consent, audit.
//!
//! Defines their order. A deny rule is checked first and last: denied calls reach neither hooks nor a prompt, and
//! arguments changed by a hook are checked again.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_config::entry::Permission;
use switchboard_config::policy::HookEvent;
use tokio::sync::Semaphore;

use super::approval::{Approver, Previewer};
use super::asking::Consent;
use super::engine::{Decision, Engine, ToolRules};
use super::grants::{GrantSummary, Grants};
use super::policy::Caller;
use super::rule::{Because, Grounds};
use super::secrets::SecretPlaces;
use super::subject::Subject;
use crate::audit::{Audit, CallNote, Digest, End, What};
use crate::call::CallTarget;
use crate::call::gate::{Check, EndedCall, Gate, PendingCall, Permit, Sight, Verdict};
use crate::catalog::text::neutralise;
use crate::hooks::{HookAnswer, HookDecision, HookInput};
use crate::json::SharedJson;
use crate::names::{CallId, CalledTool, ServerName, WireName};
use crate::profile::Profile;

/// Permits calls by rules, hooks and user consent, and records them.
pub struct PermissionGate {
    engine: RwLock<Arc<Engine>>,
    pub(super) approver: Option<Arc<dyn Approver>>,
    audit: Option<Audit>,
    session: String,
    pub(super) grants: Grants,
    /// Serializes prompts, if the approver requires it.
    pub(super) asking: Semaphore,
}

/// A requested call.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The ID of the call.
    pub id: CallId,
    /// The tool.
    pub subject: Subject<'a>,
    /// The arguments.
    pub arguments: Option<&'a RawValue>,
    /// The resolved tool, with its argument schema; `None` if there is no call yet.
    pub tool: Option<CallTarget<'a>>,
    /// Previews the effect of the call.
    pub previewer: Option<&'a dyn Previewer>,
    /// The calling session, for hooks; `None` for that of the gate.
    pub session: Option<&'a str>,
    /// The profile of the client that makes the call, which may restrict it.
    #[doc(hidden)]
    pub profile: Option<&'a Profile>,
    /// The client for which the call is made; `None` if this process makes it for itself.
    #[doc(hidden)]
    pub client: Option<&'a Arc<str>>,
}

impl Wanted<'_> {
    /// Decides by the rules for all calls, and those for this client.
    fn decide(&self, engine: &Engine, rules: &ToolRules) -> Decision {
        let decision = engine.decide_by(rules, &self.subject, self.arguments, self.caller());
        match self.profile.and_then(Profile::restrictions) {
            Some(own) => own.restrict(decision, &self.subject, self.arguments),
            None => decision,
        }
    }

    /// The kind of caller: a session belongs to a model.
    fn caller(&self) -> Caller {
        if self.session.is_some() {
            Caller::Model
        } else {
            Caller::Program
        }
    }
}

/// The outcome of considering a call once.
enum Considered {
    Decided(Verdict),
    /// The user wants other arguments, as JSON.
    Edited(String),
    Again,
}

impl PermissionGate {
    /// Creates a gate with these rules, without an approver or an audit log.
    pub fn new(engine: Engine) -> Self {
        Self {
            engine: RwLock::new(Arc::new(engine)),
            approver: None,
            audit: None,
            session: String::new(),
            grants: Grants::default(),
            asking: Semaphore::new(1),
        }
    }

    /// Sets the approver that prompts the user.
    #[must_use]
    pub fn asking(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets the audit log.
    #[doc(hidden)]
    #[must_use]
    pub fn recording(mut self, audit: Audit) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Sets the session reported to hooks for requests without one.
    #[must_use]
    pub fn in_session(mut self, session: impl Into<String>) -> Self {
        self.session = session.into();
        self
    }

    /// Replaces the rules, for example after a configuration change. Session grants remain; grants written to a file
    /// apply as long as the rule is there.
    pub fn set_engine(&self, engine: Engine) {
        *self.engine.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(engine);
        self.grants.reloaded();
    }

    /// What the user has granted for as long as this gate lasts, oldest first.
    #[doc(hidden)]
    pub fn session_grants(&self) -> Vec<GrantSummary> {
        self.grants.list()
    }

    /// Revokes a grant of the session; `false` if the number is unknown.
    #[doc(hidden)]
    pub fn revoke_grant(&self, number: u64) -> bool {
        self.grants.revoke(number)
    }

    /// The current rules.
    pub fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engine.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Decides about a call, synchronously if no hook or prompt is involved. If the audit log is required, a permitted
    /// call is recorded first, and refused if that fails.
    #[doc(hidden)]
    pub fn permit<'a>(&'a self, wanted: Wanted<'a>) -> Check<'a, Verdict> {
        let decided = self.decide(wanted);
        match &self.audit {
            Some(audit) if audit.is_required() => {
                Check::Later(Box::pin(recorded(audit, wanted, decided)))
            }
            _ => decided,
        }
    }

    fn decide<'a>(&'a self, wanted: Wanted<'a>) -> Check<'a, Verdict> {
        let engine = self.engine();
        let rules = engine.rules_of(&wanted.subject);
        let decision = wanted.decide(&engine, &rules);
        let has_hooks = !rules.before.is_empty();
        match decision.permission {
            Permission::Deny => Check::Now(self.refuse(&wanted, decision.grounds, None)),
            Permission::Allow if !has_hooks => {
                Check::Now(Verdict::Pass(Permit::on(decision.grounds)))
            }
            Permission::Ask if !has_hooks && self.is_granted(&engine, &wanted, &decision) => {
                Check::Now(Verdict::Pass(Permit::on(granted(true, decision.grounds))))
            }
            _ => {
                let considered = self.consider(engine, rules, decision, wanted);
                Check::Later(Box::pin(considered))
            }
        }
    }

    fn is_granted(&self, engine: &Engine, wanted: &Wanted<'_>, decision: &Decision) -> bool {
        let base = engine.own_files.base_of(wanted.subject.server);
        let tool = wanted.subject.exposed;
        let client = self
            .approver
            .as_ref()
            .and_then(|approver| approver.client());
        self.grants
            .has(client, tool, &decision.grounds, wanted.arguments, base)
    }

    /// Passes a result to the hooks that inspect results.
    fn inspect<'a>(&'a self, wanted: Wanted<'a>, result: &'a SharedJson) -> Check<'a, Sight> {
        let engine = self.engine();
        if engine.hooks.of(HookEvent::PostToolUse).next().is_none() {
            return Check::Now(Sight::Keep);
        }
        let rules = engine.rules_of(&wanted.subject);
        if rules.after.is_empty() {
            return Check::Now(Sight::Keep);
        }
        Check::Later(Box::pin(async move {
            let mut changed: Option<SharedJson> = None;
            for index in &rules.after {
                let seen = changed.as_ref().unwrap_or(result);
                let input = self.input(HookEvent::PostToolUse, &wanted, wanted.arguments);
                let input = HookInput {
                    result: Some(seen),
                    ..input
                };
                match run_hook(&engine, *index, input).await {
                    Ok(HookAnswer {
                        decision: Some(HookDecision::Block),
                        reason,
                        ..
                    }) => {
                        let reason = reason.unwrap_or_else(|| "a hook withholds the result".into());
                        return Sight::Withhold { reason };
                    }
                    Ok(answer) => changed = answer.result.or(changed),
                    Err(reason) => return Sight::Withhold { reason },
                }
            }
            changed.map_or(Sight::Keep, Sight::Replace)
        }))
    }

    /// Records the end of a permitted call.
    fn finish(&self, wanted: &Wanted<'_>, permit: &Permit, elapsed: Duration, end: End) {
        if let Some(audit) = &self.audit {
            let grounds = permit.shared::<Grounds>();
            audit.record(note(wanted, grounds, elapsed, end));
        }
    }

    /// The asynchronous part: hooks, then the prompt.
    async fn consider(
        &self,
        engine: Arc<Engine>,
        rules: Arc<ToolRules>,
        mut decision: Decision,
        wanted: Wanted<'_>,
    ) -> Verdict {
        // A call cancelled while waiting is recorded, too.
        let mut unanswered = Unanswered {
            gate: self,
            wanted: &wanted,
            is_over: false,
        };
        let mut edited: Option<Box<RawValue>> = None;
        let mut complaint = None;
        let verdict = async {
            loop {
                let considered = Wanted {
                    arguments: edited.as_deref().or(wanted.arguments),
                    ..wanted
                };
                if edited.is_some() {
                    decision = considered.decide(&engine, &rules);
                    if decision.permission == Permission::Deny {
                        return self.refuse(&considered, decision.grounds, None);
                    }
                }
                let remark = complaint.take();
                let considering =
                    self.consider_once(&engine, &rules, &decision, considered, remark);
                let (text, permit) = match considering.await {
                    Considered::Decided(verdict) => match (verdict, edited) {
                        (Verdict::Pass(permit), Some(arguments)) => (arguments, permit),
                        (verdict, _) => return verdict,
                    },
                    Considered::Again => continue,
                    Considered::Edited(text) => {
                        // The user's text is checked like the arguments of a new call, and shown again.
                        let parsed = RawValue::from_string(text).map_err(|error| error.to_string());
                        let fitting = parsed.and_then(|arguments| {
                            misfit(&wanted, &arguments).map_or(Ok(arguments), Err)
                        });
                        match fitting {
                            Ok(arguments) => edited = Some(arguments),
                            Err(error) => {
                                complaint =
                                    Some(format!("the edited arguments do not fit: {error}"));
                            }
                        }
                        continue;
                    }
                };
                return Verdict::Change(text, permit);
            }
        };
        let verdict = verdict.await;
        unanswered.is_over = true;
        verdict
    }

    /// Runs the hooks, then the prompt, for these arguments.
    async fn consider_once(
        &self,
        engine: &Engine,
        rules: &ToolRules,
        decision: &Decision,
        wanted: Wanted<'_>,
        complaint: Option<String>,
    ) -> Considered {
        let mut changed: Option<Box<RawValue>> = None;
        let mut said: Option<(HookDecision, Arc<Grounds>)> = None;
        let mut remark = complaint;
        let refused = |wanted: &Wanted<'_>, grounds, reason| {
            Considered::Decided(self.refuse(wanted, grounds, reason))
        };
        for index in &rules.before {
            let arguments = changed.as_deref().or(wanted.arguments);
            let input = self.input(HookEvent::PreToolUse, &wanted, arguments);
            let grounds = |permission| hook_grounds(engine, *index, permission);
            let answer = match run_hook(engine, *index, input).await {
                Ok(answer) => answer,
                Err(reason) => return refused(&wanted, grounds(Permission::Deny), Some(reason)),
            };
            match answer.decision {
                Some(HookDecision::Block) => {
                    return refused(&wanted, grounds(Permission::Deny), answer.reason);
                }
                Some(HookDecision::Ask) => {
                    said = Some((HookDecision::Ask, grounds(Permission::Ask)));
                    remark = remark.or(answer.reason);
                }
                Some(HookDecision::Allow) if said.is_none() => {
                    said = Some((HookDecision::Allow, grounds(Permission::Allow)));
                }
                _ => {}
            }
            if let Some(arguments) = answer.arguments {
                if let Some(error) = misfit(&wanted, &arguments) {
                    let reason =
                        format!("a hook changed the arguments, and they no longer fit: {error}");
                    return refused(&wanted, grounds(Permission::Deny), Some(reason));
                }
                changed = Some(arguments);
            }
        }
        let sent = Wanted {
            arguments: changed.as_deref().or(wanted.arguments),
            ..wanted
        };
        let again = changed.is_some().then(|| sent.decide(engine, rules));
        let decision = again.as_ref().unwrap_or(decision);
        let grounds = Arc::clone(&decision.grounds);
        let consent = match (decision.permission, said) {
            (Permission::Deny, _) => Consent::Refused(grounds, None),
            (_, Some((HookDecision::Ask, grounds))) => {
                let remark = remark.as_deref();
                self.consent(engine, &sent, grounds, remark).await
            }
            (Permission::Ask, Some((_, grounds))) => Consent::Given(grounds),
            (Permission::Ask, None) => {
                let remark = remark.as_deref();
                self.consent(engine, &sent, grounds, remark).await
            }
            (Permission::Allow, _) => Consent::Given(grounds),
        };
        Considered::Decided(match consent {
            Consent::Edited(arguments) => return Considered::Edited(arguments),
            Consent::Again => return Considered::Again,
            Consent::Refused(grounds, reason) => self.refuse(&sent, grounds, reason),
            Consent::Given(grounds) => match changed {
                Some(arguments) => Verdict::Change(arguments, Permit::on(grounds)),
                None => Verdict::Pass(Permit::on(grounds)),
            },
        })
    }

    fn input<'a>(
        &'a self,
        event: HookEvent,
        wanted: &Wanted<'a>,
        arguments: Option<&'a RawValue>,
    ) -> HookInput<'a> {
        HookInput {
            event,
            session: wanted.session.unwrap_or(&self.session),
            call: wanted.id,
            subject: wanted.subject,
            arguments,
            result: None,
        }
    }

    /// Refuses a call and records the refusal.
    fn refuse(
        &self,
        wanted: &Wanted<'_>,
        grounds: Arc<Grounds>,
        reason: Option<String>,
    ) -> Verdict {
        let reason = match (reason, &grounds.because) {
            (Some(reason), _) => reason,
            (None, Because::Person { .. }) => "the user said no".to_owned(),
            (None, because) => because.to_string(),
        };
        self.record(note(wanted, Some(grounds), Duration::ZERO, End::Refused));
        Verdict::Deny {
            reason: neutralise(&reason).into_owned(),
        }
    }

    pub(super) fn record(&self, what: What) {
        if let Some(audit) = &self.audit {
            audit.record(what);
        }
    }
}

/// The verdict, after the call was recorded.
async fn recorded(audit: &Audit, wanted: Wanted<'_>, decided: Check<'_, Verdict>) -> Verdict {
    let verdict = decided.answer().await;
    let (Verdict::Pass(permit) | Verdict::Change(_, permit)) = &verdict else {
        return verdict;
    };
    let grounds = permit.shared::<Grounds>();
    let entry = note(&wanted, grounds, Duration::ZERO, End::Begun);
    match audit.confirm(entry).await {
        Ok(()) => verdict,
        Err(error) => {
            let hint = error.hint().unwrap_or("see `switchboard doctor`");
            let reason = format!(
                "the call cannot be recorded, and `audit = \"required\"` is set: {error}; {hint}"
            );
            Verdict::Deny {
                reason: neutralise(&reason).into_owned(),
            }
        }
    }
}

impl Gate for PermissionGate {
    fn note(&self, what: What) {
        self.record(what);
    }

    fn secrets(&self) -> Arc<SecretPlaces> {
        self.engine().secrets()
    }

    fn before<'a>(&'a self, call: &'a PendingCall<'a>) -> Check<'a, Verdict> {
        self.permit(Wanted::from(call))
    }

    fn after<'a>(&'a self, call: &'a PendingCall<'a>, result: &'a SharedJson) -> Check<'a, Sight> {
        self.inspect(Wanted::from(call), result)
    }

    fn ended(&self, call: &EndedCall<'_>) {
        let end = End::of(call.outcome);
        self.finish(&Wanted::from(&call.call), call.permit, call.elapsed, end);
    }
}

impl<'a> From<&PendingCall<'a>> for Wanted<'a> {
    fn from(call: &PendingCall<'a>) -> Self {
        Self {
            id: call.id,
            subject: call.tool.subject(),
            arguments: call.arguments,
            tool: Some(call.tool),
            previewer: call.tool.previewer(),
            session: call.session,
            profile: call.profile,
            client: call.client,
        }
    }
}

impl std::fmt::Debug for PermissionGate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PermissionGate")
            .field("engine", &self.engine())
            .finish_non_exhaustive()
    }
}

/// A call that waits for hooks or a prompt. Dropping it before they finish records it as cancelled.
struct Unanswered<'a> {
    gate: &'a PermissionGate,
    wanted: &'a Wanted<'a>,
    is_over: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let grounds = Grounds::new(Permission::Deny, Because::NoAnswer);
            let grounds = Some(Arc::new(grounds));
            let note = note(self.wanted, grounds, Duration::ZERO, End::CalledOff);
            self.gate.record(note);
        }
    }
}

/// Runs one hook. A failure blocks the call unless the hook may fail.
async fn run_hook(
    engine: &Engine,
    index: usize,
    input: HookInput<'_>,
) -> Result<HookAnswer, String> {
    let Some(hook) = engine.hooks.get(index) else {
        return Ok(HookAnswer::default());
    };
    match hook.hook.run(input).await {
        Ok(answer) => Ok(answer),
        Err(error) if hook.fail_open => {
            tracing::warn!(%error, "ignoring a failed hook");
            Ok(HookAnswer::default())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn hook_grounds(engine: &Engine, index: usize, permission: Permission) -> Arc<Grounds> {
    let origin = engine.hooks.get(index).and_then(|hook| hook.origin.clone());
    Arc::new(Grounds::new(permission, Because::Hook { origin }))
}

pub(super) fn granted(session: bool, asked: Arc<Grounds>) -> Arc<Grounds> {
    Arc::new(Grounds::new(
        Permission::Ask,
        Because::Person { session, asked },
    ))
}

/// The reason arguments from a hook do not match the tool's schema; `None` if they do.
fn misfit(wanted: &Wanted<'_>, arguments: &RawValue) -> Option<String> {
    let check = wanted.tool?.argument_check();
    let error = check.fit(&mut Some(arguments.to_owned())).err()?;
    Some(error.to_string())
}

fn note(wanted: &Wanted<'_>, grounds: Option<Arc<Grounds>>, elapsed: Duration, end: End) -> What {
    let CalledTool { server, tool } = match wanted.tool {
        Some(tool) => tool.called(),
        None => CalledTool {
            server: wanted.subject.server.map(ServerName::from),
            tool: WireName::from(wanted.subject.tool),
        },
    };
    What::Call(CallNote {
        id: wanted.id,
        client: wanted.client.map(Arc::clone),
        server,
        tool,
        grounds,
        arguments: wanted
            .arguments
            .map(|arguments| Digest::of(arguments.get())),
        elapsed,
        end,
    })
}
