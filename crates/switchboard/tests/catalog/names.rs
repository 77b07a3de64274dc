//! Tests of exposed names: valid, stable, unique.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;
use switchboard::internal::catalog::exposed::exposed_name;

use super::catalog;

/// Similar names, and unrelated ones.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab_.-]{0,8}",
        "[a-z0-9_]{1,70}",
        "[b-d]{1,3}_[0-9bcdfghjkmnpqrstvwxyz]{12}",
        "\\PC{0,12}",
        Just("a__b".to_owned()),
        Just("b__c".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn names_fit_what_providers_take(server in name(), tool in name()) {
        let exposed = exposed_name(&server, &tool);
        let text = exposed.as_str();
        prop_assert!((1..=64).contains(&text.len()), "{text}");
        prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{text}");
        prop_assert!(text.starts_with("mcp__"));
        prop_assert_eq!(exposed.clone(), exposed_name(&server, &tool));
    }

    #[test]
    fn different_tools_have_different_names(pairs in prop::collection::vec((name(), name()), 1..40)) {
        let mut seen: HashMap<String, (String, String)> = HashMap::new();
        for pair in pairs {
            let exposed = exposed_name(&pair.0, &pair.1).as_str().to_owned();
            if let Some(other) = seen.insert(exposed, pair.clone()) {
                prop_assert_eq!(other, pair);
            }
        }
    }

    #[test]
    fn no_other_server_changes_a_tools_name(
        tool in "[a-z_.]{1,70}",
        others in prop::collection::vec(("[a-z_-]{1,10}", "[a-z_.]{1,20}"), 0..6),
    ) {
        let alone = catalog(&[("mine", json!({"tools": [{"name": tool}]}))]);
        let Some(expected) = alone.iter().next().map(|tool| tool.exposed().clone()) else {
            return Ok(());
        };
        let mut servers = vec![("mine", json!({"tools": [{"name": tool}]}))];
        for (server, tool) in &others {
            servers.push((server, json!({"tools": [{"name": tool}]})));
        }
        let among_others = catalog(&servers);
        let found = among_others.exposed(expected.as_str());
        prop_assert_eq!(found.map(|found| found.reference().tool.as_str()), Some(tool.as_str()));
        prop_assert_eq!(found.map(|found| found.reference().server.as_str()), Some("mine"));
    }
}
