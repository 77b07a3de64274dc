//! The embedded server `workspace`: what there is to work on when no server is configured.
//!
//! Only its tools' definitions are here; running them comes with the host.

use serde_json::{Value, json};

/// The name of the server.
pub(crate) const SERVER: &str = "workspace";

/// A tool of the server.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) input_schema: Value,
}

impl Tool {
    /// The name that a model sees.
    pub(crate) fn exposed_name(&self) -> String {
        format!("mcp__{SERVER}__{}", self.name)
    }

    /// What the definition costs, estimated at four characters a token.
    pub(crate) fn tokens(&self) -> usize {
        let characters = self.exposed_name().chars().count()
            + self.description.chars().count()
            + self.input_schema.to_string().chars().count();
        characters.div_ceil(4)
    }

    /// All three only read, and only files of the workspace.
    pub(crate) fn annotations() -> Value {
        json!({
            "readOnlyHint": true,
            "destructiveHint": false,
            "idempotentHint": true,
            "openWorldHint": false,
        })
    }
}

/// Its tools, sorted by name.
pub(crate) fn tools() -> [Tool; 3] {
    let text = |about: &str| json!({"type": "string", "description": about});
    let number = |about: &str| json!({"type": "integer", "minimum": 1, "description": about});
    let object = |properties: Value, required: &[&str]| {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    [
        Tool {
            name: "glob",
            title: "Find files",
            description: "Find files of the workspace whose path matches a glob pattern. Files that git ignores are left out.",
            input_schema: object(
                json!({
                    "pattern": text("Glob pattern relative to the workspace, such as src/**/*.rs"),
                    "limit": number("At most this many paths"),
                }),
                &["pattern"],
            ),
        },
        Tool {
            name: "grep",
            title: "Search in files",
            description: "Search the files of the workspace for a regular expression. Answers with path, line number and line of each match.",
            input_schema: object(
                json!({
                    "pattern": text("Regular expression"),
                    "path": text("File or folder to search in; the whole workspace when absent"),
                    "glob": text("Search only files whose path matches this pattern"),
                    "ignore_case": {"type": "boolean", "description": "Whether upper and lower case are the same"},
                    "limit": number("At most this many matches"),
                }),
                &["pattern"],
            ),
        },
        Tool {
            name: "read_file",
            title: "Read a file",
            description: "Read a text file of the workspace, whole or some of its lines.",
            input_schema: object(
                json!({
                    "path": text("Path relative to the workspace"),
                    "offset": number("First line to read, counted from 1"),
                    "limit": number("At most this many lines"),
                }),
                &["path"],
            ),
        },
    ]
}
