//! Tests of sub-agents, built-in tools and compaction.

use std::sync::Arc;
use std::sync::Mutex;

use futures_util::future::BoxFuture;
use serde_json::json;
use serde_json::value::RawValue;
use switchboard::internal::desired::Desired;
use switchboard::internal::hooks::{Hook, HookAnswer, HookDecision, HookInput, Registration};
use switchboard::permissions::{Engine, Policy};
use switchboard::{AllowAll, HostOptions, SharedJson};
use switchboard::{LocalContext, LocalOutput, LocalTool, ToolDefinition};
use switchboard_agent::message::{Message, Part, Role};
use switchboard_agent::provider::{ProviderErrorKind, Stop};
use switchboard_agent::{Agent, AgentOptions, EndReason, SessionError, SessionEvent};
use switchboard_config::entry::Permission;
use switchboard_config::policy::HookEvent;

use crate::support::*;

/// A built-in tool that records its arguments.
#[derive(Default)]
struct Note(Mutex<Vec<String>>);

impl LocalTool for Note {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        ToolDefinition {
            name: "Note".to_owned(),
            description: "Notes something".to_owned(),
            input_schema: serde_json::value::to_raw_value(&schema).expect("JSON"),
        }
    }

    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        Box::pin(async move {
            assert!(!arguments.get().contains("panic"), "as asked");
            (context.progress)("noting".to_owned());
            self.0
                .lock()
                .expect("notes")
                .push(arguments.get().to_owned());
            LocalOutput {
                display: Some("noted".to_owned()),
                ..LocalOutput::text("It is noted.")
            }
        })
    }
}

fn with_bench() -> Desired {
    vec![spec("bench", &Arc::new(Bench::new()))].into()
}

fn with_note(provider: &Arc<Scripted>) -> (AgentOptions, Arc<Note>) {
    let note = Arc::new(Note::default());
    let bench = Arc::new(Bench::new());
    let options = AgentOptions {
        tools: vec![Arc::clone(&note) as Arc<dyn LocalTool>],
        ..options(provider, vec![spec("bench", &bench)])
    };
    (options, note)
}

