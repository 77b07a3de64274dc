//! Tests of `PermissionGate` in a host: an in-process server, rules, a user, hooks, and the audit log.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, pending, ready};
use serde_json::{Value, json};
use switchboard::internal::audit::{Audit, AuditSettings, LOG};
use switchboard::internal::hooks::{
    Hook, HookAnswer, HookDecision, HookError, HookInput, Registration,
};
use switchboard::internal::permissions::Wanted;
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::internal::workspace;
use switchboard::permissions::{
    Approver, Engine, GrantPlace, Offer, PermissionGate, Policy, PromptAnswer, Question, Secrecy,
    Subject,
};
use switchboard::{
    CallError, CallId, CallRequest, Gate as _, Host, HostOptions, Verdict, Workspace,
};
use switchboard_config::edit::{NewCondition, NewRule};
use switchboard_config::policy::HookEvent;
use switchboard_store::{
    ErrorKind, LogQuery, MemoryStore, Retention, Store, StoreError, UnavailableStore,
};
use tokio::sync::Notify;

use crate::machine::{raw, user_engine};

/// A host with the workspace server, its gate and its audit log.
pub(crate) struct Lab {
    host: Host,
    gate: Arc<PermissionGate>,
    audit: Audit,
    store: Arc<MemoryStore>,
    folder: tempfile::TempDir,
}

/// The scripted answers of a user, and the prompts received.
#[derive(Default)]
pub(crate) struct Person {
    answers: Mutex<Vec<PromptAnswer>>,
    asked: AtomicUsize,
    remembered: Mutex<Vec<(NewRule, GrantPlace)>>,
    /// The offers of the last prompt.
    offered: Mutex<Vec<Offer>>,
    /// The arguments and the remark of each prompt.
    pub(crate) seen: Mutex<Vec<(String, Option<String>)>>,
    silent: Option<Notify>,
}

impl Approver for Person {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, PromptAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if let Some(asked) = &self.silent {
            asked.notify_one();
            return pending().boxed();
        }
        *self.offered.lock().expect("offers") = question.offers.to_vec();
        let arguments = question.arguments.map(|raw| raw.get().to_owned());
        let remark = question.remark.map(str::to_owned);
        let mut seen = self.seen.lock().expect("seen");
        seen.push((arguments.unwrap_or_default(), remark));
        let mut answers = self.answers.lock().expect("answers");
        assert!(!answers.is_empty(), "an unexpected question: {question:?}");
        ready(answers.remove(0)).boxed()
    }

    fn remember<'a>(
        &'a self,
        rule: &'a NewRule,
        place: GrantPlace,
    ) -> BoxFuture<'a, Result<(), String>> {
        let mut rules = self.remembered.lock().expect("rules");
        rules.push((rule.clone(), place));
        ready(Ok(())).boxed()
    }
}

impl Lab {
    pub(crate) async fn new(
        rules: &str,
        hooks: Vec<Registration>,
        person: Option<Arc<Person>>,
    ) -> Self {
        let engine = user_engine(rules, Policy::agent()).with_hooks(hooks);
        Self::with_engine(engine, person).await
    }

