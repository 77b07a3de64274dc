//! Tests of hooks that are programs, well and badly behaved.
#![cfg(unix)]

use std::time::Duration;

use switchboard::CallId;
use switchboard::internal::hooks::{
    CommandHook, Hook as _, HookAnswer, HookDecision, HookError, HookInput,
};
use switchboard::permissions::Subject;
use switchboard_config::policy::HookEvent;

use crate::machine::raw;

fn shell(script: &str) -> CommandHook {
    let words = ["sh", "-c", script].map(str::to_owned);
    CommandHook::new(&words, std::env::temp_dir()).expect("words")
}

async fn run(hook: &CommandHook) -> Result<HookAnswer, HookError> {
    let arguments = raw(r#"{"path": "a"}"#);
    let exposed = Subject::exposed_name("files", "write");
    hook.run(HookInput {
        event: HookEvent::PreToolUse,
        session: "session-1",
        call: CallId(7),
        subject: Subject::of_server("files", "write", &exposed),
        arguments: Some(&arguments),
        result: None,
    })
    .await
}

#[tokio::test]
async fn a_hook_is_told_everything_about_the_call() {
    // It returns its input as the new arguments.
    let hook = shell(r#"printf '{"arguments": '; cat; printf '}'"#);
    let answer = run(&hook).await.expect("an answer");
    let told: serde_json::Value =
        serde_json::from_str(answer.arguments.expect("arguments").get()).expect("JSON");
    let folder = std::env::temp_dir();
    let expected = serde_json::json!({
        "hook_event_name": "PreToolUse",
        "session_id": "session-1",
        "call_id": "call-7",
        "cwd": folder.to_str(),
        "tool_name": "mcp__files__write",
        "server": "files",
        "tool": "write",
        "tool_input": {"path": "a"},
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn however_it_ends_there_is_an_answer_or_a_reason() {
    let check = async |script: &str, expected: Result<Option<HookDecision>, &str>| {
        let answer = run(&shell(script)).await;
        let found = answer
            .as_ref()
            .map(|answer| answer.decision)
            .map_err(|error| error.reason.as_str());
        assert_eq!(found, expected, "{script}");
    };
    check("true", Ok(None)).await;
    check("cat >/dev/null", Ok(None)).await;
    check(
        "echo '{\"decision\": \"deny\"}'",
        Ok(Some(HookDecision::Block)),
    )
    .await;
    check("exit 2", Ok(Some(HookDecision::Block))).await;
    check("echo why >&2; exit 1", Err("failed (exit status: 1): why")).await;
    check("kill -9 $$", Err("failed (signal: 9 (SIGKILL))")).await;
    check(
        "echo hello",
        Err("printed something other than a JSON object"),
    )
    .await;
    check("printf '\\377'", Err("printed something other than text")).await;
    check("echo '{'", Err("printed JSON that cannot be read")).await;
    check("yes", Err("printed more than 16 MiB")).await;
    let missing = CommandHook::new(&["./no-such-hook".to_owned()], "/".into()).expect("words");
    let error = run(&missing).await.expect_err("no program");
    assert!(
        error
            .to_string()
            .starts_with("the hook `/./no-such-hook` cannot be started"),
        "{error}"
    );
}

#[tokio::test]
async fn a_reason_is_safe_to_show() {
    let answer = run(&shell("printf '\\033[31mred\\007' >&2; exit 2")).await;
    assert_eq!(
        answer.expect("an answer").reason.as_deref(),
        Some("red\\u{7}")
    );
}

#[tokio::test]
async fn a_hook_that_hangs_is_ended_with_what_it_started() {
    let mut hook = shell("sleep 600 & sleep 600");
    hook.timeout = Duration::from_millis(50);
    let error = run(&hook).await.expect_err("a deadline");
    assert_eq!(error.reason, "timed out after 0.05 seconds");
}

#[tokio::test]
async fn what_a_hook_leaves_running_holds_nobody_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark");
    // The process it leaves behind holds the pipes, and would keep them open.
    let script = format!(
        "(echo $$ > {0}; exec sleep 600) & while ! [ -s {0} ]; do :; done; echo '{{}}'",
        mark.display()
    );
    let mut hook = shell(&script);
    hook.timeout = Duration::from_secs(300);
    let answer = run(&hook).await.expect("an answer");
    assert_eq!(answer.decision, None);
}

#[tokio::test]
async fn variables_of_ours_are_withheld() {
    // `PATH` is set on every machine.
    let script = "test -n \"$PATH\" && test -n \"$SWITCHBOARD_PROJECT_DIR\" && test -z \"$HOME\"";
    let mut hook = shell(script);
    hook.withheld = vec!["HOME".to_owned()];
    let answer = run(&hook).await.expect("an answer");
    assert_eq!(answer.decision, None);
}
