//! Poisoned definitions: how many are flagged, by class and source, how many ordinary ones are, and at what cost.
//!
//! Builds and runs the counting program, prints the counts, and compares them with the goals.

#![expect(clippy::cast_precision_loss, reason = "counts are small")]

use serde_json::Value;

use super::{Bound, Held, Row, figures, held, time};

/// Minimum share flagged of definitions with instructions for the model, per corpus.
const LEAST_INSTRUCTIONS: f64 = 0.85;

/// Maximum share flagged of ordinary definitions.
const MOST_ORDINARY: f64 = 0.005;

/// Maximum share flagged of harmless definitions that share words with poisoned ones.
const MOST_HARD: f64 = 0.2;

/// Maximum time per definition, as a multiple of parsing it.
const MOST_TIMES_PARSING: f64 = 40.0;

pub(super) fn rows(_rounds: u32) -> Result<Vec<Row>, String> {
    let figures = figures("bench-poison", &[])?;
    let counts: Vec<Count> = figures["counts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(Count::from)
        .collect();
    print(&counts);
    let mut rows: Vec<Row> = figures["missing"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|corpus| Row::not_measured(corpus, "it is not next to the repository"))
        .collect();
    rows.extend(goals(&counts));
    let speed = &figures["speed"];
    let rounds: Vec<(f64, f64)> = speed["rounds"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|round| (nanoseconds(&round[0]), nanoseconds(&round[1])))
        .collect();
    let what = format!(
        "scan one of 10,000 ordinary definitions ({} bytes each), against parsing it",
        speed["bytes"]
    );
    rows.push(Row::times(what, &rounds, Bound::AtMost(MOST_TIMES_PARSING)));
    rows.push(Row {
        what: "the first definition, with all patterns to compile".to_owned(),
        ours: time(nanoseconds(&speed["first"])),
        theirs: String::new(),
        ratio: String::new(),
        wanted: String::new(),
        held: Held::Unbound,
    });
    Ok(rows)
}

fn nanoseconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Definitions of one class from one source.
struct Count {
    kind: String,
    corpus: String,
    source: String,
    class: String,
    flagged: u64,
    all: u64,
}

impl From<&Value> for Count {
    fn from(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| value[name].as_u64().unwrap_or_default();
        Self {
            kind: text("kind"),
            corpus: text("corpus"),
            source: text("source"),
            class: text("class"),
            flagged: number("flagged"),
            all: number("all"),
        }
    }
}

fn print(counts: &[Count]) {
    println!(
        "\n| kind | corpus | source | class | flagged | of | |\n|---|---|---|---|---:|---:|---:|"
    );
    for count in counts {
        let Count {
            kind,
            corpus,
            source,
            class,
            flagged,
            all,
        } = count;
        let share = percent(*flagged, *all);
        println!("| {kind} | {corpus} | {source} | {class} | {flagged} | {all} | {share} |");
    }
}

/// One row per kind and corpus.
fn goals(counts: &[Count]) -> Vec<Row> {
    let mut sums: Vec<(&str, &str, u64, u64)> = Vec::new();
    for count in counts {
        match sums.last_mut() {
            Some((kind, corpus, flagged, all))
                if *kind == count.kind && *corpus == count.corpus =>
            {
                *flagged += count.flagged;
                *all += count.all;
            }
            _ => sums.push((&count.kind, &count.corpus, count.flagged, count.all)),
        }
    }
    sums.into_iter()
        .map(|(kind, corpus, flagged, all)| {
            let share = flagged as f64 / all as f64;
            let (wanted, held) = match kind {
                "instruction" => (
                    format!("≥ {} %", LEAST_INSTRUCTIONS * 100.0),
                    held(share >= LEAST_INSTRUCTIONS),
                ),
                "ordinary" => (
                    format!("≤ {} %", MOST_ORDINARY * 100.0),
                    held(share <= MOST_ORDINARY),
                ),
                "hard negative" => (
                    format!("≤ {} %", MOST_HARD * 100.0),
                    held(share <= MOST_HARD),
                ),
                _ => (String::new(), Held::Unbound),
            };
            Row {
                what: format!("flagged: {kind} ({corpus})"),
                ours: format!("{flagged} of {all}"),
                theirs: String::new(),
                ratio: percent(flagged, all),
                wanted,
                held,
            }
        })
        .collect()
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / all as f64)
}
