//! Tools that come back under another name.
//!
//! Rules are about names: a deny of `delete_all` says nothing of `remove_all`. So a server that drops a pinned tool and
//! lists the same one, or nearly the same one, under another name has changed that tool, and the new name is set aside
//! until a person approves it. The same goes for a second name for a tool that is still there.
//!
//! "Nearly the same" is judged by what the tool says and takes, never by its name. A wrong guess costs one approval.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use crate::catalog::canonical::canonical;
use crate::catalog::{CatalogTool, Part, ServerTools};
use crate::names::WireName;

/// So many comparisons of texts are made for one list. Exact twins are found by their hash beyond it.
const MAX_PAIRS: usize = 200_000;
/// The share of words that two descriptions have in common, from which on they count as one text that was edited.
const SAME_TEXT: f64 = 0.7;
/// The same, where the parameters are alike too.
const SIMILAR_TEXT: f64 = 0.45;
/// A description of fewer words says too little to tell two tools apart.
const FEW_WORDS: usize = 4;

/// Which of the `added` tools are pinned ones under another name: the new name, and the pinned one. `is_listed` says
/// whether the server still has a tool of that name, offered or not.
pub(super) fn renamed(
    pinned: &ServerTools,
    added: &[&CatalogTool],
    is_listed: impl Fn(&WireName) -> bool,
) -> Vec<(WireName, WireName)> {
    if added.is_empty() {
        return Vec::new();
    }
    let pins = pinned.tools().iter();
    let pins: Vec<(&CatalogTool, bool)> = pins
        .map(|pin| (pin, is_listed(&pin.reference().tool)))
        .collect();
    // Of twins the one that is gone is the likelier origin.
    let mut exact: BTreeMap<String, (&CatalogTool, bool)> = BTreeMap::new();
    for (pin, is_there) in &pins {
        let slot = exact.entry(form(pin)).or_insert((pin, *is_there));
        if slot.1 && !is_there {
            *slot = (pin, false);
        }
    }
    let gone: Vec<(&CatalogTool, Portrait)> = pins
        .iter()
        .filter(|(_, is_there)| !is_there)
        .map(|(pin, _)| (*pin, Portrait::of(pin)))
        .collect();
    let mut pairs = MAX_PAIRS;
    let mut found = Vec::new();
    for tool in added {
        let name = &tool.reference().tool;
        let origin = match exact.get(&form(tool)) {
            // Two tools that say nothing look alike without being one.
            Some((pin, is_there)) if !is_there || says_enough(tool) => Some(*pin),
            _ => {
                let portrait = Portrait::of(tool);
                let near = gone.iter().take(pairs);
                pairs = pairs.saturating_sub(gone.len());
                near.filter(|(_, pin)| portrait.is_like(pin))
                    .map(|(pin, _)| *pin)
                    .next()
            }
        };
        if let Some(origin) = origin {
            found.push((name.clone(), origin.reference().tool.clone()));
        }
    }
    found
}

/// What a tool says and takes, in one form; its name and title stay out.
fn form(tool: &CatalogTool) -> String {
    let definition = tool.definition().as_str();
    let mut form = String::new();
    for part in [Part::Description, Part::InputSchema, Part::OutputSchema] {
        if let Some(value) = part.of(definition) {
            form.push_str(part.name());
            form.push_str(&canonical(value.get()).unwrap_or_else(|| value.get().to_owned()));
        }
    }
    form
}

fn says_enough(tool: &CatalogTool) -> bool {
    Portrait::of(tool).words.len() >= FEW_WORDS
}

/// What two tools are compared by.
struct Portrait {
    words: HashSet<String>,
    parameters: BTreeSet<String>,
}

impl Portrait {
    fn of(tool: &CatalogTool) -> Self {
        let definition = tool.definition().as_str();
        let description = Part::Description.of(definition);
        let description = description
            .and_then(|text| serde_json::from_str::<String>(text.get()).ok())
            .unwrap_or_default();
        let words = description
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty());
        let schema = Part::InputSchema.of(definition);
        let schema: Option<Value> =
            schema.and_then(|schema| serde_json::from_str(schema.get()).ok());
        let parameters = schema.as_ref().and_then(|schema| schema.get("properties"));
        let parameters = parameters.and_then(Value::as_object);
        Self {
            words: words.map(str::to_lowercase).collect(),
            parameters: parameters
                .map(|parameters| parameters.keys().cloned().collect())
                .unwrap_or_default(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let common = self.words.intersection(&other.words).count();
        let all = self.words.len() + other.words.len() - common;
        if all < FEW_WORDS {
            // Next to no words: the parameters have to do, if there are enough of them.
            return self.words == other.words
                && self.parameters.len() >= 2
                && self.parameters == other.parameters;
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
        let share = common as f64 / all as f64;
        let takes_the_same = self.parameters == other.parameters;
        share >= SAME_TEXT || (takes_the_same && share >= SIMILAR_TEXT)
    }
}
