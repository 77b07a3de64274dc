//! Tests of what a session keeps beside its messages: sub-agents, changed files, and the use of the window.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use switchboard_agent::message::Part;
use switchboard_agent::{
    Agent, AgentOptions, FileChange, SessionEvent, SubAgentState, SubAgentSummary, ToolUse,
    UndoError,
};
use switchboard_store::{Space, Store};
use tokio::sync::{Barrier, Semaphore};

use crate::sessions::{agent_with, memory, until};
use crate::support::*;

/// Whether the request is that of the main agent, which has the tool `Agent` at every depth below the limit.
fn is_sub_agent(asked: &Asked) -> bool {
    asked.messages[0].all_text().starts_with("task")
}

/// A model that gives out this many tasks, each of which looks once.
fn delegating(tasks: usize) -> Arc<Scripted> {
    Scripted::thinking(model(), move |asked, _| {
        let is_first = asked.messages.len() == 1;
        match (is_sub_agent(asked), is_first) {
            (false, true) => {
                let task = |number: usize| {
                    let prompt = format!("task {number}");
                    call(&format!("t{number}"), "Agent", json!({"prompt": prompt}))
                };
                calls((0..tasks).map(task).collect())
            }
            // Every sub-agent uses the same id for its call.
            (true, true) => calls(vec![call("x", "mcp__bench__look", json!({}))]),
            (true, false) => says(&format!("{} done", asked.messages[0].all_text())),
            (false, false) => says("All done."),
        }
    })
}

#[tokio::test]
async fn sub_agents_of_one_answer_run_side_by_side_but_not_all_at_once() {
    let provider = delegating(8);
    let bench = Arc::new(Bench {
        // Passed only by four at a time: fewer would wait for ever.
        together: Some(Arc::new(Barrier::new(4))),
        ..Bench::new()
    });
    let session = session_with(&provider, &bench);
    let seen = events(&session, "go").await;
    assert_eq!(bench.most_running.load(Ordering::SeqCst), 4);
    let results = provider.last().results();
    let expected: Vec<_> = (0..8)
        .map(|number| (format!("task {number} done"), false))
        .collect();
    assert_eq!(results, expected);
    let mut ids: Vec<String> = seen
        .iter()
        .filter_map(|event| match event {
            SessionEvent::CallBegins { id, parent, .. } => {
                assert_eq!(
                    parent.as_ref().map(|parent| format!("{parent}/x")),
                    parent.as_ref().map(|_| id.clone())
                );
                Some(id.clone())
            }
            _ => None,
        })
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 16, "{ids:?}");
    let from_agents = seen.iter().filter(|event| {
        matches!(event, SessionEvent::Usage { parent: Some(parent), .. } if parent.starts_with('t'))
    });
    assert_eq!(from_agents.count(), 16);
    // Two answers of the main agent, and two of each sub-agent.
    assert_eq!(session.usage().await.total(), 18 * 11);
}

async fn count(store: &dyn Store, space: &'static str) -> usize {
    let listing = store.list(Space::new(space), None).await.expect("a list");
    listing.entries.len()
}

#[tokio::test]
async fn sub_agents_are_stored_with_the_session_and_deleted_with_it() {
    let store = memory();
    let provider = delegating(2);
    let bench = Arc::new(Bench::new());
    let agent = agent_with(&provider, &bench, &store);
    let session = agent.session(workspace());
    session.send("go").await.expect("a reply");
    let found = session.sub_agents();
    let shown = |agents: &[SubAgentSummary]| {
        let agents = agents.iter();
        let mut shown: Vec<_> = agents
            .map(|agent| {
                let lines = agent.last_lines.join("|");
                (agent.id.clone(), agent.prompt.clone(), agent.state, lines)
            })
            .collect();
        shown.sort_by_key(|agent| agent.0.clone());
        shown
    };
    let expected = |number: usize| {
        (
            format!("t{number}"),
            format!("task {number}"),
            SubAgentState::Done,
            format!("→ bench/look|task {number} done"),
        )
    };
    assert_eq!(shown(&found), [expected(0), expected(1)]);
    assert_eq!((found[0].calls, found[0].usage.total()), (1, 22));
    let later = agent_with(&provider, &bench, &store);
    let resumed = later.resume(session.id()).await.expect("a session");
    assert_eq!(shown(&resumed.sub_agents()), shown(&found));
    // They are not sessions of their own.
    assert_eq!(later.sessions().await.expect("a list").len(), 1);
    assert_eq!(count(&*store, "sub-agents").await, 2);
    assert!(later.delete(session.id()).await.expect("it is deleted"));
    for space in ["sub-agents", "session-entries", "session-changes"] {
        assert_eq!(count(&*store, space).await, 0, "{space}");
    }
}

