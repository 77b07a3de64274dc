//! An in-memory machine with configuration files.

use std::fmt::Write as _;
use std::path::Path;

use switchboard_config::files::{Folders, InMemory, detached_source};
use switchboard_config::format::Format;
use switchboard_config::resolve::{Config, Inputs};
use switchboard_config::scope::Scope;
use switchboard_config::trust::Decisions;

#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) files: InMemory,
    pub(crate) inputs: Inputs,
}

pub(crate) const ENTERPRISE: &str = "/etc/switchboard/managed.toml";
pub(crate) const LOCAL: &str = "/p/.switchboard.local.toml";
pub(crate) const PROJECT: &str = "/p/.mcp.toml";
pub(crate) const PROJECT_JSON: &str = "/p/.mcp.json";
pub(crate) const USER: &str = "/h/.config/switchboard/mcp.toml";
pub(crate) const PLUGIN: &str = "/h/.config/switchboard/plugins/tickets/plugin.json";
pub(crate) const DYNAMIC: &str = "/h/.state/dynamic.toml";

impl Machine {
    pub(crate) fn new() -> Self {
        let folders = Folders {
            home: "/h".into(),
            config: "/h/.config/switchboard".into(),
            state: "/h/.state".into(),
            project: "/p".into(),
            managed_file: Some(ENTERPRISE.into()),
        };
        Self {
            files: InMemory::default(),
            inputs: Inputs {
                folders,
                ..Inputs::default()
            },
        }
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files = self.files.file(path, text);
        self
    }

    pub(crate) fn link(mut self, path: &str, target: &str) -> Self {
        self.files = self.files.link(path, target);
        self
    }

    pub(crate) fn env(mut self, variables: &[(&str, &str)]) -> Self {
        self.inputs.environment = variables.iter().copied().collect();
        self
    }

    pub(crate) fn cloud(mut self, text: &str) -> Self {
        self.inputs.further.push(detached_source(
            Scope::Cloud,
            "https://cloud.example/mcp",
            Format::Json,
            text,
        ));
        self
    }

    pub(crate) fn trusted(mut self) -> Self {
        self.inputs.trust_project = true;
        self
    }

    pub(crate) fn load(&self) -> Config {
        Config::load(&self.inputs, &self.files)
    }

    /// Approves all pending questions, like `trust approve`.
    pub(crate) fn approve(mut self) -> Self {
        let mut decisions = Decisions::default();
        for question in self.load().questions {
            let fingerprint = question.fingerprint.clone();
            decisions.approve(Path::new("/p"), &question.subject, fingerprint, 0);
        }
        // Round trip through the file format.
        self.inputs.decisions = Decisions::parse(&decisions.to_text().unwrap()).unwrap();
        self
    }

    /// Summary in a few lines: servers, losing entries, questions, findings.
    pub(crate) fn summary(&self) -> String {
        let config = self.load();
        let mut text = String::new();
        for server in &config.servers {
            let entry = server.effective();
            let target = entry
                .command
                .as_deref()
                .or(entry.url.as_deref())
                .unwrap_or("-");
            let reason = server
                .status
                .reason()
                .map(|reason| format!(" ({reason})"))
                .unwrap_or_default();
            let _ = writeln!(
                text,
                "{} = {} {target} {}{reason}",
                server.name,
                server.scope(),
                server.status.word()
            );
        }
        for lost in &config.shadowed {
            let _ = writeln!(
                text,
                "shadowed {} of {}: {}",
                lost.name,
                lost.origin.scope(),
                lost.reason
            );
        }
        for question in &config.questions {
            let _ = writeln!(text, "asks about {}", question.subject);
        }
        for diagnostic in &config.diagnostics {
            let _ = writeln!(text, "{} {diagnostic}", diagnostic.severity);
        }
        text
    }

    pub(crate) fn check(&self, expected: &str) {
        let lines = expected
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let expected: Vec<&str> = lines.collect();
        assert_eq!(self.summary().lines().collect::<Vec<_>>(), expected);
    }
}

pub(crate) fn toml(name: &str, command: &str) -> String {
    format!("[mcp_servers.{name}]\ncommand = \"{command}\"\n")
}

pub(crate) fn json(name: &str, command: &str) -> String {
    format!("{{\"mcpServers\": {{\"{name}\": {{\"command\": \"{command}\"}}}}}}")
}
