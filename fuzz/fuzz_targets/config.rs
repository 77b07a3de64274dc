//! Any bytes as a configuration file of any format and any scope: loading never panics, every finding can be
//! shown, and what needs trust has no effect without it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::resolve::{Config, Inputs, Status};

const FILES: [(&str, bool); 8] = [
    ("/c/mcp.toml", false),
    ("/c/mcp.json", false),
    ("/c/mcp.hcl", false),
    ("/m/managed.toml", false),
    ("/p/.mcp.toml", true),
    ("/p/.mcp.json", true),
    ("/p/switchboard.hcl", true),
    ("/p/.switchboard.local.toml", true),
];

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let (path, needs_trust) = FILES[usize::from(*choice) % FILES.len()];
    let folders = Folders {
        home: "/h".into(),
        config: "/c".into(),
        state: "/s".into(),
        project: "/p".into(),
        managed_file: Some("/m/managed.toml".into()),
    };
    let environment = [("A", "1"), ("PATH", "/bin")].into_iter().collect();
    let inputs = Inputs { folders, environment, ..Inputs::default() };
    let config = Config::load(&inputs, &InMemory::default().file(path, text).program("/bin/npx"));
    for diagnostic in &config.diagnostics {
        assert!(!diagnostic.to_string().is_empty());
    }
    for server in &config.servers {
        assert!(!format!("{server:?}").is_empty());
        if needs_trust {
            assert!(matches!(server.status, Status::Untrusted(_)), "{server:?}");
        }
    }
    if needs_trust {
        assert!(config.rules.is_empty() && config.hooks.is_empty() && config.cloud_url.is_none());
        assert!(config.lists.iter().all(|(_, lists)| lists.allow.is_none() && lists.deny.is_empty()));
    }
});
