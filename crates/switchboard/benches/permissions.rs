//! What a decision costs: without rules, and with a thousand, for a call that is allowed.
//!
//! `cargo bench -p switchboard --bench permissions`.

#![expect(clippy::expect_used, reason = "a benchmark on wrong data must stop")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::PathBuf;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::value::RawValue;
use switchboard::CallId;
use switchboard::internal::permissions::Wanted;
use switchboard::permissions::{Engine, PermissionGate, Policy, Subject};
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::resolve::{Config, Inputs};

/// So many rules about other tools, a few about this one, and one that allows it.
fn rules(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let (tool, action) = match number % 3 {
            0 => (format!("mcp__server{number}__tool"), "deny"),
            1 => (format!("mcp__records__get_{number}_*"), "deny"),
            _ => (format!("*_{number}_x"), "ask"),
        };
        let _ = write!(
            text,
            "[[permissions.rules]]\ntool = '{tool}'\naction = '{action}'\n"
        );
        if number % 200 == 0 {
            let _ = write!(
                text,
                "[[permissions.rules]]\ntool = 'mcp__records__search'\naction = 'deny'\n\
                 arguments = {{ query = {{ matches = '^forbidden' }} }}\n"
            );
        }
    }
    text + "[[permissions.rules]]\ntool = 'mcp__records__*'\naction = 'allow'\n"
}

fn gate(rules: String) -> (PermissionGate, Config, Folders) {
    let folders = Folders {
        home: PathBuf::from("/nowhere/home"),
        config: PathBuf::from("/nowhere/home/.config/switchboard"),
        state: PathBuf::from("/nowhere/state"),
        project: std::env::temp_dir(),
        managed_file: None,
    };
    let path = folders.config.join("mcp.toml");
    let inputs = Inputs {
        folders: folders.clone(),
        ..Inputs::default()
    };
    let config = Config::load(&inputs, &InMemory::default().file(path, rules));
    let gate = PermissionGate::new(Engine::new(&config, &folders, Policy::typed()));
    (gate, config, folders)
}

fn permissions(criterion: &mut Criterion) {
    let exposed = Subject::exposed_name("records", "search");
    let arguments = r#"{"project": "switchboard", "query": "open issues", "limit": 20}"#;
    let arguments: Box<RawValue> = serde_json::from_str(arguments).expect("JSON");
    let wanted = Wanted {
        id: CallId(1),
        subject: Subject::of_server("records", "search", &exposed),
        arguments: Some(&arguments),
        tool: None,
        previewer: None,
        session: None,
        profile: None,
        client: None,
    };
    for (name, text) in [
        ("permissions/no_rules", String::new()),
        ("permissions/1000_rules", rules(1000)),
    ] {
        let (gate, config, folders) = gate(text);
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| gate.permit(black_box(wanted)));
        });
        criterion.bench_function(&format!("{name}_compiled"), |bencher| {
            bencher.iter(|| Engine::new(&config, &folders, Policy::typed()));
        });
    }
}

criterion_group!(benches, permissions);
criterion_main!(benches);
