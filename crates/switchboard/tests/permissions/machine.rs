//! Builds a configuration from texts, and an engine from that.

use std::path::PathBuf;

use serde_json::value::RawValue;
use switchboard::permissions::{Engine, Policy, Subject};
use switchboard_config::document::Source;
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::resolve::{Config, Inputs};

/// Folders that do not exist.
pub(crate) fn folders() -> Folders {
    Folders {
        home: PathBuf::from("/nowhere/home"),
        config: PathBuf::from("/nowhere/home/.config/switchboard"),
        state: PathBuf::from("/nowhere/home/.local/state/switchboard"),
        project: PathBuf::from("/nowhere/project"),
        managed_file: Some(PathBuf::from("/nowhere/managed.toml")),
    }
}

/// The configuration of files with these texts, by path. The project is trusted.
pub(crate) fn config(files: &[(&str, &str)]) -> Config {
    let on_disk = files
        .iter()
        .fold(InMemory::default(), |on_disk, (path, text)| {
            on_disk.file(*path, *text)
        });
    let inputs = Inputs {
        folders: folders(),
        trust_project: true,
        further: Vec::<Source>::new(),
        ..Inputs::default()
    };
    Config::load(&inputs, &on_disk)
}

pub(crate) const USER: &str = "/nowhere/home/.config/switchboard/mcp.toml";
pub(crate) const PROJECT: &str = "/nowhere/project/.mcp.toml";
pub(crate) const LOCAL: &str = "/nowhere/project/.switchboard.local.toml";
pub(crate) const ENTERPRISE: &str = "/nowhere/managed.toml";

pub(crate) fn engine(files: &[(&str, &str)], policy: Policy) -> Engine {
    Engine::new(&config(files), &folders(), policy)
}

/// An engine of one user file.
pub(crate) fn user_engine(text: &str, policy: Policy) -> Engine {
    engine(&[(USER, text)], policy)
}

/// Parses a tool as written in tests: `server/tool`, or the name of a built-in.
pub(crate) fn with_subject<T>(name: &str, work: impl FnOnce(&Subject<'_>) -> T) -> T {
    match name.split_once('/') {
        Some((server, tool)) => {
            let exposed = Subject::exposed_name(server, tool);
            work(&Subject::of_server(server, tool, &exposed))
        }
        None => work(&Subject::built_in(name)),
    }
}

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    serde_json::from_str(json).expect(json)
}
