//! Per-session context of a call: the session's own tools, the server tools it may reach, and its output limits.

use std::path::PathBuf;

use super::local::{LocalTools, is_bare};
use super::shape::{ShapeOptions, Shaped, shape_as, shape_text};
use super::spill::SpillFolder;
use super::{CallError, CallOutcome};
use crate::catalog::{CatalogTool, LookupError, Tokens};
use crate::names::{CalledTool, ExposedName};
use crate::permissions::NameGlob;

/// Context that a session adds to each of its calls. Other sessions, and requests without a context, cannot reach its
/// tools.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Session name for hooks and gates, such as its id.
    pub session: String,
    /// Tools of the session; they take precedence over server tools.
    pub tools: LocalTools,
    /// Server tools that the session may reach. Others are reported as unknown.
    pub subset: ToolSubset,
    /// Working directory of the session.
    pub workspace: PathBuf,
    /// Maximum number of text tokens of one result.
    pub max_output_tokens: u64,
    /// Folder for output over the limit; without one the excess is dropped.
    pub spill: Option<SpillFolder>,
}

impl CallContext {
    /// Formats the outcome for the session's model: a result within the limits, or the error with its remedy.
    pub fn shape(&self, outcome: &Result<CallOutcome, CallError>) -> Shaped {
        let options = ShapeOptions {
            max_tokens: Tokens(self.max_output_tokens),
            spill: self.spill.as_ref(),
        };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return shape_text("error", error.for_model(), true, options),
        };
        let label = label(&outcome.tool);
        let shaped = shape_as(&label, &outcome.result, options, outcome.is_exact);
        shaped.unwrap_or_else(|error| {
            let text = format!("the result of {} cannot be read: {error}", outcome.tool);
            shape_text(&label, text, true, options)
        })
    }

    /// Whether the session may use a server tool of that name, which may not be connected yet.
    pub fn may_reach(&self, name: &str) -> bool {
        !is_bare(name) && self.subset.has(name)
    }

    /// Returns the tool if the session may reach it; otherwise an error that suggests only reachable tools.
    pub(super) fn reached<'c>(
        &self,
        name: &str,
        found: Result<&'c CatalogTool, LookupError>,
    ) -> Result<&'c CatalogTool, LookupError> {
        let (unknown, servers) = match found {
            Ok(tool) if self.subset.has(tool.exposed().as_str()) => return Ok(tool),
            Ok(_) => (name.to_owned(), Vec::new()),
            Err(LookupError::Unknown { name, nearest }) => (name, nearest),
            Err(error) => return Err(error),
        };
        let local = self.tools.similar_to(name).map(ExposedName::from);
        let servers = servers.into_iter();
        let servers = servers.filter(|name| self.subset.has(name.as_str()));
        Err(LookupError::Unknown {
            name: unknown,
            nearest: local.chain(servers).collect(),
        })
    }
}

/// Prefix for the file names of a tool's spilled output.
fn label(tool: &CalledTool) -> String {
    match &tool.server {
        Some(server) => format!("{server}-{}", tool.tool),
        None => format!("built-in-{}", tool.tool),
    }
}

/// Subset of tools by patterns of exposed names. [`Default`] includes all.
#[derive(Debug, Clone, Default)]
pub struct ToolSubset(Vec<Vec<NameGlob>>);

impl ToolSubset {
    /// Returns the tools of this subset that also match one of the patterns.
    #[must_use]
    pub fn narrowed(&self, patterns: Vec<NameGlob>) -> Self {
        let mut subset = self.clone();
        subset.0.push(patterns);
        subset
    }

    /// Whether no pattern restricts it.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a tool with this exposed name is included.
    pub fn has(&self, name: &str) -> bool {
        let matches = |patterns: &Vec<NameGlob>| patterns.iter().any(|glob| glob.matches(name));
        self.0.iter().all(matches)
    }
}
