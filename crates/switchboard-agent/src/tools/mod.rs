//! Built-in tools: what an agent can do besides the tools of MCP servers.
//!
//! Owns the trait and the tools. Permission, hooks and audit stand before a tool, in the dispatch that all tools share;
//! no tool asks for itself.
//!
//! | where | what |
//! |---|---|
//! | `bash`, `shell` | commands, and what they run in |
//! | `read`, `write`, `edit` | one file |
//! | `glob`, `grep` | many files |
//! | `previewed` | what a person was shown of a change, so that nothing else is done |
//! | `files`, `replace` | what the tools for files share: paths, what was read, writing whole or not at all |
//! | `prepare` | what all of them share: definitions, arguments, blocking work, output within its limit |

pub(crate) mod agent;
mod bash;
mod edit;
mod files;
mod glob;
mod grep;
pub(crate) mod mcp_resources;
pub(crate) mod mcp_search;
mod prepare;
mod previewed;
mod read;
mod replace;
mod shell;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;
use switchboard::call::spill::SpillFolder;
use switchboard::permissions::{Preview, SecretPlaces};

use crate::message::{Content, ToolDefinition};

pub use shell::Shell;

/// The tools for files and commands. They remember what a session has read and where its commands left off, so each
/// session has its own.
pub fn standard(shell: &Shell) -> Vec<Arc<dyn Tool>> {
    let known = Arc::new(files::Known::default());
    vec![
        Arc::new(bash::Bash::new(shell.clone())),
        Arc::new(read::Read::new(Arc::clone(&known))),
        Arc::new(write::Write::new(Arc::clone(&known))),
        Arc::new(edit::Edit::new(known)),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
    ]
}

/// A tool that is part of the agent.
pub trait Tool: Send + Sync + 'static {
    /// What the model is told of it. The same each time.
    fn definition(&self) -> ToolDefinition;

    /// Whether it changes nothing, so that it may run beside others.
    fn is_read_only(&self) -> bool {
        false
    }

    /// What a call will do, for a person who is asked about it. What is shown is what is done: where that is no longer
    /// possible when the call runs, it fails. `None` if the arguments say it all.
    fn preview<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Option<Preview>> {
        let _ = (arguments, context);
        ready(None).boxed()
    }

    /// Runs it. The arguments are an object, checked against its schema. A failure is an output that the model can act
    /// on. Dropping the future ends whatever it has started.
    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Output>;
}

/// Where a tool runs. One for each session, so what a tool must remember of a session is kept in the tool, which is
/// made anew for each session.
#[derive(Clone)]
pub struct ToolContext {
    /// The folder the session works in.
    pub workspace: PathBuf,
    /// The most tokens of text that an output may have.
    pub max_output_tokens: u64,
    /// Where larger output goes.
    pub spill: Option<SpillFolder>,
    /// Places with secrets, which searches pass over.
    pub secrets: Arc<SecretPlaces>,
    /// Who is told how a long call gets on. It must be short.
    pub progress: Arc<dyn Fn(String) + Send + Sync>,
}

/// What came of a built-in tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// What the model gets.
    pub content: Vec<Content>,
    /// Whether it failed.
    pub is_error: bool,
    /// What a person is shown in its place, such as the difference an edit made.
    pub display: Option<String>,
}

impl Output {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            content: vec![Content::Text { text }],
            is_error: false,
            display: None,
        }
    }

    /// A failure that the model can act on.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }
}

/// A definition of a tool of ours.
pub(crate) fn definition(name: &str, description: &str, schema: &str) -> ToolDefinition {
    let input_schema = RawValue::from_string(schema.to_owned());
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: input_schema.unwrap_or_default(),
    }
}
