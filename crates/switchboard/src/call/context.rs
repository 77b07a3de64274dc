//! The session that makes a call: its own tools, which others it may reach, and the bounds of what it is shown.

use std::path::PathBuf;

use super::local::{LocalTools, is_bare};
use super::shape::{ShapeOptions, Shaped, shape_as, shape_text};
use super::spill::SpillFolder;
use super::{CallError, CallOutcome};
use crate::catalog::{CatalogTool, LookupError, Tokens};
use crate::names::{CalledTool, ExposedName};
use crate::permissions::NameGlob;

/// What a session brings to each of its calls. Another session, and a request without a context, cannot reach its tools.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The session's name for hooks and gates, such as its id.
    pub session: String,
    /// Tools of the session, found before those of servers.
    pub tools: LocalTools,
    /// Which tools of servers it may reach. One that it may not reach is unknown to it.
    pub subset: ToolSubset,
    /// The folder it works in.
    pub workspace: PathBuf,
    /// The most tokens of text that it is shown of one result.
    pub max_output_tokens: u64,
    /// Where larger output goes; without a folder it is lost.
    pub spill: Option<SpillFolder>,
}

impl CallContext {
    /// What the session's model gets of a call: a result within the bounds, or the error and what to do about it.
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

    /// Whether a server's tool of that name could be found, now or when its server is connected.
    pub fn may_reach(&self, name: &str) -> bool {
        !is_bare(name) && self.subset.has(name)
    }

    /// What was found, if the session may reach it; else an error that suggests only what it may reach.
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

/// What the files of a tool's output are called.
fn label(tool: &CalledTool) -> String {
    match &tool.server {
        Some(server) => format!("{server}-{}", tool.tool),
        None => format!("built-in-{}", tool.tool),
    }
}

/// A part of the tools, by patterns of their exposed names. [`Default`] is all of them.
#[derive(Debug, Clone, Default)]
pub struct ToolSubset(Vec<Vec<NameGlob>>);

impl ToolSubset {
    /// The tools of this subset that also match one of the patterns.
    #[must_use]
    pub fn narrowed(&self, patterns: Vec<NameGlob>) -> Self {
        let mut subset = self.clone();
        subset.0.push(patterns);
        subset
    }

    /// Whether all tools are in it.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a tool is in it.
    pub fn has(&self, name: &str) -> bool {
        let matches = |patterns: &Vec<NameGlob>| patterns.iter().any(|glob| glob.matches(name));
        self.0.iter().all(matches)
    }
}