    async fn with_engine(engine: Engine, person: Option<Arc<Person>>) -> Self {
        let store = Arc::new(MemoryStore::new());
        let settings = AuditSettings::new(Retention {
            max_age: std::time::Duration::from_secs(1000),
            max_bytes: 1 << 20,
        });
        let audit = Audit::start(Arc::clone(&store) as Arc<dyn Store>, settings, "test");
        let mut gate = PermissionGate::new(engine).recording(audit.clone());
        if let Some(person) = person {
            gate = gate.asking(person);
        }
        let gate = Arc::new(gate);
        let host = Host::with_options(HostOptions {
            gate: Arc::clone(&gate) as Arc<dyn switchboard::Gate>,
            ..HostOptions::default()
        });
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "hello").expect("a file");
        std::fs::write(folder.path().join("b.txt"), "other").expect("a file");
        let mut specs = Vec::new();
        for name in [workspace::NAME, "trusted", "other"] {
            let service = Arc::new(Workspace::new(folder.path()).expect("a workspace"));
            let connector = Arc::new(InProcessConnector::new(service));
            let key = ConnectionKey::of(&[name.as_bytes()]);
            let mut spec = ServerSpec::new(name, connector, key);
            if name == "trusted" {
                spec.rules = spec.rules.trusting_annotations();
            }
            specs.push(spec);
        }
        host.apply(specs).await;
        host.settled().await;
        Self {
            host,
            gate,
            audit,
            store,
            folder,
        }
    }

    /// Reads a file through the host. Returns its text, or the reason for the refusal.
    pub(crate) async fn read(&self, server: &str, path: &str) -> Result<String, String> {
        let request = CallRequest {
            tool: format!("{server}/read_file"),
            arguments: Some(raw(&json!({ "path": path }).to_string())),
            ..CallRequest::default()
        };
        match self.host.request(request).await {
            Ok(outcome) => {
                let result: Value = serde_json::from_str(outcome.result.as_str()).expect("JSON");
                Ok(result["content"][0]["text"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned())
            }
            Err(CallError::Denied { reason, .. }) => Err(reason),
            Err(other) => panic!("{other}"),
        }
    }

    /// The audit entries: decision, reason and outcome.
    pub(crate) async fn written(&self) -> Vec<(String, String, String)> {
        self.audit.flush().await;
        let entries = self.store.read_log(LOG, LogQuery::default()).await;
        let entries = entries.expect("a log").into_iter().rev();
        entries
            .map(|entry| {
                let entry: Value = serde_json::from_slice(&entry.value).expect("JSON");
                let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
                let kind = text("kind");
                if kind == "call" {
                    (text("decision"), text("because"), text("outcome"))
                } else {
                    (kind, text("event"), String::new())
                }
            })
            .collect()
    }
}

pub(crate) fn lines(found: &[(String, String, String)]) -> Vec<String> {
    found
        .iter()
        .map(|(decision, because, outcome)| format!("{decision} {because} {outcome}"))
        .collect()
}

pub(crate) fn person(answers: &[PromptAnswer]) -> Arc<Person> {
    Arc::new(Person {
        answers: Mutex::new(answers.to_vec()),
        ..Person::default()
    })
}

/// Allows the call, and grants an offer for a place.
fn grant(offer: usize, place: GrantPlace) -> PromptAnswer {
    PromptAnswer::Grant { offer, place }
}

const CALL: usize = 0;
const TOOL: usize = 1;

#[tokio::test]
async fn a_persons_answers_are_kept_to() {
    use PromptAnswer::{No, Once};
    let person = person(&[Once, No, grant(CALL, GrantPlace::Session)]);
    let lab = Lab::new("", Vec::new(), Some(Arc::clone(&person))).await;
    assert_eq!(lab.read("workspace", "a.txt").await, Ok("hello".into()));
    assert_eq!(
        lab.read("workspace", "a.txt").await,
        Err("the user said no".into())
    );
    for _ in 0..3 {
        assert_eq!(lab.read("workspace", "a.txt").await, Ok("hello".into()));
    }
    assert_eq!(person.asked.load(Ordering::Relaxed), 3);
    // A trusted server's read-only tool needs no prompt.
    assert_eq!(lab.read("trusted", "a.txt").await, Ok("hello".into()));
    // Later rules prompt on their own: the grant answered the prompt of the default.
    let rule = "[[permissions.rules]]\ntool = 'mcp__workspace'\naction = 'ask'\n";
    lab.gate.set_engine(user_engine(rule, Policy::agent()));
    let always = grant(TOOL, GrantPlace::User);
    person.answers.lock().expect("answers").push(always);
    assert_eq!(lab.read("workspace", "a.txt").await, Ok("hello".into()));
    // No rule is written for the prompt of a rule, which it could not override.
    assert!(person.remembered.lock().expect("rules").is_empty());
    assert_eq!(
        lines(&lab.written().await),
        [
            "ask person done",
            "deny person refused",
            "ask person done",
            "ask person done",
            "ask person done",
            "allow read-only done",
            "ask person done",
        ]
    );
}

