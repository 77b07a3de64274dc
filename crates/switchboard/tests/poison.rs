//! Tests of how many poisoned definitions, and how many benign ones, are flagged, on the project's own data sets.
//!
//! The first two sets were written before checking them against the rules, `unseen.jsonl` in two rounds after the rules
//! of the previous round. The rules have been improved with all of them since, so these are regression tests, not a
//! measure of how well the rules work on unseen texts. `heldout.jsonl` was written before its author had read the
//! rules; the half marked `held` was never used to improve them. `cargo xtask bench poison` counts all of them by
//! class.

#![expect(
    clippy::expect_used,
    reason = "a test that cannot go on should say where"
)]

use serde_json::{Value, json};
use switchboard::catalog::Provenance;
use switchboard::internal::catalog::{ListLimits, Reach, ServerTools, ToolRules};
use switchboard::{ServerName, SharedJson};

/// Every definition with its class, whether it is poisoned, and the rules that flag it.
fn judged(lines: &str) -> Vec<(String, bool, Vec<&'static str>)> {
    let judge = |line: &str| {
        let mut definition: Value = serde_json::from_str(line).expect("a definition");
        let members = definition.as_object_mut().expect("an object");
        let is_poisoned = members.remove("poisoned") == Some(true.into());
        for label in ["class", "source", "half"] {
            members.remove(label);
        }
        let name = members["name"].as_str().expect("a name").to_owned();
        let page = SharedJson::from(&json!({"tools": [definition]}));
        let tools = ServerTools::from_pages(
            &ServerName::from("s"),
            &[page],
            &ToolRules::default(),
            Reach::Other,
            Provenance::Live,
            ListLimits::default(),
        );
        let [tool] = tools.tools() else {
            // Tag characters set a tool aside, which is stricter than a flag.
            assert!(is_poisoned, "{name} is set aside: {:?}", tools.aside());
            return (name, is_poisoned, vec!["set aside"]);
        };
        let flags = tools.flags(tool);
        let rules = flags.iter().map(|flag| flag.rule.name()).collect();
        (name, is_poisoned, rules)
    };
    lines.lines().map(judge).collect()
}

/// Checks that at least `least` of a hundred poisoned definitions are flagged, and at most `most` of the others.
fn check(lines: &str, least: usize, most: usize) {
    let judged = judged(lines);
    let of = |poisoned: bool| judged.iter().filter(move |(_, each, _)| *each == poisoned);
    let flagged = |poisoned: bool| of(poisoned).filter(|(_, _, rules)| !rules.is_empty());
    let missed: Vec<_> = of(true).filter(|(_, _, rules)| rules.is_empty()).collect();
    let (found, all) = (flagged(true).count(), of(true).count());
    assert!(
        found * 100 >= all * least,
        "{found} of {all}; missed: {missed:?}"
    );
    let wrong: Vec<_> = flagged(false).collect();
    let others = of(false).count();
    assert!(wrong.len() * 100 <= others * most, "of {others}: {wrong:?}");
}

#[test]
fn poisoned_definitions_are_flagged_and_those_that_sound_alike_are_not() {
    check(include_str!("data/definitions.jsonl"), 95, 10);
}

#[test]
fn poisoned_definitions_of_the_later_rounds_are_flagged() {
    check(include_str!("data/unseen.jsonl"), 85, 20);
}

#[test]
fn the_half_that_no_rule_was_made_with_is_flagged_as_well() {
    let is_weak = |line: &&str| {
        line.contains("\"out-of-scope parameter\"") || line.contains("\"preference manipulation\"")
    };
    let lines = include_str!("data/heldout.jsonl").lines();
    let (held, tuned): (Vec<&str>, Vec<&str>) = lines
        .filter(|line| !is_weak(line))
        .partition(|line| line.contains("\"half\": \"held\""));
    check(&held.join("\n"), 85, 20);
    check(&tuned.join("\n"), 95, 10);
}

/// Written by the author of the rules to evade them: what an attacker with the source can achieve.
#[test]
fn half_of_what_was_written_to_evade_the_rules_is_flagged_still() {
    check(include_str!("data/evasive.jsonl"), 55, 20);
}

#[test]
fn ordinary_definitions_are_not_flagged() {
    check(include_str!("data/ordinary.jsonl"), 0, 0);
}
