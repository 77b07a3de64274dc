//! Tests of stored sessions: resumed, listed, deleted, interrupted, used by two processes.

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::json;
use switchboard_agent::message::{Image, Message, Part, Role};
use switchboard_agent::{
    Agent, AgentOptions, Prompt, Session, SessionError, SessionEvent, SessionId,
};
use switchboard_store::{Key, MemoryStore, Record, Space, SqliteStore, Store, Write};
use tokio::sync::Semaphore;

use crate::support::*;

const ENTRIES: Space = Space::new("session-entries");

pub(crate) fn agent_with(
    provider: &Arc<Scripted>,
    bench: &Arc<Bench>,
    store: &Arc<dyn Store>,
) -> Agent {
    Agent::new(AgentOptions {
        store: Arc::clone(store),
        ..options(provider, vec![spec("bench", bench)])
    })
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

/// Runs a turn until a matching event, then drops it.
pub(crate) async fn until(session: &Session, prompt: &str, wanted: impl Fn(&SessionEvent) -> bool) {
    let mut events = session.stream(prompt);
    while let Some(event) = events.next().await {
        if wanted(&event.expect("no error")) {
            return;
        }
    }
    panic!("it did not happen");
}

#[tokio::test]
async fn a_session_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let stores: [Arc<dyn Store>; 2] = [
        memory(),
        Arc::new(SqliteStore::new(folder.path().join("store.db"))),
    ];
    for store in stores {
        let provider = Scripted::new([
            calls(vec![call("a", "mcp__bench__echo", json!({"text": "hi"}))]),
            says("It said hi."),
            says("As I said."),
        ]);
        let bench = Arc::new(Bench::new());
        let session = agent_with(&provider, &bench, &store).session(workspace());
        session.send("Say  hi\nto them").await.expect("a reply");
        let agent = agent_with(&provider, &bench, &store);
        let resumed = agent.resume(session.id()).await.expect("a session");
        assert_eq!(resumed.messages().await, session.messages().await);
        assert_eq!(resumed.usage().await, session.usage().await);
        assert_eq!(resumed.workspace(), workspace());
        resumed.send("What?").await.expect("a reply");
        let asked = provider.asked();
        let before = asked[1].flattened();
        assert_eq!(asked[2].flattened()[..before.len()], before);

        let listed = agent.sessions().await.expect("a list");
        let listed: Vec<_> = listed
            .iter()
            .map(|summary| (&summary.id, summary.title.as_str(), summary.messages))
            .collect();
        assert_eq!(listed, [(session.id(), "Say hi to them", 2)]);
        assert!(agent.delete(session.id()).await.expect("it is deleted"));
        assert!(!agent.delete(session.id()).await.expect("it is not there"));
        assert!(agent.sessions().await.expect("a list").is_empty());
        let error = agent.resume(session.id()).await.expect_err("it is gone");
        assert!(matches!(error, SessionError::Unknown(_)), "{error}");
    }
}

#[tokio::test]
async fn sessions_whose_ids_begin_alike_are_kept_apart() {
    let store = memory();
    let provider = Scripted::thinking(model(), |_, _| says("ok"));
    let agent = agent_with(&provider, &Arc::new(Bench::new()), &store);
    let mut ids = Vec::new();
    for number in 0..3 {
        let session = agent.session(workspace());
        session
            .send(format!("I am {number}"))
            .await
            .expect("a reply");
        ids.push(session.id().clone());
    }
    assert!(agent.delete(&ids[1]).await.expect("it is deleted"));
    for (number, id) in ids.iter().enumerate() {
        let found = agent.resume(id).await.ok();
        assert_eq!(found.is_some(), number != 1);
        if let Some(session) = found {
            let first = Message::text(Role::User, format!("I am {number}"));
            assert_eq!(session.messages().await.first(), Some(&first));
        }
    }
    let nobody = SessionId::parse("nobody").expect("an id");
    assert!(agent.resume(&nobody).await.is_err());
}

