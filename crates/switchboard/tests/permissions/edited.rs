//! Answers that change a call or explain a refusal.

use std::sync::Arc;

use switchboard::internal::hooks::{HookAnswer, HookInput};
use switchboard::permissions::PromptAnswer;
use switchboard_config::policy::HookEvent;

use crate::gate::{Lab, hook, lines, person};

fn edited(text: &str) -> PromptAnswer {
    PromptAnswer::Edited(text.to_owned())
}

#[tokio::test]
async fn edited_arguments_are_asked_about_again_and_then_sent() {
    let person = person(&[edited(r#"{"path": "b.txt"}"#), PromptAnswer::Once]);
    let lab = Lab::new("", Vec::new(), Some(Arc::clone(&person))).await;
    assert_eq!(lab.read("workspace", "a.txt").await, Ok("other".into()));
    let seen = person.seen.lock().expect("seen").clone();
    assert_eq!(
        seen,
        [
            (r#"{"path":"a.txt"}"#.to_owned(), None),
            (r#"{"path": "b.txt"}"#.to_owned(), None),
        ]
    );
    assert_eq!(lines(&lab.written().await), ["ask person done"]);
}

#[tokio::test]
async fn edited_arguments_that_do_not_fit_are_refused_with_the_reason() {
    let wrong = ["{\"path\": 5}", "{\"path\":", "[]"];
    for text in wrong {
        let person = person(&[edited(text), PromptAnswer::No]);
        let lab = Lab::new("", Vec::new(), Some(Arc::clone(&person))).await;
        let refused = lab.read("workspace", "a.txt").await;
        assert_eq!(refused, Err("the user said no".into()), "{text}");
        let seen = person.seen.lock().expect("seen").clone();
        assert_eq!(seen[1].0, r#"{"path":"a.txt"}"#, "{text}");
        let remark = seen[1].1.clone().unwrap_or_default();
        let start = "the edited arguments do not fit: ";
        assert!(remark.starts_with(start), "{text}: {remark}");
    }
}

#[tokio::test]
async fn edited_arguments_do_not_pass_a_rule_that_denies_them() {
    let rule = "[[permissions.rules]]\ntool = 'mcp__workspace__read_file'\naction = 'deny'\narguments = { path = 'b.txt' }\n";
    let person = person(&[edited(r#"{"path": "b.txt"}"#)]);
    let lab = Lab::new(rule, Vec::new(), Some(person)).await;
    let refused = lab.read("workspace", "a.txt").await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(lines(&lab.written().await), ["deny rule refused"]);
}

#[tokio::test]
async fn edited_arguments_pass_the_hooks() {
    let is_b = |input: &HookInput<'_>| {
        input
            .arguments
            .is_some_and(|raw| raw.get().contains("b.txt"))
    };
    let hook = hook(HookEvent::PreToolUse, move |input: &HookInput<'_>| {
        if is_b(input) {
            HookAnswer::block("not b")
        } else {
            HookAnswer::default()
        }
    });
    let person = person(&[edited(r#"{"path": "b.txt"}"#)]);
    let lab = Lab::new("", vec![hook], Some(person)).await;
    assert_eq!(lab.read("workspace", "a.txt").await, Err("not b".into()));
}

#[tokio::test]
async fn the_model_gets_the_reason_of_a_refusal() {
    let answer = PromptAnswer::NoBecause("use the other\u{1b} file".to_owned());
    let lab = Lab::new("", Vec::new(), Some(person(&[answer]))).await;
    let reason = lab.read("workspace", "a.txt").await.expect_err("a refusal");
    assert!(
        reason.starts_with("the user said no: use the other"),
        "{reason}"
    );
    assert_eq!(lines(&lab.written().await), ["deny person refused"]);
}
