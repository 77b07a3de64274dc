//! Any text as the pattern and the command of a rule, in every action: it is read or rejected with a finding, and a rule
//! that allows never decides about a command line that is not plain.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard::permissions::{Engine, Policy, Subject};
use switchboard_config::entry::Permission;
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::resolve::{Config, Inputs};
use switchboard_config::shell;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.splitn(3, '\u{1}');
    let (tool, command, line) = (parts.next().unwrap_or_default(), parts.next(), parts.next().unwrap_or("git status; ls"));
    for action in ["allow", "ask", "deny"] {
        let mut rule = serde_json::json!({ "tool": tool, "action": action });
        if let Some(command) = command {
            rule["command"] = command.into();
        }
        let file = serde_json::json!({ "permissions": { "rules": [rule] } }).to_string();
        let folders = Folders {
            home: "/h".into(),
            config: "/c".into(),
            state: "/s".into(),
            project: "/p".into(),
            managed_file: None,
        };
        let inputs = Inputs { folders: folders.clone(), ..Inputs::default() };
        let config = Config::load(&inputs, &InMemory::default().file("/c/mcp.json", file));
        assert!(!config.rules.is_empty() || !config.diagnostics.is_empty(), "{tool:?} was dropped in silence");
        let engine = Engine::new(&config, &folders, Policy::agent());
        let Ok(arguments) = serde_json::value::to_raw_value(&serde_json::json!({ "command": line })) else { return };
        let decision = engine.decide(&Subject::built_in("Bash"), Some(&arguments));
        let has_conditions = config.rules.iter().all(|rule| !rule.arguments.is_empty());
        let is_exact = config.rules.iter().any(|rule| rule.arguments.iter().any(|test| test.test.name() == "equals"));
        if decision.permission == Permission::Allow && has_conditions && !is_exact {
            assert!(shell::plain(line).is_some(), "{tool:?} allows {line:?}");
        }
    }
});
