//! Public tool search benchmarks: tools, and queries with the tools that each needs.
//!
//! Read from the folder that [`tool_search_data`] finds: the tools of `LiveMCPBench` with half of its queries at the
//! top level, other sets in `sets/`. None of the data is part of the repository.

use std::path::Path;

use serde_json::Value;

use crate::shared::tool_search_data;

/// Result counts for recall@1, @5 and @10.
pub const DEPTHS: [usize; 3] = [1, 5, 10];

/// The set used while the search was developed. The others served only to accept or reject changes as a whole.
pub const SEEN: &str = "livemcpbench-dev";

/// A set of tools, with queries for them.
#[derive(Debug)]
pub struct ToolSet {
    /// The name of its folder, or [`SEEN`].
    pub name: String,
    /// The tools of all its servers.
    pub tools: Vec<ListedTool>,
    /// Queries with the tools they need.
    pub questions: Vec<Question>,
}

/// A tool in the index.
#[derive(Debug, Clone)]
pub struct ListedTool {
    /// The server that lists it.
    pub server: String,
    /// Its name on that server.
    pub name: String,
    /// Its description; may be empty.
    pub description: String,
    /// Its input schema, as JSON text.
    pub schema: String,
}

/// A query and the tools it needs.
#[derive(Debug)]
pub struct Question {
    /// The query as a user would write it.
    pub text: String,
    /// The needed tools as `server/tool`, each with its alternatives.
    pub needs: Vec<Vec<String>>,
}

/// All sets, [`SEEN`] first; `None` if the data is missing.
///
/// # Errors
///
/// A file that cannot be read or parsed.
pub fn tool_sets() -> Result<Option<Vec<ToolSet>>, String> {
    let Some(folder) = tool_search_data() else {
        return Ok(None);
    };
    let mut sets = vec![read(SEEN, &folder, "queries-dev.jsonl")?];
    let mut others: Vec<_> = std::fs::read_dir(folder.join("sets"))
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    others.sort();
    for folder in others.iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        sets.push(read(&name, folder, "queries.jsonl")?);
    }
    Ok(Some(sets))
}

fn read(name: &str, folder: &Path, questions: &str) -> Result<ToolSet, String> {
    let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
    let tools = lines(&folder.join("tools.jsonl"))?.into_iter();
    let tools = tools.map(|tool| ListedTool {
        server: text(&tool, "server"),
        name: text(&tool, "name"),
        description: text(&tool, "description"),
        schema: tool["inputSchema"].to_string(),
    });
    let questions = lines(&folder.join(questions))?.into_iter().map(|question| {
        let needs = serde_json::from_value(question["gold"].clone());
        Ok(Question {
            text: text(&question, "question"),
            needs: needs.map_err(|error| format!("{name}: {error}"))?,
        })
    });
    Ok(ToolSet {
        name: name.to_owned(),
        tools: tools.collect(),
        questions: questions.collect::<Result<_, String>>()?,
    })
}

fn lines(path: &Path) -> Result<Vec<Value>, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().map(|line| {
        serde_json::from_str(line).map_err(|error| format!("{}: {error}", path.display()))
    });
    lines.collect()
}

impl ToolSet {
    /// The mean share of needed tools among the first results, for each of [`DEPTHS`]. `find` returns the ten best
    /// tools for a query as `server/tool`.
    pub fn recall(&self, find: impl Fn(&str) -> Vec<String>) -> [f64; 3] {
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let mut sums = [0.0; 3];
        for question in &self.questions {
            let found = find(&question.text);
            for (sum, depth) in sums.iter_mut().zip(DEPTHS) {
                let first = found.get(..depth.min(found.len())).unwrap_or_default();
                let is_met = |need: &&Vec<String>| need.iter().any(|tool| first.contains(tool));
                let met = question.needs.iter().filter(is_met).count();
                *sum += count(met) / count(question.needs.len());
            }
        }
        sums.map(|sum| sum / count(self.questions.len()))
    }
}
