//! Built-in tools: what an agent can do besides the tools of MCP servers.
//!
//! Owns the tools. They are [`LocalTool`]s of the host, which checks their arguments, asks for permission, records calls
//! and ends them in time, as it does for the tools of servers; no tool asks for itself.
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

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::message::ToolDefinition;

pub use shell::Shell;
pub(crate) use switchboard::{LocalContext, LocalOutput, LocalTool};

/// The tools for files and commands. They remember what a session has read and where its commands left off, so each
/// session has its own.
pub fn standard(shell: &Shell) -> Vec<Arc<dyn LocalTool>> {
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

/// A definition of a tool of ours.
pub(crate) fn definition(name: &str, description: &str, schema: &str) -> ToolDefinition {
    let input_schema = RawValue::from_string(schema.to_owned());
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: input_schema.unwrap_or_default(),
    }
}