#[tokio::test]
async fn a_grant_covers_what_it_says_and_nothing_else() {
    let answers = [grant(CALL, GrantPlace::Session), PromptAnswer::No];
    let person = person(&answers);
    let lab = Lab::new("", Vec::new(), Some(Arc::clone(&person))).await;
    for _ in 0..2 {
        assert_eq!(lab.read("workspace", "a.txt").await, Ok("hello".into()));
    }
    let words: Vec<String> = person
        .offered
        .lock()
        .expect("offers")
        .iter()
        .map(|offer| offer.words.clone())
        .collect();
    let expected = [
        "this tool with these arguments",
        "read_file of workspace, with any arguments",
    ];
    assert_eq!(words, expected);
    // Other arguments prompt again; the whole tool can be granted, too.
    lab.read("workspace", "b.txt").await.expect_err("a refusal");
    let tool = grant(TOOL, GrantPlace::Session);
    person.answers.lock().expect("answers").push(tool);
    for path in ["b.txt", "a.txt", "b.txt"] {
        lab.read("workspace", path).await.expect("a file");
    }
    assert_eq!(person.asked.load(Ordering::Relaxed), 3);
    // The grant does not cover the same tool of another server.
    person
        .answers
        .lock()
        .expect("answers")
        .push(PromptAnswer::No);
    lab.read("other", "a.txt").await.expect_err("a refusal");
}

