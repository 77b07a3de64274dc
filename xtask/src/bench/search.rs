//! Tool search against two search engines: builds and runs the measuring program, and reads its figures.

use serde_json::Value;

use super::{Bound, Held, Row, figures, held, middle, time};

/// Nanoseconds that a search among ten thousand tools may take.
const MOST_TO_SEARCH: f64 = 50_000.0;

/// Nanoseconds that replacing one server's tools among them may take.
const MOST_TO_UPDATE: f64 = 5_000_000.0;

/// Minimum share of needed tools among the first ten results: for the questions used during development, and on average
/// over the other sets.
const LEAST_SEEN: f64 = 0.7;
const LEAST_OTHERS: f64 = 0.825;

/// recall@1, @5 and @10.
type Recall = [f64; 3];

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
    rows.extend(recalls(&figures["recall"]));
    Ok(rows)
}

/// The shares of needed tools among the first one, five and ten results, per set and on average.
fn recalls(sets: &Value) -> Vec<Row> {
    let sets = sets.as_array().map_or(&[][..], Vec::as_slice);
    let Some((seen, others)) = sets.split_first() else {
        let why = "the query sets are not next to the repository";
        return vec![Row::not_measured("recall of tool search", why)];
    };
    let of = |set: &Value, name: &str| -> Recall {
        let recall = serde_json::from_value(set[name].clone());
        recall.unwrap_or([f64::NAN; 3])
    };
    let mut rows = vec![recall(
        set_name(seen),
        of(seen, "switchboard"),
        of(seen, "bm25"),
        Some(LEAST_SEEN),
    )];
    for set in others {
        let (ours, theirs) = (of(set, "switchboard"), of(set, "bm25"));
        rows.push(recall(set_name(set), ours, theirs, None));
    }
    let mean = |name: &str| -> Recall {
        let mut sums = [0.0; 3];
        for set in others {
            for (sum, value) in sums.iter_mut().zip(of(set, name)) {
                *sum += value;
            }
        }
        let count = f64::from(u32::try_from(others.len()).unwrap_or(u32::MAX));
        sums.map(|sum| sum / count)
    };
    let name = |what: &str| format!("the {} other sets, {what}", others.len());
    for (other, what) in [
        ("bm25", "against bm25"),
        ("tantivy", "against tantivy"),
        (
            "without",
            "against itself without tools for files to be written",
        ),
    ] {
        rows.push(recall(
            &name(what),
            mean("switchboard"),
            mean(other),
            Some(LEAST_OTHERS),
        ));
    }
    rows.push(recall(
        &format!(
            "{}, against itself without tools for files to be written",
            set_name(seen)
        ),
        of(seen, "switchboard"),
        of(seen, "without"),
        None,
    ));
    rows
}

fn set_name(set: &Value) -> &str {
    set["set"].as_str().unwrap_or_default()
}

fn recall(set: &str, ours: Recall, theirs: Recall, least: Option<f64>) -> Row {
    let show = |recall: Recall| recall.map(|share| format!("{share:.3}")).join(" / ");
    let ([.., ours_at_10], [.., theirs_at_10]) = (ours, theirs);
    Row {
        what: format!("recall@1 / @5 / @10: {set}"),
        ours: show(ours),
        theirs: show(theirs),
        ratio: format!("{:.2} ×", ours_at_10 / theirs_at_10),
        wanted: least.map_or_else(String::new, |least| format!("≥ {least}")),
        held: least.map_or(Held::Unbound, |least| held(ours_at_10 >= least)),
    }
}