#[tokio::test]
async fn two_who_go_on_with_one_session_do_not_mix() {
    let store = memory();
    let provider = Scripted::thinking(model(), |_, _| says("ok"));
    let bench = Arc::new(Bench::new());
    let first = agent_with(&provider, &bench, &store).session(workspace());
    first.send("one").await.expect("a reply");
    let second = agent_with(&provider, &bench, &store)
        .resume(first.id())
        .await;
    let second = second.expect("a session");
    first.send("two").await.expect("a reply");
    let asked = provider.asked().len();
    let error = second.send("three").await.expect_err("it is in use");
    assert!(matches!(error, SessionError::InUse { .. }), "{error}");
    assert_eq!(provider.asked().len(), asked);
    first.send("four").await.expect("a reply");
}

#[tokio::test]
async fn an_interrupted_turn_leaves_a_session_that_goes_on() {
    let store = memory();
    let provider = Scripted::new([
        calls(vec![
            call("a", "mcp__bench__wait", json!({})),
            call("b", "mcp__bench__echo", json!({})),
        ]),
        Step::Hang("I was about to".to_owned()),
        says("Where was I?"),
    ]);
    let bench = Arc::new(Bench {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..Bench::new()
    });
    let agent = agent_with(&provider, &bench, &store);
    let session = agent.session(workspace());
    let is_half = |event: &SessionEvent| matches!(event, SessionEvent::CallProgress { .. });
    until(&session, "wait", is_half).await;
    // Another process that resumes the session sees the same state.
    let elsewhere = agent.resume(session.id()).await.expect("a session");
    assert_eq!(elsewhere.messages().await, session.messages().await);

    let is_text = |event: &SessionEvent| matches!(event, SessionEvent::Text { .. });
    until(&session, "go on", is_text).await;
    let results = provider.last().results();
    assert!(
        results[0].0.contains("It may or may not have taken effect"),
        "{results:?}"
    );
    assert!(results[1].0.contains("was not run"), "{results:?}");
    assert_eq!(bench.called(), ["wait {}"]);

    session.send("and now?").await.expect("a reply");
    let messages = provider.last().messages;
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    let (user, assistant) = (Role::User, Role::Assistant);
    assert_eq!(roles, [user, assistant, user, assistant, user]);
    assert_eq!(messages[3].all_text(), "I was about to\n[interrupted]");
    assert_eq!(messages[4].all_text(), "and now?");
}

#[tokio::test]
async fn an_interruption_reaches_sub_agents() {
    let provider = Scripted::new([
        calls(vec![call("task", "Agent", json!({"prompt": "wait"}))]),
        calls(vec![call("a", "mcp__bench__wait", json!({}))]),
        says("fine"),
    ]);
    let bench = Arc::new(Bench {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..Bench::new()
    });
    let session = session_with(&provider, &bench);
    let is_half = |event: &SessionEvent| matches!(event, SessionEvent::CallProgress { .. });
    until(&session, "wait", is_half).await;
    while bench.running.load(std::sync::atomic::Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
    session.send("what came of it?").await.expect("a reply");
    let results = provider.last().results();
    assert!(results[0].0.contains("was interrupted"), "{results:?}");
}

#[tokio::test]
async fn an_interrupted_call_is_called_off_and_leaves_nothing_behind() {
    let provider = Scripted::new([
        says("hello"),
        calls(vec![call("a", "mcp__bench__wait", json!({}))]),
        says("fine"),
    ]);
    let bench = Arc::new(Bench {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..Bench::new()
    });
    let options = options(&provider, vec![spec("bench", &bench)]);
    let session = Agent::new(options.clone()).session(workspace());
    session.send("hi").await.expect("a reply");
    let metrics = tokio::runtime::Handle::current().metrics();
    let tasks = metrics.num_alive_tasks();
    // The server may have its own open request, for change notifications.
    let in_flight = options.host.in_flight(&"bench".into());
    let is_half = |event: &SessionEvent| matches!(event, SessionEvent::CallProgress { .. });
    until(&session, "wait", is_half).await;
    assert_eq!(options.host.in_flight(&"bench".into()), in_flight);
    // Cancellation is a message to the server, so it takes a moment.
    while bench.running.load(std::sync::atomic::Ordering::SeqCst) > 0
        || metrics.num_alive_tasks() > tasks
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        session
            .send("still there?")
            .await
            .expect("a reply")
            .response,
        "fine"
    );
}

