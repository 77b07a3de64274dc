//! How good tool search is, on tools and questions that others have written down.

use std::collections::BTreeMap;

use serde_json::Value;
use switchboard::catalog::exposed::exposed_name;
use switchboard::search::{Document, Index};
use switchboard_test::shared::tool_search_data;

/// What it must come to. Plain BM25 comes to 0.41.
const LEAST_RECALL: f64 = 0.55;

/// How many results are looked at.
const RESULTS: usize = 10;

#[test]
fn whole_questions_find_the_tools_they_need() {
    let Some(folder) = tool_search_data() else {
        return;
    };
    let read = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let tools = read("tools.jsonl");
    let mut servers: BTreeMap<&str, Vec<Document<'_>>> = BTreeMap::new();
    for tool in &tools {
        let (server, name) = (
            tool["server"].as_str().unwrap(),
            tool["name"].as_str().unwrap(),
        );
        let document = Document::new(exposed_name(server, name), name.into())
            .described(tool["description"].as_str().unwrap_or_default())
            .with_schema(&tool["inputSchema"].to_string());
        servers.entry(server).or_default().push(document);
    }
    let mut index = Index::new();
    for (server, documents) in servers {
        index.replace(&server.into(), "", documents);
    }
    assert_eq!(index.len(), tools.len());

    let questions = read("queries-dev.jsonl");
    let mut recall = 0.0;
    for question in &questions {
        let hits = index.search(question["question"].as_str().unwrap(), RESULTS);
        assert!(hits.len() <= RESULTS);
        let found: Vec<String> = hits.iter().map(|hit| hit.tool.to_string()).collect();
        let needed = question["gold"].as_array().unwrap();
        let is_found = |alternatives: &&Value| {
            let mut alternatives = alternatives.as_array().unwrap().iter();
            alternatives.any(|tool| found.iter().any(|name| tool == name))
        };
        let count = |number: usize| f64::from(u32::try_from(number).unwrap());
        recall += count(needed.iter().filter(is_found).count()) / count(needed.len());
    }
    recall /= f64::from(u32::try_from(questions.len()).unwrap());
    assert!(
        recall >= LEAST_RECALL,
        "recall@{RESULTS} is {recall:.3}, and must be at least {LEAST_RECALL}"
    );
}