#[tokio::test]
async fn an_answer_for_good_writes_one_narrow_rule_and_ends_with_it() {
    let person = person(&[grant(CALL, GrantPlace::User)]);
    let lab = Lab::new("", Vec::new(), Some(Arc::clone(&person))).await;
    for _ in 0..2 {
        assert_eq!(lab.read("workspace", "a.txt").await, Ok("hello".into()));
    }
    let rules = person.remembered.lock().expect("rules").clone();
    let condition = NewCondition::ExactArguments(r#"{"path":"a.txt"}"#.to_owned());
    let rule = NewRule::allow("mcp__workspace__read_file", Some(condition));
    assert_eq!(rules, [(rule, GrantPlace::User)]);
    assert_eq!(
        lines(&lab.written().await),
        ["change allow ", "ask person done", "ask person done"]
    );
    // The rule in the file covers the same arguments and no others.
    let written = "[[permissions.rules]]\ntool = 'mcp__workspace__read_file'\naction = 'allow'\nexact_arguments = '{\"path\":\"a.txt\"}'\n";
    lab.gate.set_engine(user_engine(written, Policy::agent()));
    assert_eq!(lab.read("workspace", "a.txt").await, Ok("hello".into()));
    person
        .answers
        .lock()
        .expect("answers")
        .push(PromptAnswer::No);
    lab.read("workspace", "b.txt").await.expect_err("a refusal");
    // Deleting it from the file revokes it.
    lab.gate.set_engine(user_engine("", Policy::agent()));
    person
        .answers
        .lock()
        .expect("answers")
        .push(PromptAnswer::No);
    lab.read("workspace", "a.txt").await.expect_err("a refusal");
    assert_eq!(person.asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn what_could_not_be_shown_is_not_approved() {
    let person = person(&[PromptAnswer::Unshown("it is too long".to_owned())]);
    let lab = Lab::new("", Vec::new(), Some(person)).await;
    let reason = lab.read("workspace", "a.txt").await.expect_err("a refusal");
    assert_eq!(reason, "it is too long");
    assert_eq!(lines(&lab.written().await), ["deny no-answer refused"]);
}

/// The offers for a call of a built-in tool: name, text, and condition of the file rule.
fn offers(tool: &str, arguments: &str) -> Vec<(&'static str, String, Option<NewCondition>)> {
    let person = person(&[PromptAnswer::No]);
    let gate = PermissionGate::new(user_engine("", Policy::agent()))
        .asking(Arc::clone(&person) as Arc<dyn Approver>);
    let arguments = raw(arguments);
    let wanted = Wanted {
        id: CallId(1),
        subject: Subject::built_in(tool),
        arguments: Some(&arguments),
        tool: None,
        previewer: None,
        session: None,
        profile: None,
        client: None,
    };
    let verdict = futures_util::future::FutureExt::now_or_never(gate.permit(wanted).answer());
    assert!(matches!(verdict, Some(Verdict::Deny { .. })), "{verdict:?}");
    let offers = person.offered.lock().expect("offers");
    let shown = |offer: &Offer| {
        let condition = offer.rule.as_ref().map(|rule| rule.condition.clone());
        (offer.name, offer.words.clone(), condition.flatten())
    };
    offers.iter().map(shown).collect()
}

#[test]
fn offers_are_narrow_and_say_so() {
    let equals = |value: &str| {
        Some(NewCondition::Equals {
            argument: "command".to_owned(),
            value: value.to_owned(),
        })
    };
    let line = |text: &str| ("call", "this command line".to_owned(), equals(text));
    let status = "`git status …`, with any further arguments".to_owned();
    assert_eq!(
        offers("Bash", r#"{"command": "git status -s"}"#),
        [
            line("git status -s"),
            (
                "prefix",
                status,
                Some(NewCondition::Command("git status".to_owned()))
            ),
        ]
    );
    for command in [
        "git status; ls",
        "rm -rf x",
        "sh -c ls",
        "git status > x",
        "python -c 1",
    ] {
        let arguments = json!({ "command": command }).to_string();
        assert_eq!(offers("Bash", &arguments), [line(command)], "{command}");
    }
    // A secret is not written to a file.
    let secret = offers("Bash", r#"{"command": "TOKEN=abc deploy"}"#);
    assert_eq!(secret, [("call", "this command line".to_owned(), None)]);
    // It is ambiguous which of the two is run.
    assert_eq!(
        offers("Bash", r#"{"command": "ls", "command": "rm x"}"#),
        []
    );
    let under = |folder: &str| {
        Some(NewCondition::Under {
            argument: "file_path".to_owned(),
            folder: folder.to_owned(),
        })
    };
    assert_eq!(
        offers(
            "Edit",
            r#"{"file_path": "src/a.rs", "old_string": "a", "new_string": "b"}"#
        ),
        [
            (
                "file",
                "Edit of /nowhere/project/src/a.rs".to_owned(),
                under("/nowhere/project/src/a.rs")
            ),
            (
                "folder",
                "Edit of any file in /nowhere/project".to_owned(),
                under("/nowhere/project")
            ),
        ]
    );
    let outside = offers("Write", r#"{"file_path": "/etc/x", "content": ""}"#);
    assert_eq!(
        outside,
        [("file", "Write of /etc/x".to_owned(), under("/etc/x"))]
    );
    // A reference would be expanded where the rule is read.
    let reference = offers("Write", r#"{"file_path": "/etc/${x}", "content": ""}"#);
    assert_eq!(reference, [("file", "Write of /etc/${x}".to_owned(), None)]);
    // Of a long path its beginning and its end are shown.
    let long = format!("/etc/{}{}", "a".repeat(40), "b".repeat(40));
    let arguments = json!({ "file_path": long, "content": "" }).to_string();
    let shown = format!("Write of /etc/{}…{}", "a".repeat(15), "b".repeat(40));
    assert_eq!(offers("Write", &arguments)[0].1, shown);
    // Tools that take no file.
    let exact = |arguments: &str| Some(NewCondition::ExactArguments(arguments.to_owned()));
    let call = |condition| {
        (
            "call",
            "this tool with these arguments".to_owned(),
            condition,
        )
    };
    let any = ("tool", "Fetch, with any arguments".to_owned(), None);
    assert_eq!(
        offers("Fetch", r#"{"url": "x"}"#),
        [call(exact(r#"{"url":"x"}"#)), any.clone()]
    );
    assert_eq!(
        offers("Fetch", r#"{"api_token": "abc"}"#),
        [call(None), any.clone()]
    );
    let large = json!({ "text": "x".repeat(5000) }).to_string();
    assert_eq!(offers("Fetch", &large), [call(None), any]);
}

#[tokio::test]
async fn with_nobody_to_ask_the_answer_is_no() {
    let lab = Lab::new("", Vec::new(), None).await;
    let reason = lab.read("workspace", "a.txt").await.expect_err("a refusal");
    assert_eq!(
        reason,
        "it needs approval, and no prompt is available: no rule matches"
    );
    assert_eq!(lines(&lab.written().await), ["deny unattended refused"]);
}

#[tokio::test]
async fn a_question_that_is_taken_back_is_written_down() {
    let person = Arc::new(Person {
        silent: Some(Notify::new()),
        ..Person::default()
    });
    let lab = Lab::new("", Vec::new(), Some(Arc::clone(&person))).await;
    tokio::select! {
        _ = lab.read("workspace", "a.txt") => panic!("nobody answered"),
        () = person.silent.as_ref().expect("a mark").notified() => {}
    }
    assert_eq!(lines(&lab.written().await), ["deny no-answer cancelled"]);
}

#[tokio::test]
async fn questions_come_one_at_a_time_and_a_grant_answers_those_that_wait() {
    let person = person(&[grant(CALL, GrantPlace::Session)]);
    let lab = Lab::new("", Vec::new(), Some(Arc::clone(&person))).await;
    let reads = (0..8).map(|_| lab.read("workspace", "a.txt"));
    let found = futures_util::future::join_all(reads).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(person.asked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_second_question_waits_until_the_first_is_answered() {
    let person = Arc::new(Person {
        silent: Some(Notify::new()),
        ..Person::default()
    });
    let gate = PermissionGate::new(user_engine("", Policy::agent()))
        .asking(Arc::clone(&person) as Arc<dyn Approver>);
    let wanted = |tool| Wanted {
        id: CallId(1),
        subject: Subject::built_in(tool),
        arguments: None,
        tool: None,
        previewer: None,
        session: None,
        profile: None,
        client: None,
    };
    let mut first = Box::pin(gate.permit(wanted("Bash")).answer());
    let mut second = Box::pin(gate.permit(wanted("Write")).answer());
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut second).now_or_never().is_none());
    assert_eq!(person.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_grant_answers_only_the_question_that_was_asked() {
    let person = person(&[grant(CALL, GrantPlace::Session), PromptAnswer::No]);
    let lab = Lab::new("", Vec::new(), Some(Arc::clone(&person))).await;
    assert!(lab.read("workspace", "a.txt").await.is_ok());
    assert!(lab.read("workspace", "a.txt").await.is_ok());
    assert_eq!(person.asked.load(Ordering::Relaxed), 1);
    // A rule that came later asks again.
    let ask = "[[permissions.rules]]\ntool = '*'\naction = 'ask'\n";
    lab.gate.set_engine(user_engine(ask, Policy::agent()));
    assert!(lab.read("workspace", "a.txt").await.is_err());
    assert_eq!(person.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn hooks_see_granted_calls_and_no_denied_ones() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = {
        let seen = Arc::clone(&seen);
        move |_: &HookInput<'_>| match seen.fetch_add(1, Ordering::Relaxed) {
            2.. => HookAnswer::block("enough"),
            _ => HookAnswer::default(),
        }
    };
    let person = person(&[grant(CALL, GrantPlace::Session)]);
    let hooks = vec![hook(HookEvent::PreToolUse, count.clone())];
    let lab = Lab::new("", hooks, Some(person)).await;
    assert!(lab.read("workspace", "a.txt").await.is_ok());
    assert!(lab.read("workspace", "a.txt").await.is_ok());
    assert_eq!(lab.read("workspace", "a.txt").await, Err("enough".into()));
    assert_eq!(seen.swap(0, Ordering::Relaxed), 3);
    let deny = "[[permissions.rules]]\ntool = '*'\naction = 'deny'\n";
    let lab = Lab::new(deny, vec![hook(HookEvent::PreToolUse, count)], None).await;
    assert!(lab.read("workspace", "a.txt").await.is_err());
    assert_eq!(seen.load(Ordering::Relaxed), 0);
}

pub(crate) fn hook(event: HookEvent, hook: impl Hook) -> Registration {
    Registration {
        event,
        tool: "mcp__workspace__*".to_owned(),
        fail_open: false,
        hook: Arc::new(hook),
    }
}

const ALLOW: &str = "[[permissions.rules]]\ntool = '*'\naction = 'allow'\n";

#[tokio::test]
async fn hooks_change_arguments_and_what_they_change_is_decided_again() {
    let swap = |call: &HookInput<'_>| HookAnswer {
        arguments: call
            .arguments
            .map(|arguments| raw(&arguments.get().replace("a.txt", "b.txt"))),
        ..HookAnswer::default()
    };
    let hooks = || vec![hook(HookEvent::PreToolUse, swap)];
    let lab = Lab::new(ALLOW, hooks(), None).await;
    assert_eq!(lab.read("workspace", "a.txt").await, Ok("other".into()));
    let deny = format!(
        "{ALLOW}[[permissions.rules]]\ntool = 'mcp__*'\naction = 'deny'\narguments = {{ path = 'b.txt' }}\n"
    );
    let lab = Lab::new(&deny, hooks(), None).await;
    let reason = lab.read("workspace", "a.txt").await.expect_err("a refusal");
    assert!(reason.starts_with("the rule \"mcp__*\" at "), "{reason}");
    // Arguments that no longer match the schema are not sent.
    let spoil = |_: &HookInput<'_>| HookAnswer {
        arguments: Some(raw(r#"{"path": 5}"#)),
        ..HookAnswer::default()
    };
    let lab = Lab::new(ALLOW, vec![hook(HookEvent::PreToolUse, spoil)], None).await;
    let reason = lab.read("workspace", "a.txt").await.expect_err("a refusal");
    assert!(
        reason.starts_with("a hook changed the arguments, and they no longer fit"),
        "{reason}"
    );
    // A tool that the hook does not cover is not affected.
    assert_eq!(lab.read("trusted", "a.txt").await, Ok("hello".into()));
}

#[tokio::test]
async fn a_hooks_word_stands_between_rules_and_people() {
    use HookDecision::{Allow, Ask, Block};
    let say = |decision: HookDecision| {
        hook(HookEvent::PreToolUse, move |_: &HookInput<'_>| HookAnswer {
            decision: Some(decision),
            reason: Some("because".to_owned()),
            ..HookAnswer::default()
        })
    };
    let rule = |action: &str| format!("[[permissions.rules]]\ntool = '*'\naction = '{action}'\n");
    let check = async |action: &str, decisions: &[HookDecision], expected: &str| {
        let hooks = decisions.iter().copied().map(say).collect();
        let lab = Lab::new(&rule(action), hooks, None).await;
        let _ = lab.read("workspace", "a.txt").await;
        let written = lines(&lab.written().await);
        assert_eq!(written, [expected], "{action} {decisions:?}");
    };
    check("deny", &[Allow], "deny rule refused").await;
    check("ask", &[Allow], "allow hook done").await;
    check("allow", &[Allow], "allow rule done").await;
    check("allow", &[Ask], "deny unattended refused").await;
    check("allow", &[Block], "deny hook refused").await;
    check("ask", &[Allow, Ask], "deny unattended refused").await;
    check("ask", &[Ask, Allow], "deny unattended refused").await;
    check("allow", &[Allow, Block], "deny hook refused").await;
}

#[tokio::test]
async fn hooks_see_results_and_may_change_or_withhold_them() {
    let replace = |call: &HookInput<'_>| {
        assert!(
            call.result
                .is_some_and(|result| result.as_str().contains("hello"))
        );
        HookAnswer {
            result: Some((&json!({"content": [{"type": "text", "text": "hidden"}]})).into()),
            ..HookAnswer::default()
        }
    };
    let lab = Lab::new(ALLOW, vec![hook(HookEvent::PostToolUse, replace)], None).await;
    assert_eq!(lab.read("workspace", "a.txt").await, Ok("hidden".into()));
    let withhold = |_: &HookInput<'_>| HookAnswer::block("it has a key in it");
    let lab = Lab::new(ALLOW, vec![hook(HookEvent::PostToolUse, withhold)], None).await;
    assert_eq!(
        lab.read("workspace", "a.txt").await,
        Err("it has a key in it".into())
    );
    assert_eq!(lines(&lab.written().await), ["allow rule failed"]);
    assert!(lab.folder.path().exists());
}

#[tokio::test]
async fn an_agent_cannot_edit_our_own_files_whatever_is_allowed() {
    let lab = Lab::new(ALLOW, Vec::new(), None).await;
    // The server is not known to be read-only, so it is denied.
    let project = "/nowhere/project/.mcp.json";
    let reason = lab.read("workspace", project).await.expect_err("a refusal");
    let expected = "no tool may change Switchboard's own files";
    assert!(reason.starts_with(expected), "{reason}");
    // A tool trusted to be read-only may read; the workspace itself then rejects the path.
    assert!(lab.read("trusted", project).await.is_ok());
    // No tool may read the configuration, which may contain keys.
    let own = "/nowhere/home/.config/switchboard/mcp.toml";
    for server in ["workspace", "trusted"] {
        let reason = lab.read(server, own).await.expect_err("a refusal");
        let expected = "no tool may read Switchboard's configuration, state or keys";
        assert!(reason.starts_with(expected), "{server}: {reason}");
    }
}

#[tokio::test]
async fn no_secret_of_a_call_gets_into_events_audit_or_refusals() {
    const CANARY: &str = "CANARY-7f3a";
    let rules = format!(
        "{ALLOW}[[permissions.rules]]\ntool = 'mcp__workspace'\naction = 'deny'\narguments = {{ path = {{ matches = 'deny' }} }}\n"
    );
    let fail = Registration {
        tool: "mcp__trusted__*".to_owned(),
        ..hook(HookEvent::PostToolUse, |_: &HookInput<'_>| {
            HookAnswer::block("no")
        })
    };
    let lab = Lab::new(&rules, vec![fail], None).await;
    let mut events = lab.host.events();
    let denied = lab.read("workspace", &format!("deny-{CANARY}")).await;
    let missing = lab.read("workspace", &format!("missing-{CANARY}")).await;
    let withheld = lab.read("trusted", &format!("a-{CANARY}")).await;
    assert!(denied.is_err() && missing.is_ok() && withheld.is_err());
    let mut seen = format!("{denied:?} {withheld:?}");
    while let Ok(event) = events.try_recv() {
        let _ = write!(seen, "{event:?}");
    }
    lab.audit.flush().await;
    for entry in lab
        .store
        .read_log(LOG, LogQuery::default())
        .await
        .expect("a log")
    {
        seen += &String::from_utf8_lossy(&entry.value);
    }
    assert!(
        seen.contains("arguments_blake3") && seen.contains("CallEnd"),
        "{seen}"
    );
    assert!(!seen.contains(CANARY), "{seen}");
}

#[tokio::test]
async fn calls_that_fail_before_they_are_decided_about_are_written_down() {
    let lab = Lab::new("", Vec::new(), None).await;
    let check = async |tool: String, arguments: Value, expected: Value| {
        let request = CallRequest {
            tool,
            arguments: Some(raw(&arguments.to_string())),
            ..CallRequest::default()
        };
        let error = lab.host.request(request).await.expect_err("no such call");
        assert!(!matches!(error, CallError::Denied { .. }), "{error}");
        lab.audit.flush().await;
        let entries = lab.store.read_log(LOG, LogQuery::default()).await;
        let newest = entries
            .expect("a log")
            .into_iter()
            .next()
            .expect("an entry");
        let text = std::str::from_utf8(&newest.value).expect("text");
        // No part of the arguments is recorded.
        assert!(!text.contains("hunter2"), "{text}");
        let mut entry: Value = serde_json::from_str(text).expect("JSON");
        for (key, _) in expected.as_object().expect("an object") {
            assert_eq!(entry[key].take(), expected[key], "{key} of {text}");
        }
    };
    check(
        "trusted/read_file".to_owned(),
        json!({"path": 5, "secret": "hunter2"}),
        json!({
            "kind": "call", "server": "trusted", "tool": "read_file", "call": 1, "outcome": "failed", "error": "bad-arguments",
            "decision": null
        }),
    )
    .await;
    check(
        "trusted/raed_file".to_owned(),
        json!({"secret": "hunter2"}),
        json!({
            "kind": "call", "server": null, "tool": "trusted/raed_file", "call": 2, "outcome": "failed",
            "error": "unknown-tool", "arguments_bytes": 20
        }),
    )
    .await;
    // A name of any length and content is not stored.
    check(
        "x".repeat(1 << 20),
        json!({}),
        json!({"tool": "x".repeat(128), "error": "unknown-tool"}),
    )
    .await;
    assert_eq!(
        lab.store
            .read_log(LOG, LogQuery::default())
            .await
            .expect("a log")
            .len(),
        3
    );
}

/// A hook that always fails.
struct Broken;

impl Hook for Broken {
    fn run<'a>(&'a self, _: HookInput<'a>) -> BoxFuture<'a, Result<HookAnswer, HookError>> {
        let error = HookError {
            program: "check".to_owned(),
            reason: "failed".to_owned(),
        };
        ready(Err(error)).boxed()
    }
}

#[tokio::test]
async fn a_failed_hook_blocks_unless_it_may_fail() {
    for event in [HookEvent::PreToolUse, HookEvent::PostToolUse] {
        for (fail_open, expected) in [
            (true, Ok("hello".to_owned())),
            (false, Err("the hook `check` failed".to_owned())),
        ] {
            let registration = Registration {
                fail_open,
                ..hook(event, Broken)
            };
            let lab = Lab::new(ALLOW, vec![registration], None).await;
            let found = lab.read("workspace", "a.txt").await;
            assert_eq!(found, expected, "{event:?} {fail_open}");
        }
    }
}

#[tokio::test]
async fn a_gate_knows_the_secrets_of_its_folders() {
    let gate = PermissionGate::new(user_engine("", Policy::agent()));
    let folders = crate::machine::folders();
    for (path, expected) in [
        (folders.state.join("trust.json"), Some(Secrecy::Own)),
        (folders.home.join(".ssh/config"), Some(Secrecy::Denied)),
        (folders.project.join("a.txt"), None),
    ] {
        assert_eq!(gate.secrets().of(&path), expected, "{}", path.display());
        assert_eq!(gate.engine().secrets().of(&path), expected);
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_recorded_is_refused_if_the_log_is_required() {
    let error = StoreError::new(ErrorKind::Unavailable, "no disk");
    let store: Arc<dyn Store> = Arc::new(UnavailableStore::new(error));
    for (settings, is_refused) in [
        (AuditSettings::default().required(), true),
        (AuditSettings::default(), false),
    ] {
        let audit = Audit::start(Arc::clone(&store), settings, "test");
        let gate = PermissionGate::new(user_engine(ALLOW, Policy::agent())).recording(audit);
        let exposed = Subject::exposed_name("s", "t");
        let wanted = Wanted {
            id: CallId(1),
            subject: Subject::of_server("s", "t", &exposed),
            arguments: None,
            tool: None,
            previewer: None,
            session: None,
            profile: None,
            client: None,
        };
        let verdict = gate.permit(wanted).answer().await;
        match verdict {
            Verdict::Deny { reason } if is_refused => {
                assert!(reason.contains("no disk"), "{reason}");
            }
            Verdict::Pass(_) if !is_refused => {}
            other => panic!("{other:?}"),
        }
    }
}
