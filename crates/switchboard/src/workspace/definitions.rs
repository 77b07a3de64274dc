//! What the embedded server offers, as clients see it.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_protocol::types::encode;
use switchboard_protocol::types::prompt::{Prompt, PromptArgument};
use switchboard_protocol::types::resource::ResourceTemplate;
use switchboard_protocol::types::tool::{ListToolsResult, Tool, ToolAnnotations};

use crate::catalog::ServerCatalog;
use crate::json::SharedJson;
use crate::service::{schema, tool_definition};

/// The name of the server.
pub const NAME: &str = "workspace";

/// The name of its prompt.
pub(super) const PROMPT: &str = "explain_file";

pub(super) const INSTRUCTIONS: &str = "Reads the files of one folder and changes nothing. Find files with glob, search in them with grep, read them with read_file; paths are relative to the folder.";

/// Its tools, sorted by name.
pub(crate) fn tools() -> Vec<Tool<'static>> {
    let text = |about: &str| json!({"type": "string", "description": about});
    let number = |about: &str| json!({"type": "integer", "minimum": 1, "description": about});
    let truncated =
        || json!({"type": "boolean", "description": "Whether there is more than is listed"});
    let glob = tool(
        "glob",
        "Find files",
        "Find files of the workspace whose path matches a glob pattern. Files that git ignores are left out.",
        &object(
            &json!({
                "pattern": text("Glob pattern relative to the workspace, such as src/**/*.rs"),
                "limit": number("At most this many paths"),
            }),
            &["pattern"],
        ),
        Some(&object(
            &json!({
                "paths": {"type": "array", "items": {"type": "string"}},
                "truncated": truncated(),
            }),
            &["paths", "truncated"],
        )),
    );
    let grep = tool(
        "grep",
        "Search in files",
        "Search the files of the workspace for a regular expression. Answers with path, line number and line of each match.",
        &object(
            &json!({
                "pattern": text("Regular expression"),
                "path": text("File or folder to search in; the whole workspace when absent"),
                "glob": text("Search only files whose path matches this pattern"),
                "ignore_case": {"type": "boolean", "description": "Whether upper and lower case are the same"},
                "limit": number("At most this many matches"),
            }),
            &["pattern"],
        ),
        Some(&object(
            &json!({
                "matches": {
                    "type": "array",
                    "items": object(
                        &json!({
                            "path": {"type": "string"},
                            "line": {"type": "integer"},
                            "text": {"type": "string"},
                        }),
                        &["path", "line", "text"],
                    ),
                },
                "truncated": truncated(),
            }),
            &["matches", "truncated"],
        )),
    );
    let read_file = tool(
        "read_file",
        "Read a file",
        "Read a text file of the workspace, whole or some of its lines.",
        &object(
            &json!({
                "path": text("Path relative to the workspace"),
                "offset": number("First line to read, counted from 1"),
                "limit": number("At most this many lines"),
            }),
            &["path"],
        ),
        None,
    );
    vec![glob, grep, read_file]
}

/// What it offers, as a list of its tools tells it: for programs that only want to look.
pub fn catalog() -> ServerCatalog {
    let result = ListToolsResult::new(tools().into());
    let page = RawValue::from_string(encode(&result)).map(SharedJson::from);
    ServerCatalog {
        tools: page.into_iter().collect(),
        instructions: Some(INSTRUCTIONS.to_owned()),
        ..ServerCatalog::default()
    }
}

pub(super) fn prompt() -> Prompt<'static> {
    let mut path = PromptArgument::new("path".into());
    path.description = Some("Path relative to the workspace".into());
    path.required = Some(true);
    let mut prompt = Prompt::new(PROMPT.into());
    prompt.title = Some("Explain a file".into());
    prompt.description =
        Some("Asks what a file of the workspace does, with the file itself".into());
    prompt.arguments = vec![path].into();
    prompt
}

/// The pattern for its resources, which all lie under the folder's own URI.
pub(super) fn template(folder: &str) -> ResourceTemplate<'static> {
    let mut template = ResourceTemplate::new(format!("{folder}{{+path}}").into(), "file".into());
    template.title = Some("File of the workspace".into());
    template.description = Some("Any file, by its path relative to the workspace".into());
    template
}

fn tool(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    input: &Value,
    output: Option<&Value>,
) -> Tool<'static> {
    let mut tool = tool_definition(name, description, input);
    tool.title = Some(title.into());
    tool.output_schema = output.map(schema);
    let mut annotations = ToolAnnotations::new();
    annotations.read_only_hint = Some(true);
    annotations.destructive_hint = Some(false);
    annotations.idempotent_hint = Some(true);
    annotations.open_world_hint = Some(false);
    tool.annotations = Some(Box::new(annotations));
    tool
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