/// All entry records, in order.
async fn records(store: &dyn Store) -> Vec<(Key, Record)> {
    let listing = store.list(ENTRIES, None).await.expect("a list");
    let mut records = Vec::new();
    for entry in listing.entries {
        let record = store
            .get(ENTRIES, &entry.key)
            .await
            .expect("it can be read");
        records.push((entry.key, record.expect("it is there")));
    }
    records
}

#[tokio::test]
async fn a_session_that_ends_after_any_of_its_entries_goes_on() {
    let store = memory();
    let three = || {
        calls(vec![
            call("", "mcp__bench__echo", json!({"number": 1})),
            call("", "mcp__bench__look", json!({"number": 2})),
            call("", "mcp__bench__look", json!({"number": 3})),
        ])
    };
    let provider = Scripted::new([three(), says("one"), three(), three(), says("two")]);
    let bench = Arc::new(Bench::new());
    let session = agent_with(&provider, &bench, &store).session(workspace());
    session.send("first").await.expect("a reply");
    session.send("second").await.expect("a reply");
    let records = records(&*store).await;
    assert!(records.len() > 20, "{}", records.len());
    for count in 1..=records.len() {
        let store = memory();
        for (key, record) in &records[..count] {
            let write = Write::new(record.value.clone());
            store.put(ENTRIES, key, write).await.expect("it is written");
        }
        let provider = Scripted::new([says("on")]);
        let bench = Arc::new(Bench::new());
        let agent = agent_with(&provider, &bench, &store);
        let resumed = agent.resume(session.id()).await.expect("a session");
        resumed.send("go on").await.expect("a reply");
        assert_eq!(bench.called(), [""; 0], "nothing is called again");
        let messages = provider.last().messages;
        for pair in messages.windows(2) {
            assert_ne!(pair[0].role, pair[1].role, "after {count} entries");
            let ids: Vec<&str> = pair[0].calls().map(|call| call.id.as_str()).collect();
            let results: Vec<&str> = pair[1]
                .parts
                .iter()
                .filter_map(|part| match part {
                    Part::ToolResult(result) => Some(result.call.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(ids, results, "after {count} entries");
        }
        let again = agent.resume(session.id()).await.expect("a session");
        assert_eq!(again.messages().await, resumed.messages().await);
    }
}

#[tokio::test]
async fn a_turn_without_a_word_goes_on_where_there_is_something_to_go_on_with() {
    let provider = Scripted::new([Step::Cut, says("here I am")]);
    let session = session(&provider);
    let error = session.send(" ").await.expect_err("nothing was said");
    assert!(matches!(error, SessionError::Empty), "{error}");
    session.send("hello").await.expect_err("the model fails");
    assert_eq!(
        session.send("").await.expect("a reply").response,
        "here I am"
    );
    assert_eq!(
        provider.last().messages,
        [Message::text(Role::User, "hello")]
    );
    session.send("").await.expect_err("it was answered");
}

#[tokio::test]
async fn entries_larger_than_a_record_are_kept_whole() {
    let store = memory();
    let provider = Scripted::thinking(model(), |_, _| says("large"));
    let bench = Arc::new(Bench::new());
    let agent = agent_with(&provider, &bench, &store);
    let session = agent.session(workspace());
    let picture = Image {
        mime_type: "image/png".to_owned(),
        data: "A".repeat(20 << 20),
    };
    let prompt = Prompt {
        parts: vec![text("look"), Part::Image(picture)],
    };
    session.send(prompt).await.expect("a reply");
    session.send("and?").await.expect("a reply");
    let resumed = agent.resume(session.id()).await.expect("a session");
    // Not `assert_eq!`, which would print the contents.
    assert!(resumed.messages().await == session.messages().await);
}
