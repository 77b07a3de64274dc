//! Detects tools that reappear under another name.
//!
//! Rules match names: denying `delete_all` does not cover `remove_all`. So if a server drops a pinned tool and lists
//! the same or nearly the same one under another name, the new name is set aside until a user approves it. The same
//! applies to a second name for a tool that still exists.
//!
//! Similarity is judged by description and parameters, never by name. A false positive costs one approval.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use crate::catalog::canonical::canonical;
use crate::catalog::{CatalogTool, Part, ServerTools};
use crate::names::WireName;

/// The maximum number of text comparisons per list. Exact duplicates beyond it are still found by hash.
const MAX_PAIRS: usize = 200_000;
/// Two descriptions that share at least this fraction of their words count as edits of one text.
const SAME_TEXT: f64 = 0.7;
/// The threshold if the parameters are similar, too.
const SIMILAR_TEXT: f64 = 0.45;
/// A description with fewer words cannot distinguish two tools.
const FEW_WORDS: usize = 4;

/// Finds the `added` tools that are pinned under another name, as pairs of new and pinned name. `is_listed` returns
/// whether the server still lists a tool of that name, offered or not.
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
    // Among duplicates, one that is no longer listed is the likelier origin.
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
            // Two tools without descriptions look alike without being the same.
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

/// The canonical definition of a tool, without name and title.
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

/// The features by which two tools are compared.
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
            // Hardly any words: compare the parameters, if there are enough of them.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn portrait((words, parameters): (&str, &str)) -> Portrait {
        let split = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        Portrait {
            words: split(words).into_iter().collect(),
            parameters: split(parameters).into_iter().collect(),
        }
    }

    #[test]
    fn tools_are_alike_by_what_they_say_and_take() {
        let check = |one: (&str, &str), other: (&str, &str), expected: bool| {
            let (first, second) = (portrait(one), portrait(other));
            assert_eq!(first.is_like(&second), expected, "{one:?} {other:?}");
            assert_eq!(second.is_like(&first), expected, "{other:?} {one:?}");
        };
        // Next to no words: only with the same words and the same parameters, of which there are at least two.
        check(("copy it", "from to"), ("copy it", "from to"), true);
        check(("", "from to"), ("", "from to"), true);
        check(("copy it", "from"), ("copy it", "from"), false);
        check(("copy it", "from to"), ("copy it", "from into"), false);
        check(("copy it", "from to"), ("move it", "from to"), false);
        // Three of four words.
        check(("a b c", "x"), ("a b c d", "y"), true);
        // A text that was edited.
        let long = "deletes every file in the folder for good now";
        let edited = "deletes every file in the folder for good today";
        check((long, "x"), (edited, "y"), true);
        // Half of the words, which is enough only where the parameters are the same.
        check(("a b c d e f", "x"), ("a b c d g h", "x"), true);
        check(("a b c d e f", "x"), ("a b c d g h", "y"), false);
        check(("a b c d e f", "x"), ("a g h i j k", "x"), false);
    }
}
