//! The definitions of the embedded server: tools, prompt and resource template.

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

pub(super) const PROMPT: &str = "explain_file";

pub(super) const INSTRUCTIONS: &str = "Read-only access to the files in one folder. Find files with glob, search them with grep, read them with read_file. Paths are relative to the folder.";

/// The tools, sorted by name.
pub(crate) fn tools() -> Vec<Tool<'static>> {
    let text = |about: &str| json!({"type": "string", "description": about});
    let number = |about: &str| json!({"type": "integer", "minimum": 1, "description": about});
    let truncated = || json!({"type": "boolean", "description": "Whether more results exist"});
    let glob = tool(
        "glob",
        "Find files",
        "Find files in the workspace by glob pattern. Files ignored by git are skipped.",
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
        "Search files in the workspace with a regular expression. Returns the path, line number and text of each match.",
        &object(
            &json!({
                "pattern": text("Regular expression"),
                "path": text("File or folder to search in; the whole workspace when absent"),
                "glob": text("Search only files whose path matches this pattern"),
                "ignore_case": {"type": "boolean", "description": "Match case-insensitively"},
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
        "Read a text file in the workspace, or a range of its lines.",
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

/// The catalog of the server, for programs that do not connect to it.
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
    prompt.description = Some("Explain what a file in the workspace does".into());
    prompt.arguments = vec![path].into();
    prompt
}

/// The template of its resources, which are all below the folder's URI.
pub(super) fn template(folder: &str) -> ResourceTemplate<'static> {
    let mut template = ResourceTemplate::new(format!("{folder}{{+path}}").into(), "file".into());
    template.title = Some("Workspace file".into());
    template.description = Some("A file, by its path relative to the workspace".into());
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