#[tokio::test]
async fn built_in_tools_run_and_a_panic_is_a_result() {
    let provider = Scripted::new([
        calls(vec![
            call("a", "Note", json!({"text": "milk"})),
            call("b", "Note", json!({"text": "panic"})),
            call("c", "Note", json!({"text": "bread"})),
        ]),
        says("done"),
    ]);
    let (options, note) = with_note(&provider);
    let session = Agent::new(options).session(workspace());
    let seen = events(&session, "note").await;
    let shown = seen.iter().filter_map(|event| match event {
        SessionEvent::CallEnds { id, display, .. } => Some((id.as_str(), display.as_deref())),
        _ => None,
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(
        shown,
        [("a", Some("noted")), ("b", None), ("c", Some("noted"))]
    );
    assert!(kinds(&seen).contains(&"call_progress".to_owned()));
    let noted = note.0.lock().expect("notes").clone();
    assert_eq!(noted, [r#"{"text":"milk"}"#, r#"{"text":"bread"}"#]);
    let results = provider.last().results();
    assert!(
        results[1].1 && results[1].0.contains("a bug in the tool"),
        "{results:?}"
    );
}

#[tokio::test]
async fn events_of_calls_name_the_server_the_tool_and_the_result() {
    let provider = Scripted::new([
        calls(vec![
            call("a", "mcp__bench__echo", json!({"text": "hi"})),
            call("b", "Note", json!({"text": "milk"})),
            call("c", "NoSuchTool", json!({})),
        ]),
        says("done"),
    ]);
    let (options, _) = with_note(&provider);
    let session = Agent::new(options).session(workspace());
    let seen = events(&session, "go").await;
    let started = seen.iter().filter_map(|event| match event {
        SessionEvent::CallBegins {
            id, server, tool, ..
        } => Some((id.as_str(), server.as_deref(), tool.as_str())),
        _ => None,
    });
    let started: Vec<_> = started.collect();
    assert_eq!(
        started,
        [
            ("a", Some("bench"), "echo"),
            ("b", None, "Note"),
            ("c", None, "NoSuchTool")
        ]
    );
    for event in &seen {
        let SessionEvent::CallEnds {
            id,
            name,
            server,
            tool,
            result,
            is_error,
            ..
        } = event
        else {
            continue;
        };
        match id.as_str() {
            "a" => {
                assert_eq!((name.as_str(), tool.as_str()), ("mcp__bench__echo", "echo"));
                assert_eq!((server.as_deref(), *is_error), (Some("bench"), false));
                let result = result.as_ref().expect("the server's own result");
                assert!(result.as_str().contains("content"), "{result:?}");
            }
            "b" => assert!(server.is_none() && result.is_none() && !is_error && tool == "Note"),
            _ => assert!(server.is_none() && result.is_none() && *is_error),
        }
        let json = serde_json::to_value(event).expect("JSON");
        assert_eq!(json["tool"], tool.as_str());
        assert_eq!(json["is_error"], *is_error);
        assert_eq!(json.get("server").is_some(), server.is_some());
        assert_eq!(json.get("result"), None, "{json}");
    }
}

#[tokio::test]
async fn what_is_not_permitted_is_not_run() {
    let provider = Scripted::new([
        calls(vec![
            call("a", "Note", json!({"text": "milk"})),
            call("b", "mcp__bench__echo", json!({})),
            call("c", "ListMcpResources", json!({})),
        ]),
        says("I see."),
    ]);
    let (mut options, note) = with_note(&provider);
    let policy = Policy {
        default: Permission::Ask,
        annotations: true,
        unattended: Permission::Deny,
        typed: false,
    };
    options.host = host_with(Engine::without_rules(policy), with_bench());
    let session = Agent::new(options).session(workspace());
    session.send("note").await.expect("a reply");
    let results = provider.last().results();
    assert!(
        results[0].0.contains("permission denied for tool"),
        "{results:?}"
    );
    assert!(
        results[1].0.contains("permission denied for tool"),
        "{results:?}"
    );
    assert_eq!(
        results[2],
        ("No server offers resources.".to_owned(), false)
    );
    assert!(note.0.lock().expect("notes").is_empty());
}

#[tokio::test]
async fn a_sub_agent_works_with_fewer_tools_and_answers_with_its_last_word() {
    let provider = Scripted::new([
        calls(vec![call(
            "task",
            "Agent",
            json!({"prompt": "Find out.", "tools": ["mcp__bench__e*", "Note"]}),
        )]),
        calls(vec![
            call("x", "mcp__bench__echo", json!({"text": "hi"})),
            call("y", "mcp__bench__fail", json!({})),
        ]),
        says("It is hi."),
        says("They say it is hi."),
    ]);
    let (options, _) = with_note(&provider);
    let session = Agent::new(options).session(workspace());
    let seen = events(&session, "find out").await;
    let asked = provider.asked();
    assert_eq!(asked[1].messages, [Message::text(Role::User, "Find out.")]);
    assert_eq!(asked[1].tool_names(), ["Note", "mcp__bench__echo"]);
    assert_ne!(asked[1].system, asked[0].system);
    let results = asked[2].results();
    assert_eq!(results[0], (r#"echo {"text":"hi"}"#.to_owned(), false));
    assert!(results[1].0.contains("no tool named"), "{results:?}");
    assert_eq!(asked[3].results(), [("It is hi.".to_owned(), false)]);
    // Four answers of eleven tokens each.
    assert_eq!(session.usage().await.total(), 44);
    let parents: Vec<_> = seen
        .iter()
        .filter_map(|event| match event {
            SessionEvent::CallBegins { id, parent, .. } => Some((id.as_str(), parent.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(
        parents,
        [
            ("task", None),
            ("task/x", Some("task")),
            ("task/y", Some("task"))
        ]
    );
    let texts: Vec<_> = seen
        .iter()
        .filter_map(|event| match event {
            SessionEvent::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["They say it is hi."]);
}

#[tokio::test]
async fn sub_agents_share_the_budget_and_end_at_a_depth() {
    let provider = Scripted::thinking(model(), |asked, _| {
        if asked.tool_names().contains(&"Agent") {
            calls(vec![call("", "Agent", json!({"prompt": "deeper"}))])
        } else {
            says("at the bottom")
        }
    });
    let bench = Arc::new(Bench::new());
    let options = AgentOptions {
        max_requests: 10,
        ..options(&provider, vec![spec("bench", &bench)])
    };
    let session = Agent::new(options).session(workspace());
    let reply = session.send("go").await.expect("a reply");
    assert_eq!(reply.reason, EndReason::TurnBudget);
    assert_eq!(provider.asked().len(), 10);
    let deepest = provider
        .asked()
        .iter()
        .filter(|asked| !asked.tool_names().contains(&"Agent"))
        .count();
    assert!(deepest > 0);
}

#[tokio::test]
async fn a_window_that_fills_is_emptied_by_a_summary() {
    let check = async |summary: Step, expected: &str| {
        let mut model = model();
        model.window = 8_000;
        model.max_output = 1_000;
        let steps = Mutex::new(Some(summary));
        let provider = Scripted::thinking(model, move |asked, _| {
            if asked.tools.is_empty() {
                return steps
                    .lock()
                    .expect("steps")
                    .take()
                    .unwrap_or_else(|| says("S2"));
            }
            let said = asked.messages.last().expect("a message").all_text();
            if asked.messages.len() % 4 == 1 && !said.contains("short") {
                let long = "y".repeat(500);
                let part = call("", "mcp__bench__echo", json!({"text": long}));
                return uncounted(vec![part]);
            }
            uncounted(vec![text(&"z".repeat(300))])
        });
        let session = session(&provider);
        let mut compacted = 0;
        for turn in 0..12 {
            let prompt = format!("{turn} {}", "x".repeat(2_000));
            for event in events(&session, &prompt).await {
                if let SessionEvent::Compacted { before, after } = event {
                    assert!(after < before, "{before} to {after}");
                    compacted += 1;
                    break;
                }
            }
            if compacted > 0 {
                break;
            }
        }
        assert_eq!(compacted, 1);
        let asked = provider.last();
        let first = asked.messages[0].all_text();
        assert!(first.contains(expected), "{first}");
        // No result without its call, no call without its result.
        let mut open: Vec<String> = Vec::new();
        for part in asked.messages.iter().flat_map(|message| &message.parts) {
            match part {
                Part::ToolCall(call) => open.push(call.id.clone()),
                Part::ToolResult(result) => {
                    let at = open.iter().position(|id| *id == result.call);
                    open.remove(at.expect("a call for every result"));
                }
                _ => {}
            }
        }
        assert_eq!(open, [""; 0]);
    };
    check(says("S1"), "S1").await;
    check(
        Step::Fail(ProviderErrorKind::Unavailable),
        "there is no summary",
    )
    .await;
    check(says(" "), "there is no summary").await;
}

#[tokio::test]
async fn a_conversation_that_the_model_finds_too_long_is_made_shorter() {
    for too_long in [
        Step::Fail(ProviderErrorKind::TooLong),
        answer(vec![text("cut")], Stop::Window),
    ] {
        let provider = Scripted::new([
            says("one"),
            says("two"),
            too_long,
            says("what was said"),
            says("three"),
        ]);
        let bench = Arc::new(Bench::new());
        let options = options(&provider, vec![spec("bench", &bench)]);
        let agent = Agent::new(options);
        let session = agent.session(workspace());
        for word in ["1", "2"] {
            session.send(word).await.expect("a reply");
        }
        let reply = session.send("3").await.expect("a reply");
        assert_eq!(reply.response, "three");
        let asked = provider.asked();
        assert!(asked[3].tools.is_empty());
        assert!(asked[3].messages[0].all_text().contains("Agent: one"));
        assert!(asked[4].messages[0].all_text().contains("what was said"));
        let resumed = agent.resume(session.id()).await.expect("a session");
        assert_eq!(resumed.messages().await, session.messages().await);
    }
    // A single message cannot be compacted.
    let provider = Scripted::new([Step::Fail(ProviderErrorKind::TooLong)]);
    let error = session(&provider)
        .send("long")
        .await
        .expect_err("it stays too long");
    assert!(error.to_string().contains("as scripted"), "{error}");
}

#[tokio::test]
async fn a_session_is_made_shorter_when_asked_to() {
    let provider = Scripted::new([says("one"), says("two"), says("in short"), says("three")]);
    let session = session(&provider);
    session.send("1").await.expect("a reply");
    session.send("2").await.expect("a reply");
    session.compact().await.expect("it is made shorter");
    session.send("3").await.expect("a reply");
    assert!(provider.last().messages[0].all_text().contains("in short"));
    assert!(provider.last().messages.len() < 5);
}

#[tokio::test]
async fn hooks_are_told_which_session_calls() {
    let provider = Scripted::new([
        calls(vec![
            call("a", "Note", json!({"text": "milk"})),
            call("b", "mcp__bench__echo", json!({})),
        ]),
        says("done"),
    ]);
    let (mut options, _) = with_note(&provider);
    let calls_seen = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let calls_seen = Arc::clone(&calls_seen);
        move |call: &HookInput<'_>| {
            let mut calls_seen = calls_seen.lock().expect("sessions");
            calls_seen.push((call.subject.tool.to_owned(), call.session.to_owned()));
            HookAnswer::default()
        }
    };
    let policy = Policy {
        default: Permission::Allow,
        annotations: true,
        unattended: Permission::Deny,
        typed: false,
    };
    let engine = Engine::without_rules(policy).with_hooks([Registration {
        event: HookEvent::PreToolUse,
        tool: "*".to_owned(),
        fail_open: false,
        hook: Arc::new(hook),
    }]);
    options.host = host_with(engine, with_bench());
    let session = Agent::new(options).session(workspace());
    session.send("note").await.expect("a reply");
    let id = session.id().to_string();
    let calls_seen = calls_seen.lock().expect("sessions").clone();
    assert_eq!(
        calls_seen,
        [("Note".to_owned(), id.clone()), ("echo".to_owned(), id)]
    );
}

#[tokio::test]
async fn no_turn_begins_on_a_host_without_a_permission_gate() {
    let provider = Scripted::new([
        calls(vec![call("a", "Note", json!({"text": "milk"}))]),
        says("done"),
    ]);
    let (mut options, note) = with_note(&provider);
    options.host = switchboard::Host::with_options(HostOptions {
        gate: Arc::new(AllowAll),
        ..HostOptions::default()
    });
    let session = Agent::new(options).session(workspace());
    let error = session.send("note").await.expect_err("no gate");
    assert!(matches!(error, SessionError::NoGate), "{error}");
    assert!(note.0.lock().expect("notes").is_empty());
}

#[tokio::test]
async fn what_a_program_may_call_unasked_its_model_may_not() {
    let provider = Scripted::new([
        calls(vec![call("a", "Note", json!({"text": "milk"}))]),
        says("done"),
    ]);
    let (mut options, note) = with_note(&provider);
    // A host with the defaults for embedders: its own calls need no consent.
    options.host = switchboard::Host::new();
    let session = Agent::new(options).session(workspace());
    session.send("note").await.expect("a reply");
    let results = provider.last().results();
    assert!(
        results[0].0.contains("permission denied for tool"),
        "{results:?}"
    );
    assert!(note.0.lock().expect("notes").is_empty());
}

#[tokio::test]
async fn hooks_change_and_block_what_built_in_tools_do() {
    let provider = Scripted::new([
        calls(vec![
            call("a", "Note", json!({"text": "milk"})),
            call("b", "Note", json!({"text": "poison"})),
        ]),
        says("done"),
    ]);
    let (mut options, note) = with_note(&provider);
    let before = |call: &HookInput<'_>| {
        let text = call.arguments.map_or("", RawValue::get);
        if text.contains("poison") {
            return HookAnswer {
                decision: Some(HookDecision::Block),
                reason: Some("no poison here".to_owned()),
                ..HookAnswer::default()
            };
        }
        let changed = RawValue::from_string(text.replace("milk", "oat milk"));
        HookAnswer {
            arguments: changed.ok(),
            ..HookAnswer::default()
        }
    };
    let after = |call: &HookInput<'_>| {
        let seen = call.result.map_or("", SharedJson::as_str);
        let changed = RawValue::from_string(seen.replace("noted", "noted twice"));
        HookAnswer {
            result: changed.ok().map(SharedJson::from),
            ..HookAnswer::default()
        }
    };
    let registered = |event, hook: Arc<dyn Hook>| Registration {
        event,
        tool: "Note".to_owned(),
        fail_open: false,
        hook,
    };
    let policy = Policy {
        default: Permission::Allow,
        annotations: true,
        unattended: Permission::Deny,
        typed: false,
    };
    let engine = Engine::without_rules(policy).with_hooks([
        registered(HookEvent::PreToolUse, Arc::new(before)),
        registered(HookEvent::PostToolUse, Arc::new(after)),
    ]);
    options.host = host_with(engine, with_bench());
    let session = Agent::new(options).session(workspace());
    session.send("note").await.expect("a reply");
    let noted = note.0.lock().expect("notes").clone();
    assert_eq!(noted, [r#"{"text":"oat milk"}"#]);
    let results = provider.last().results();
    assert_eq!(results[0], ("It is noted twice.".to_owned(), false));
    assert!(
        results[1].1 && results[1].0.contains("no poison here"),
        "{results:?}"
    );
}

#[tokio::test]
async fn output_that_is_too_long_is_cut_whoever_made_it() {
    struct Long;
    impl LocalTool for Long {
        fn definition(&self) -> ToolDefinition {
            ToolDefinition {
                name: "Long".to_owned(),
                ..Note::default().definition()
            }
        }

        fn run<'a>(
            &'a self,
            _arguments: &'a RawValue,
            _context: &'a LocalContext,
        ) -> BoxFuture<'a, LocalOutput> {
            Box::pin(async { LocalOutput::text("x".repeat(10_000)) })
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let provider = Scripted::new([calls(vec![call("a", "Long", json!({}))]), says("done")]);
    let bench = Arc::new(Bench::new());
    let options = AgentOptions {
        tools: vec![Arc::new(Long)],
        max_output_tokens: 1_000,
        spill_folder: Some(folder.path().join("spill")),
        ..options(&provider, vec![spec("bench", &bench)])
    };
    Agent::new(options)
        .session(workspace())
        .send("go")
        .await
        .expect("a reply");
    let results = provider.last().results();
    let [(text, false)] = results.as_slice() else {
        panic!("one result, not {results:?}");
    };
    assert_eq!(text.chars().count(), 2_500);
    assert!(text.contains("the full output is in"), "{text}");
}
