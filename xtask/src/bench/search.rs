//! Tool search, beside two search engines in one process: this builds and runs the program, and reads its figures.

use serde_json::Value;

use super::{Bound, Row, figures, held, middle, time};

/// Nanoseconds that a search among ten thousand tools may take.
const MOST_TO_SEARCH: f64 = 100_000.0;

/// Nanoseconds that it may take to replace the tools of one server among them.
const MOST_TO_UPDATE: f64 = 5_000_000.0;

/// The share of the needed tools that must be among the first ten results.
const LEAST_RECALL: f64 = 0.55;

pub(super) fn rows() -> Result<Vec<Row>, String> {
    let figures = figures("bench-search", &["search-engines"])?;
    let times = |name: &str| -> Vec<f64> {
        let times = figures["search"][name].as_array();
        times
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .collect()
    };
    let ours = times("switchboard");
    let against = |name: &str| {
        let rounds: Vec<(f64, f64)> = ours.iter().copied().zip(times(name)).collect();
        let what = format!("search 10,000 tools with whole questions, against {name}");
        Row::times(what, &rounds, Bound::None)
    };
    let mut rows = vec![
        Row::figure(
            "search 10,000 tools with whole questions, median",
            middle(ours.iter().copied()),
            None,
            MOST_TO_SEARCH,
            time,
        ),
        against("tantivy"),
        against("bm25"),
        Row::figure(
            "replace the tools of one server among 10,000",
            figures["update"].as_f64().unwrap_or(f64::INFINITY),
            None,
            MOST_TO_UPDATE,
            time,
        ),
    ];
    rows.extend(["tantivy", "bm25"].map(|name| recall(&figures["recall"], name)));
    Ok(rows)
}

/// The share of needed tools among the first ten, beside that of another engine.
fn recall(recall: &Value, name: &str) -> Row {
    let what = format!("recall@10 of whole questions, against {name}");
    let of = |name: &str| recall[name].as_f64();
    let (Some(ours), Some(theirs)) = (of("switchboard"), of(name)) else {
        return Row::not_measured(what, "the data does not lie beside the repository");
    };
    Row {
        what,
        ours: format!("{ours:.3}"),
        theirs: format!("{theirs:.3}"),
        ratio: format!("{:.2} ×", ours / theirs),
        wanted: format!("≥ {LEAST_RECALL}"),
        held: held(ours >= LEAST_RECALL),
    }
}
