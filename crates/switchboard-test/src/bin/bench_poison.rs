//! Measures detection of poisoned tool definitions: true and false positives, and time.
//!
//! Run by `cargo xtask bench poison`. Prints one line of JSON: counts by corpus, source, class and kind, missing
//! corpora, and nanoseconds per definition for each round.

#![expect(clippy::cast_precision_loss, reason = "counts are small")]
#![expect(clippy::print_stdout, reason = "prints the results")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value, json};
use switchboard::catalog::Provenance;
use switchboard::internal::catalog::{ListLimits, Reach, ServerTools, ToolRules};
use switchboard::{ServerName, SharedJson};
use switchboard_test::shared::{poison_data, tool_search_data};

/// Minimum number of definitions to time.
const TOOLS: usize = 10_000;

/// Number of timing rounds.
const ROUNDS: usize = 5;

/// Attacks without an explicit instruction, counted separately.
const WEAK: [&str; 2] = ["out-of-scope parameter", "preference manipulation"];

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match measure() {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{}", json!({ "error": error.to_string() }));
            ExitCode::FAILURE
        }
    }
}

/// A labelled definition.
struct Sample {
    corpus: String,
    source: String,
    class: String,
    kind: &'static str,
    definition: Value,
}

fn measure() -> Result<Value, Failure> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../switchboard/tests/data");
    let mut samples = Vec::new();
    for name in ["definitions", "unseen", "heldout", "evasive", "ordinary"] {
        read(&own.join(format!("{name}.jsonl")), name, &mut samples)?;
    }
    let mut missing = Vec::new();
    match poison_data() {
        Some(folder) => read(&folder.join("tools.jsonl"), "public", &mut samples)?,
        None => missing.push("shared/data/poison/tools.jsonl"),
    }
    match tool_search_data() {
        Some(folder) => {
            for file in tool_sets(&folder)? {
                read(&file, "ordinary, of others", &mut samples)?;
            }
        }
        None => missing.push("shared/data/tool-search"),
    }
    let mut counts: BTreeMap<[&str; 4], [u32; 2]> = BTreeMap::new();
    for sample in &samples {
        let key = [sample.kind, &sample.corpus, &sample.source, &sample.class];
        let [flagged, all] = counts.entry(key).or_default();
        *all += 1;
        *flagged += u32::from(is_flagged(sample));
    }
    let counts: Vec<Value> = counts
        .into_iter()
        .map(|([kind, corpus, source, class], [flagged, all])| {
            json!({"kind": kind, "corpus": corpus, "source": source, "class": class, "flagged": flagged, "all": all})
        })
        .collect();
    Ok(json!({"counts": counts, "missing": missing, "speed": speed(&samples)}))
}

/// The files with the tools of all sets.
fn tool_sets(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = vec![folder.join("tools.jsonl")];
    if let Ok(sets) = std::fs::read_dir(folder.join("sets")) {
        for set in sets {
            files.push(set?.path().join("tools.jsonl"));
        }
    }
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

fn read(file: &Path, corpus: &str, samples: &mut Vec<Sample>) -> Result<(), Failure> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    for line in text.lines() {
        let mut definition: Value = serde_json::from_str(line)?;
        let mut label = |name: &str| -> Option<String> {
            let label = definition.as_object_mut()?.remove(name)?;
            Some(
                label
                    .as_str()
                    .map_or_else(|| label.to_string(), str::to_owned),
            )
        };
        let is_poisoned = label("poisoned").as_deref() == Some("true");
        let class = label("class").unwrap_or_else(|| "ordinary".to_owned());
        let source = label("source").or_else(|| label("server"));
        let half = label("half");
        let is_weak = WEAK.contains(&class.as_str());
        let kind = match (is_poisoned, is_weak) {
            (true, true) => "weak",
            // Written with knowledge of the rules: reported, but without a target.
            (true, false) if corpus == "evasive" => "evasive",
            (true, false) => "instruction",
            (false, _) if class.contains("negative") => "hard negative",
            (false, _) => "ordinary",
        };
        let is_labelled = corpus == "public";
        samples.push(Sample {
            corpus: match half.as_deref() {
                Some("held") => format!("{corpus}, never tuned on"),
                Some(_) => format!("{corpus}, tuned on"),
                None => corpus.to_owned(),
            },
            source: source
                .filter(|_| is_labelled)
                .unwrap_or_else(|| "own".to_owned()),
            class,
            kind,
            definition,
        });
    }
    Ok(())
}

fn tools(definitions: &[Value]) -> ServerTools {
    ServerTools::from_pages(
        &ServerName::from("s"),
        &[SharedJson::from(&json!({ "tools": definitions }))],
        &ToolRules::default(),
        Reach::Other,
        Provenance::Live,
        ListLimits::default(),
    )
}

/// Whether a definition is flagged, or set aside for its characters.
fn is_flagged(sample: &Sample) -> bool {
    let tools = tools(std::slice::from_ref(&sample.definition));
    match tools.tools() {
        [tool] => !tools.flags(tool).is_empty(),
        _ => matches!(sample.kind, "instruction" | "evasive"),
    }
}

/// Nanoseconds per definition, without parsing.
fn speed(samples: &[Sample]) -> Value {
    let ordinary = samples.iter().filter(|sample| sample.kind == "ordinary");
    let definitions: Vec<Value> = ordinary
        .map(|sample| &sample.definition)
        .cycle()
        .take(TOOLS)
        .enumerate()
        .map(|(number, definition)| {
            let mut definition = definition.clone();
            definition["name"] = format!("tool_{number}").into();
            definition
        })
        .collect();
    let tools = tools(&definitions);
    let texts: Vec<String> = definitions.iter().map(Value::to_string).collect();
    let each = |action: &dyn Fn()| {
        let start = Instant::now();
        action();
        start.elapsed().as_secs_f64() * 1e9 / TOOLS as f64
    };
    let look = || {
        for tool in tools.tools() {
            black_box(tools.flags(tool));
        }
    };
    let parse = || {
        for text in &texts {
            black_box(serde_json::from_str::<Value>(text).is_ok());
        }
    };
    // The first run compiles the patterns.
    let first = each(&|| {
        black_box(tools.tools().first().map(|tool| tools.flags(tool)));
    }) * TOOLS as f64;
    let rounds: Vec<[f64; 2]> = (0..ROUNDS).map(|_| [each(&look), each(&parse)]).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    json!({"rounds": rounds, "bytes": bytes / TOOLS, "first": first})
}
