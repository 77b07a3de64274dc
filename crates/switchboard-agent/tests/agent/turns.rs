//! Tests of turns: requests to the model, tool calls and their results.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use switchboard::internal::audit::{Audit, AuditSettings, LOG};
use switchboard::internal::desired::Desired;
use switchboard::permissions::{Engine, PermissionGate, Policy};
use switchboard::{Host, HostOptions};
use switchboard_agent::message::{Message, Part, Role};
use switchboard_agent::provider::{Provider, ProviderErrorKind, Stop};
use switchboard_agent::{Agent, AgentOptions, EndReason, SessionError};
use switchboard_store::{LogQuery, MemoryStore, Store as _};

use crate::support::*;

#[tokio::test]
async fn a_call_is_made_and_its_result_used() {
    let provider = Scripted::new([
        answer(
            vec![
                text("I will ask."),
                call("a", "mcp__bench__echo", json!({"text": "hi"})),
            ],
            Stop::Calls,
        ),
        says("It said hi."),
    ]);
    let bench = Arc::new(Bench::new());
    let session = session_with(&provider, &bench);
    let seen = events(&session, "Say hi").await;
    assert_eq!(
        kinds(&seen),
        [
            "startup_update",
            "startup_complete",
            "started",
            "text",
            "usage",
            "call_begins",
            "call_ends",
            "text",
            "usage",
            "ended"
        ]
    );
    assert_eq!(bench.called(), [r#"echo {"text":"hi"}"#]);
    let asked = provider.asked();
    assert_eq!(asked[0].messages, [Message::text(Role::User, "Say hi")]);
    assert_eq!(asked[0].tool_names()[..9], BUILT_INS);
    assert_eq!(
        asked[0].tool_names()[9..],
        [
            "mcp__bench__echo",
            "mcp__bench__fail",
            "mcp__bench__look",
            "mcp__bench__picture",
            "mcp__bench__wait",
        ]
    );
    assert_eq!(asked[1].messages.len(), 3);
    assert_eq!(
        asked[1].results(),
        [(r#"echo {"text":"hi"}"#.to_owned(), false)]
    );
    let messages = session.messages().await;
    assert_eq!(messages[..3], asked[1].messages);
    assert_eq!(messages[3], Message::text(Role::Assistant, "It said hi."));
    assert_eq!(session.usage().await.total(), 22);
}

#[tokio::test]
async fn a_call_that_cannot_be_made_is_written_down() {
    let store = Arc::new(MemoryStore::new());
    let audit = Audit::start(store.clone(), AuditSettings::default(), "test");
    let gate = PermissionGate::new(Engine::without_rules(Policy::agent())).recording(audit.clone());
    let host = Host::with_options(HostOptions {
        gate: Arc::new(gate),
        ..HostOptions::default()
    });
    let provider = Scripted::new([
        calls(vec![
            call("a", "Teleport", json!({"password": "hunter2"})),
            call("b", "Agent", json!({"promt": "hunter2"})),
        ]),
        says("I see."),
    ]);
    let options = AgentOptions::new(host, provider);
    let session = Agent::new(options).session(workspace());
    session.send("go").await.expect("a reply");
    audit.flush().await;
    let log = store.read_log(LOG, LogQuery::default()).await;
    let mut found: Vec<(Value, Value, Value)> = Vec::new();
    for entry in log.expect("a log") {
        let text = std::str::from_utf8(&entry.value).expect("text");
        assert!(!text.contains("hunter2"), "{text}");
        let mut entry: Value = serde_json::from_str(text).expect("JSON");
        let mut take = |key: &str| entry[key].take();
        found.push((take("tool"), take("error"), take("arguments_bytes")));
    }
    found.sort_by_key(|(tool, ..)| tool.to_string());
    let expected = [
        ("Agent", "bad-arguments", 19),
        ("Teleport", "unknown-tool", 22),
    ];
    let expected = expected.map(|(tool, error, bytes)| (json!(tool), json!(error), json!(bytes)));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn whatever_is_wrong_with_a_call_is_answered() {
    let check = async |part: Part, expected: &str| {
        let provider = Scripted::new([calls(vec![part]), says("I see.")]);
        let session = session(&provider);
        let reply = session.send("go").await.expect("a reply");
        let results = provider.last().results();
        let [(text, true)] = results.as_slice() else {
            panic!("one error, not {results:?}");
        };
        assert!(text.contains(expected), "{text}");
        assert_eq!(reply.response, "I see.");
        assert!(reply.tool_calls[0].is_error);
    };
    check(
        call("a", "mcp__bench__ehco", json!({})),
        "Did you mean mcp__bench__echo",
    )
    .await;
    check(call("a", "agent", json!({})), "Did you mean Agent?").await;
    check(call("a", "Teleport", json!({})), "no tool named").await;
    check(
        raw_call("a", "mcp__bench__echo", r#"{"text": "hi", }"#),
        r#"column 16, near `{"text": "hi", }`"#,
    )
    .await;
    check(raw_call("a", "Agent", r#"{"prompt": "x"#), "are not JSON").await;
    check(
        raw_call("a", "mcp__bench__echo", "[1]"),
        "expected an object",
    )
    .await;
    check(
        call("a", "mcp__bench__echo", json!({"number": "one"})),
        "arguments.number",
    )
    .await;
    check(call("a", "Agent", json!({"promt": "x"})), "prompt").await;
    check(
        call("a", "mcp__bench__fail", json!({})),
        "it failed, as asked",
    )
    .await;
    check(
        call(
            "a",
            "ReadMcpResource",
            json!({"server": "nobody", "uri": "x"}),
        ),
        "no server named \"nobody\"",
    )
    .await;
}

#[tokio::test]
async fn arguments_that_are_nearly_right_are_taken() {
    let check = async |arguments: &str, expected: &str| {
        let part = raw_call("a", "mcp__bench__echo", arguments);
        let provider = Scripted::new([calls(vec![part]), says("done")]);
        session(&provider).send("go").await.expect("a reply");
        let expected = (format!("echo {expected}"), false);
        assert_eq!(provider.last().results(), [expected], "{arguments}");
    };
    check("", "{}").await;
    check(" {} ", "{}").await;
    check(r#""{\"text\":\"hi\"}""#, r#"{"text":"hi"}"#).await;
    check(r#"{"text":"hi","number":null}"#, r#"{"text":"hi"}"#).await;
}

#[tokio::test]
async fn calls_that_change_nothing_run_side_by_side_and_the_others_in_order() {
    let provider = Scripted::new([
        calls(vec![
            call("1", "mcp__bench__look", json!({"number": 1})),
            call("2", "mcp__bench__look", json!({"number": 2})),
            call("3", "mcp__bench__look", json!({"number": 3})),
            call("4", "mcp__bench__echo", json!({"number": 4})),
            call("5", "mcp__bench__echo", json!({"number": 5})),
        ]),
        says("done"),
    ]);
    let bench = Arc::new(Bench {
        // They would wait forever if they did not run in parallel.
        together: Some(Arc::new(tokio::sync::Barrier::new(3))),
        ..Bench::new()
    });
    let session = session_with(&provider, &bench);
    session.send("go").await.expect("a reply");
    let texts: Vec<String> = provider
        .last()
        .results()
        .into_iter()
        .map(|(text, _)| text)
        .collect();
    assert_eq!(
        texts,
        [
            r#"looked {"number":1}"#,
            r#"looked {"number":2}"#,
            r#"looked {"number":3}"#,
            r#"echo {"number":4}"#,
            r#"echo {"number":5}"#,
        ]
    );
    assert_eq!(bench.most_running.load(Ordering::SeqCst), 3);
    assert_eq!(
        bench.called()[3..],
        [r#"echo {"number":4}"#, r#"echo {"number":5}"#]
    );
}

#[tokio::test]
async fn answers_of_every_kind_come_to_an_end() {
    let check = async |steps: Vec<Step>, response: &str, reason: EndReason, requests: usize| {
        let provider = Scripted::new(steps);
        let reply = session(&provider).send("go").await.expect("a reply");
        assert_eq!((reply.response.as_str(), reply.reason), (response, reason));
        assert_eq!(provider.asked().len(), requests);
    };
    let empty = || answer(Vec::new(), Stop::Done);
    check(vec![says("hi")], "hi", EndReason::Done, 1).await;
    check(vec![empty(), says("hi")], "hi", EndReason::Done, 2).await;
    check(vec![empty(), empty()], "", EndReason::Done, 2).await;
    check(
        vec![answer(vec![text("hi")], Stop::Calls)],
        "hi",
        EndReason::Done,
        1,
    )
    .await;
    check(
        vec![answer(vec![text("no")], Stop::Refused)],
        "no",
        EndReason::Refused,
        1,
    )
    .await;
    check(
        vec![answer(vec![text("half")], Stop::Length)],
        "half",
        EndReason::Length,
        1,
    )
    .await;
    let paused = answer(vec![text("wait")], Stop::Paused);
    check(vec![paused, says("on")], "on", EndReason::Done, 2).await;
    let called = answer(vec![call("a", "mcp__bench__echo", json!({}))], Stop::Done);
    check(vec![called, says("hi")], "hi", EndReason::Done, 2).await;
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_made() {
    let provider = Scripted::new([
        answer(
            vec![
                call("a", "mcp__bench__echo", json!({"text": "whole"})),
                raw_call("b", "mcp__bench__echo", r#"{"text": "ha"#),
            ],
            Stop::Length,
        ),
        says("done"),
    ]);
    let bench = Arc::new(Bench::new());
    let session = session_with(&provider, &bench);
    session.send("go").await.expect("a reply");
    assert_eq!(bench.called(), [r#"echo {"text":"whole"}"#]);
    let results = provider.last().results();
    assert!(results[1].0.contains("cut off"), "{results:?}");
}

#[tokio::test]
async fn calls_have_ids_of_their_own_whatever_the_model_calls_them() {
    let provider = Scripted::new([
        calls(vec![
            call("", "mcp__bench__echo", json!({"number": 1})),
            call("x", "mcp__bench__echo", json!({"number": 2})),
            call("x", "mcp__bench__echo", json!({"number": 3})),
        ]),
        calls(vec![call("x", "mcp__bench__echo", json!({"number": 4}))]),
        says("done"),
    ]);
    let session = session(&provider);
    let reply = session.send("go").await.expect("a reply");
    let ids: Vec<&str> = reply
        .tool_calls
        .iter()
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!(ids, ["call_1", "x", "call_2", "call_3"]);
    let texts = provider.last().messages;
    let results: Vec<_> = texts
        .iter()
        .flat_map(|message| results_of(&message.parts))
        .collect();
    let numbers = (1..=4).map(|number| (format!("echo {{\"number\":{number}}}"), false));
    assert_eq!(results, numbers.collect::<Vec<_>>());
}

#[tokio::test]
async fn budgets_end_a_turn_and_the_next_goes_on() {
    let wants = || calls(vec![call("", "mcp__bench__echo", json!({}))]);
    let check = async |limit: fn(&mut AgentOptions), reason: EndReason, made: usize| {
        let provider = Scripted::new([wants(), wants(), says("done"), says("done")]);
        let bench = Arc::new(Bench::new());
        let mut options = options(&provider, vec![spec("bench", &bench)]);
        limit(&mut options);
        let session = Agent::new(options).session(workspace());
        let reply = session.send("go").await.expect("a reply");
        assert_eq!(reply.reason, reason);
        assert_eq!(bench.called().len(), made);
        let reply = session.send("go on").await.expect("a reply");
        assert_eq!(
            (reply.response.as_str(), reply.reason),
            ("done", EndReason::Done)
        );
        let all = provider.last().messages;
        let results: Vec<_> = all
            .iter()
            .flat_map(|message| results_of(&message.parts))
            .collect();
        let not_run = results
            .iter()
            .filter(|(text, _)| text.contains("is used up"));
        assert_eq!((results.len(), not_run.count()), (2, 2 - made));
    };
    check(|options| options.max_requests = 2, EndReason::TurnBudget, 1).await;
    check(
        |options| options.max_tokens = Some(12),
        EndReason::TokenBudget,
        1,
    )
    .await;
}

#[tokio::test]
async fn a_model_that_fails_ends_the_turn_and_the_next_goes_on() {
    let provider = Scripted::new([
        Step::Fail(ProviderErrorKind::Unauthorized),
        Step::Cut,
        says("back"),
    ]);
    let session = session(&provider);
    let mut kinds = Vec::new();
    for _ in 0..2 {
        match session.send("hello").await {
            Err(SessionError::Provider(error)) => kinds.push(error.kind),
            other => panic!("an error of the model, not {other:?}"),
        }
    }
    assert_eq!(
        kinds,
        [ProviderErrorKind::Unauthorized, ProviderErrorKind::Broken]
    );
    assert_eq!(
        session.send("hello?").await.expect("a reply").response,
        "back"
    );
    assert_eq!(provider.last().messages.len(), 1);
}

#[tokio::test]
async fn pictures_reach_models_that_see_and_are_told_to_those_that_do_not() {
    let check = async |vision: bool, expected: &str| {
        let mut model = model();
        model.vision = vision;
        let steps = [
            calls(vec![call("a", "mcp__bench__picture", json!({}))]),
            says("ok"),
        ];
        let provider = Scripted::of(model, steps);
        session(&provider).send("look").await.expect("a reply");
        assert_eq!(provider.last().results(), [(expected.to_owned(), false)]);
    };
    check(true, "a dot\n<image/png>").await;
    let note = "a dot\n[a picture (image/png) is left out: this model cannot see pictures]";
    check(false, note).await;
}

#[tokio::test]
async fn a_server_that_the_program_adds_is_trusted_in_what_it_declares() {
    // (the tool, whether the program trusts the server's annotations, whether the call is made)
    let cases = [
        ("look", None, true),
        ("look", Some(true), true),
        ("look", Some(false), false),
        ("echo", None, false),
    ];
    for (tool, trusted, is_made) in cases {
        let part = call("a", &format!("mcp__bench__{tool}"), json!({}));
        let provider = Scripted::new([calls(vec![part]), says("I see.")]);
        // Without an approver, a call that would prompt is denied.
        let host = host_with(Engine::without_rules(Policy::agent()), Desired::default());
        let options = AgentOptions::new(host, Arc::clone(&provider) as Arc<dyn Provider>);
        let session = Agent::new(options).session(workspace());
        let bench = Arc::new(Bench::new());
        let mut added = server("bench", &bench);
        if let Some(trusted) = trusted {
            added = added.trust_annotations(trusted);
        }
        assert_eq!(session.add_mcp_server(added).await.expect("it connects"), 5);
        let reply = session.send("go").await.expect("a reply");
        assert_eq!(reply.tool_calls[0].is_error, !is_made, "{tool} {trusted:?}");
        assert_eq!(
            bench.called().len(),
            usize::from(is_made),
            "{tool} {trusted:?}"
        );
    }
}
