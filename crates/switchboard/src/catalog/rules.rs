//! Which of a server's tools the user wants: `enabled_tools`, `disabled_tools`, `tools.NAME.hidden`.
//!
//! An entry is the tool's name as the server spells it, or a glob with `*` and `?`. A name that is spelled out always
//! means that tool, also where it could be read as a glob.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use switchboard_config::entry::{ServerEntry, Transport};
use switchboard_config::settings::{Setting, Settings};

use super::server::SetAsideReason;
use super::text::DescriptionLimit;

/// The rules of one server entry, ready to be asked. The default is to offer everything, and to pin nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolRules {
    enabled: Option<Patterns>,
    disabled: Patterns,
    hidden: HashSet<String>,
    pins: bool,
    description_limit: DescriptionLimit,
}

impl ToolRules {
    /// The rules an entry states.
    pub fn of(entry: &ServerEntry) -> Self {
        let hidden = entry
            .tools
            .iter()
            .filter(|(_, tool)| tool.hidden == Some(true))
            .map(|(name, _)| name.clone())
            .collect();
        Self {
            enabled: (!entry.enabled_tools.is_empty()).then(|| Patterns::new(&entry.enabled_tools)),
            disabled: Patterns::new(&entry.disabled_tools),
            hidden,
            // What is part of this program changes with it.
            pins: entry
                .pin
                .unwrap_or(entry.effective_transport() != Some(Transport::Sdk)),
            description_limit: DescriptionLimit::default(),
        }
    }

    /// The same rules with the numbers that the settings have for all servers.
    #[must_use]
    pub fn with_settings(mut self, settings: &Settings) -> Self {
        let characters = settings.count(Setting::MaxDescriptionChars);
        self.description_limit = DescriptionLimit::characters(characters);
        self
    }

    /// How much of a description, and of the server's instructions, a model sees.
    pub(super) fn description_limit(&self) -> DescriptionLimit {
        self.description_limit
    }

    /// Whether tools that changed are set aside until somebody approves the change.
    pub fn pins(&self) -> bool {
        self.pins
    }

    /// Why the tool of that name is not offered, if it is not.
    pub(super) fn refuse(&self, name: &str) -> Option<SetAsideReason> {
        if let Some(enabled) = &self.enabled
            && !enabled.matches(name)
        {
            return Some(SetAsideReason::NotEnabled);
        }
        if self.disabled.matches(name) {
            return Some(SetAsideReason::Disabled);
        }
        self.hidden.contains(name).then_some(SetAsideReason::Hidden)
    }
}

#[derive(Debug, Clone, Default)]
struct Patterns {
    exact: HashSet<String>,
    globs: Option<GlobSet>,
}

impl Patterns {
    fn new(entries: &[String]) -> Self {
        let mut globs = GlobSetBuilder::new();
        for entry in entries.iter().filter(|entry| entry.contains(['*', '?'])) {
            // What is no valid glob (`[*`) still is a name.
            if let Ok(glob) = GlobBuilder::new(entry).build() {
                globs.add(glob);
            }
        }
        Self {
            exact: entries.iter().cloned().collect(),
            globs: globs.build().ok().filter(|globs| !globs.is_empty()),
        }
    }

    fn matches(&self, name: &str) -> bool {
        self.exact.contains(name)
            || self
                .globs
                .as_ref()
                .is_some_and(|globs| globs.is_match(name))
    }
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        // The globs are made from the same entries.
        self.exact == other.exact
    }
}
