//! Tests of the built-in tools, called as in the turn loop.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bash;
mod edit;
mod finding;
mod read;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use serde_json::value::to_raw_value;
use switchboard::internal::call::shape::Block;
use switchboard::internal::call::spill::SpillFolder;
use switchboard::permissions::Preview;
use switchboard::{LocalContext, LocalOutput, LocalTool};
use switchboard_agent::Shell;
use switchboard_agent::internal::standard;

/// A workspace with the tools of one session.
struct World {
    _folder: tempfile::TempDir,
    workspace: PathBuf,
    tools: Vec<Arc<dyn LocalTool>>,
    context: LocalContext,
    progress: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> Self {
        Self::with_shell(&Shell::new(std::env::vars_os()))
    }

    fn with_shell(shell: &Shell) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = root.join("work");
        std::fs::create_dir(&workspace).unwrap();
        let progress = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&progress);
        let context = LocalContext {
            workspace: workspace.clone(),
            max_output_tokens: 4000,
            spill: Some(SpillFolder::new(root.join("spill"))),
            secrets: Arc::default(),
            progress: Arc::new(move |text| sink.lock().unwrap().push(text)),
        };
        Self {
            _folder: folder,
            workspace,
            tools: standard(shell),
            context,
            progress,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
        self
    }

    fn contents(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn tool(&self, name: &str) -> &Arc<dyn LocalTool> {
        let named = |tool: &&Arc<dyn LocalTool>| tool.definition().name == name;
        self.tools.iter().find(named).unwrap()
    }

    async fn run(&self, tool: &str, arguments: Value) -> LocalOutput {
        let arguments = to_raw_value(&arguments).unwrap();
        self.tool(tool).run(&arguments, &self.context).await
    }

    /// Preview of a call for the user.
    async fn preview(&self, tool: &str, arguments: Value) -> Preview {
        let arguments = to_raw_value(&arguments).unwrap();
        let preview = self.tool(tool).preview(&arguments, &self.context).await;
        preview.unwrap()
    }

    /// Text of a successful call.
    async fn good(&self, tool: &str, arguments: Value) -> String {
        let output = self.run(tool, arguments).await;
        assert!(!output.is_error, "{output:?}");
        text(&output)
    }

    /// Text of a failed call.
    async fn bad(&self, tool: &str, arguments: Value) -> String {
        let output = self.run(tool, arguments).await;
        assert!(output.is_error, "{output:?}");
        text(&output)
    }
}

fn text(output: &LocalOutput) -> String {
    match output.content.as_slice() {
        [Block::Text(text)] => text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

fn numbered(count: usize) -> String {
    let lines: Vec<String> = (1..=count).map(|line| format!("line {line}\n")).collect();
    lines.concat()
}

fn modes(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn definitions_are_good_and_short() {
    let world = World::new();
    let names: Vec<String> = world
        .tools
        .iter()
        .map(|tool| tool.definition().name)
        .collect();
    assert_eq!(names, ["Bash", "Read", "Write", "Edit", "Glob", "Grep"]);
    let read_only: Vec<bool> = world.tools.iter().map(|tool| tool.is_read_only()).collect();
    assert_eq!(read_only, [false, true, false, false, true, true]);
    let mut characters = 0;
    for tool in &world.tools {
        let definition = tool.definition();
        let schema: Value = serde_json::from_str(definition.input_schema.get()).unwrap();
        assert_eq!(schema["type"], "object", "{}", definition.name);
        assert_eq!(schema["additionalProperties"], false, "{}", definition.name);
        characters += definition.description.len() + definition.input_schema.get().len();
        assert_eq!(definition, tool.definition());
    }
    assert!(characters < 4000, "{characters} characters");
}

#[tokio::test]
async fn wrong_arguments_are_told() {
    let world = World::new();
    for tool in ["Bash", "Read", "Write", "Edit", "Glob", "Grep"] {
        for arguments in [serde_json::json!({}), serde_json::json!([]), Value::Null] {
            let answer = world.bad(tool, arguments).await;
            assert!(answer.starts_with("invalid arguments: "), "{answer}");
        }
    }
}
