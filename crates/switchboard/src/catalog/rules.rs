//! Tool filters of a server entry: `enabled_tools`, `disabled_tools`, `tools.NAME.hidden`.
//!
//! A pattern is the exact tool name or a glob with `*` and `?`. An exact name always matches that tool, even if it
//! could be read as a glob.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use switchboard_config::entry::{ServerEntry, Transport};
use switchboard_config::settings::{Setting, Settings};

use super::server::SetAsideReason;
use super::text::DescriptionLimit;

/// What one server entry says about its tools. The default offers every tool, pins none, and trusts no annotations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolRules {
    enabled: Option<Patterns>,
    disabled: Patterns,
    hidden: HashSet<String>,
    pins: bool,
    trusts_annotations: bool,
    description_limit: DescriptionLimit,
}

impl ToolRules {
    /// Compiles the filters of an entry.
    pub fn of(entry: &ServerEntry) -> Self {
        let hidden = entry
            .tools
            .iter()
            .filter(|(_, tool)| tool.hidden == Some(true))
            .map(|(name, _)| name.clone())
            .collect();
        // Tools of this program change with its version, so they are not pinned by default; what they declare is true.
        let is_own = entry.effective_transport() == Some(Transport::Sdk);
        Self {
            enabled: (!entry.enabled_tools.is_empty()).then(|| Patterns::new(&entry.enabled_tools)),
            disabled: Patterns::new(&entry.disabled_tools),
            hidden,
            pins: entry.pin.unwrap_or(!is_own),
            trusts_annotations: entry.trust_annotations.unwrap_or(is_own),
            description_limit: DescriptionLimit::default(),
        }
    }

    /// Trusts the server's annotations of its tools, as `trust_annotations` in its entry does.
    #[must_use]
    pub fn trusting_annotations(mut self) -> Self {
        self.trusts_annotations = true;
        self
    }

    /// Whether the server's annotations of its tools may be used for decisions.
    pub(super) fn trusts_annotations(&self) -> bool {
        self.trusts_annotations
    }

    /// Applies the global settings.
    #[must_use]
    pub fn with_settings(mut self, settings: &Settings) -> Self {
        let characters = settings.count(Setting::MaxDescriptionChars);
        self.description_limit = DescriptionLimit::characters(characters);
        self
    }

    /// Maximum length of descriptions and of the server's instructions for the model.
    pub(super) fn description_limit(&self) -> DescriptionLimit {
        self.description_limit
    }

    /// Whether changed tools are set aside until the user approves the change.
    pub fn pins(&self) -> bool {
        self.pins
    }

    /// Returns the reason if the tool is filtered out.
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
            // An invalid glob (`[*`) can still be an exact name.
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
        // The globs are built from the same entries.
        self.exact == other.exact
    }
}
