//! Property tests over all rules and calls.

use std::fmt::Write as _;

use proptest::prelude::*;
use switchboard::permissions::Policy;
use switchboard_config::entry::Permission;

use crate::machine::{raw, user_engine, with_subject};

#[derive(Debug, Clone)]
struct RuleText {
    tool: String,
    action: &'static str,
    condition: Option<(String, &'static str, String)>,
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("a__b".to_owned()),
        Just("get_x".to_owned()),
        "[ab_]{1,4}",
    ]
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        Just("mcp__*".to_owned()),
        Just("Bash".to_owned()),
        word().prop_map(|server| format!("mcp__{server}")),
        word().prop_map(|server| format!("mcp__{server}__*")),
        (word(), word()).prop_map(|(server, tool)| format!("mcp__{server}__{tool}")),
        (word(), word()).prop_map(|(server, tool)| format!("mcp__{server}*__{tool}*")),
        "[A-Za-z_*?]{1,8}",
    ]
}

fn rule() -> impl Strategy<Value = RuleText> {
    let value = prop_oneof![Just("x".to_owned()), Just("/a".to_owned()), "[a-z./(]{0,4}"];
    let test = prop_oneof![Just("equals"), Just("matches"), Just("under"), Just("host")];
    let condition = proptest::option::of((Just("p".to_owned()), test, value));
    let action = prop_oneof![Just("allow"), Just("ask"), Just("deny")];
    (pattern(), action, condition).prop_map(|(tool, action, condition)| RuleText {
        tool,
        action,
        condition,
    })
}

fn call() -> impl Strategy<Value = (String, String)> {
    let tool = prop_oneof![
        Just("Bash".to_owned()),
        (word(), word()).prop_map(|(server, tool)| format!("{server}/{tool}")),
    ];
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        Just(r#"{"p": "x"}"#.to_owned()),
        Just(r#"{"p": 5}"#.to_owned()),
        Just(r#"{"p": "/a/b"}"#.to_owned()),
        Just(r#"{"p": ["/a/b", "x"]}"#.to_owned()),
        Just(r#"{"p": "https://x/"}"#.to_owned()),
    ];
    (tool, arguments)
}

/// A file with these rules and two servers with similar names.
fn file(rules: &[RuleText]) -> String {
    let mut text =
        String::from("[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.a__b]\ncommand = 'y'\n");
    for rule in rules {
        let (tool, action) = (&rule.tool, rule.action);
        let _ = write!(
            text,
            "[[permissions.rules]]\ntool = '{tool}'\naction = '{action}'\n"
        );
        if let Some((argument, test, value)) = &rule.condition {
            let _ = writeln!(
                text,
                "arguments = {{ {argument} = {{ {test} = '{value}' }} }}"
            );
        }
    }
    text
}

fn decide(rules: &[RuleText], (tool, arguments): &(String, String)) -> Permission {
    let engine = user_engine(&file(rules), Policy::typed());
    let arguments = raw(arguments);
    with_subject(tool, |subject| {
        let decision = engine.decide(subject, Some(&arguments)).permission;
        // Deciding twice gives the same result, and the explanation matches it.
        assert_eq!(
            decision,
            engine.decide(subject, Some(&arguments)).permission
        );
        assert_eq!(
            decision,
            engine
                .explain(subject, Some(&arguments))
                .decision
                .permission
        );
        decision
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn one_more_deny_never_allows_more(rules in prop::collection::vec(rule(), 0..6), more in rule(), call in call()) {
        let before = decide(&rules, &call);
        let more = RuleText { action: "deny", ..more };
        let with_more: Vec<RuleText> = rules.iter().cloned().chain([more]).collect();
        prop_assert!(decide(&with_more, &call) >= before);
    }

    #[test]
    fn one_more_allow_never_overrules(rules in prop::collection::vec(rule(), 0..6), more in rule(), call in call()) {
        let before = decide(&rules, &call);
        let more = RuleText { action: "allow", ..more };
        let with_more: Vec<RuleText> = rules.iter().cloned().chain([more]).collect();
        prop_assert!(decide(&with_more, &call) >= before);
    }

    #[test]
    fn the_order_of_rules_does_not_matter(rules in prop::collection::vec(rule(), 0..6), call in call()) {
        let reversed: Vec<RuleText> = rules.iter().rev().cloned().collect();
        prop_assert_eq!(decide(&rules, &call), decide(&reversed, &call));
    }

    #[test]
    fn a_rule_that_allows_covers_no_more_than_one_that_denies(rule in rule(), call in call()) {
        let allow = RuleText { action: "allow", ..rule.clone() };
        let deny = RuleText { action: "deny", ..rule };
        prop_assert!(is_covered(&deny, &call) || !is_covered(&allow, &call));
    }
}

/// Whether a rule on its own decides about a call.
fn is_covered(rule: &RuleText, (tool, arguments): &(String, String)) -> bool {
    let engine = user_engine(&file(std::slice::from_ref(rule)), Policy::agent());
    let arguments = raw(arguments);
    with_subject(tool, |subject| {
        let explanation = engine.explain(subject, Some(&arguments));
        explanation.rule.is_some()
    })
}