#[tokio::test]
async fn a_sub_agent_that_is_interrupted_says_so() {
    let store = memory();
    let provider = Scripted::new([
        calls(vec![call("task", "Agent", json!({"prompt": "wait"}))]),
        calls(vec![call("a", "mcp__bench__wait", json!({}))]),
    ]);
    let bench = Arc::new(Bench {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..Bench::new()
    });
    let agent = agent_with(&provider, &bench, &store);
    let session = agent.session(workspace());
    let is_half = |event: &SessionEvent| matches!(event, SessionEvent::CallProgress { .. });
    until(&session, "wait", is_half).await;
    assert_eq!(session.sub_agents()[0].state, SubAgentState::Interrupted);
    let resumed = agent.resume(session.id()).await.expect("a session");
    assert_eq!(resumed.sub_agents()[0].state, SubAgentState::Interrupted);
}

#[tokio::test]
async fn a_change_is_listed_and_taken_back_and_the_model_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a path");
    let provider = Scripted::new([
        calls(vec![call(
            "a",
            "Write",
            json!({"file_path": "a.txt", "content": "one\n"}),
        )]),
        calls(vec![call(
            "b",
            "Edit",
            json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
        )]),
        says("Written."),
        says("I see."),
    ]);
    let store = memory();
    let options = AgentOptions {
        store: store.clone(),
        ..options(&provider, vec![])
    };
    let agent = Agent::new(options);
    let session = agent.session(&root);
    session.send("write").await.expect("a reply");
    let file = root.join("a.txt");
    let changes = session.changes();
    let shown = |change: &FileChange| (change.number, change.name.clone(), change.is_new);
    let shown: Vec<_> = changes.iter().map(shown).collect();
    assert_eq!(
        shown,
        [
            (1, "a.txt".to_owned(), true),
            (2, "a.txt".to_owned(), false)
        ]
    );
    // Another process takes it back.
    let resumed = agent.resume(session.id()).await.expect("a session");
    let undone = resumed.undo(None).await.expect("it is undone");
    assert_eq!(undone.number, 2);
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "one\n");
    std::fs::write(&file, "mine\n").expect("it is written");
    let error = resumed.undo(None).await.expect_err("it has changed");
    assert!(
        matches!(error, UndoError::Changed { later: None, .. }),
        "{error}"
    );
    resumed.send("and?").await.expect("a reply");
    let last = provider.last().messages.pop().expect("a message");
    let said = last.all_text();
    assert!(
        said.contains("the user took back your change of a.txt"),
        "{said}"
    );
    assert!(said.ends_with("and?"), "{said}");
}

#[tokio::test]
async fn the_window_is_explained() {
    let provider = Scripted::new([
        calls(vec![call("a", "mcp__bench__look", json!({}))]),
        says("Seen."),
    ]);
    let session = session_with(&provider, &Arc::new(Bench::new()));
    let before = session.window().await;
    assert_eq!((before.window, before.prompts), (200_000, 0));
    session
        .send(&"hello ".repeat(100)[..])
        .await
        .expect("a reply");
    let found = session.window().await;
    let bench = ToolUse {
        server: Some("bench".to_owned()),
        count: 5,
        tokens: found.tools[1].tokens,
    };
    assert_eq!(found.tools[1], bench);
    assert!(found.tools[0].server.is_none() && found.tools[0].count > 5);
    assert!(found.prompts > found.answers && found.results > 0 && found.system > 0);
    // Counted by the provider: ten tokens in, one out.
    assert_eq!(found.used, 11);
}

#[tokio::test]
async fn a_transcript_has_what_was_compacted() {
    let provider = Scripted::thinking(model(), |asked, number| {
        if asked.tools.is_empty() {
            return says("A summary.");
        }
        says(&format!("answer {number}"))
    });
    let session = session_with(&provider, &Arc::new(Bench::new()));
    for number in 0..4 {
        let prompt = format!("question {number} {}", "x".repeat(2_000));
        session.send(prompt).await.expect("a reply");
    }
    session.compact().await.expect("it is compacted");
    let is_there = |parts: &[Part]| format!("{parts:?}").contains("question 0");
    let messages = session.messages().await;
    assert!(!messages.iter().any(|message| is_there(&message.parts)));
    let whole = session.transcript().await.expect("a transcript");
    assert_eq!(whole.len(), 8);
    assert!(is_there(&whole[0].parts));
}
