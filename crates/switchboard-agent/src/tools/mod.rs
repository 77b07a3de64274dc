//! Built-in tools of the agent.
//!
//! They are [`LocalTool`]s of the host, which validates arguments, asks for permission, records calls and enforces
//! timeouts, as it does for server tools. No tool asks for permission itself.
//!
//! | where | what |
//! |---|---|
//! | `bash`, `shell` | shell commands and their environment |
//! | `read`, `write`, `edit` | one file |
//! | `glob`, `grep` | many files |
//! | `previewed` | state of a file when its change was approved |
//! | `files`, `replace` | shared by file tools: paths, tracking of read files, atomic writes |
//! | `prepare` | shared by all tools: definitions, arguments, blocking work, output limit |

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

use crate::changes::Changes;
use crate::message::ToolDefinition;

pub(crate) use edit::whole_difference;
pub(crate) use replace::Target;
pub use shell::Shell;
pub(crate) use switchboard::{LocalContext, LocalOutput, LocalTool};

/// Tools for files and commands. They track the files that were read and the working folder, so each session needs its
/// own.
pub(crate) fn standard(shell: &Shell, changes: &Arc<Changes>) -> Vec<Arc<dyn LocalTool>> {
    let known = Arc::new(files::Known::default());
    vec![
        Arc::new(bash::Bash::new(shell.clone())),
        Arc::new(read::Read::new(Arc::clone(&known))),
        Arc::new(write::Write::new(Arc::clone(&known), Arc::clone(changes))),
        Arc::new(edit::Edit::new(known, Arc::clone(changes))),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
    ]
}

pub(crate) fn definition(name: &str, description: &str, schema: &str) -> ToolDefinition {
    let input_schema = RawValue::from_string(schema.to_owned());
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: input_schema.unwrap_or_default(),
    }
}
