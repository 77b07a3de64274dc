//! Flattens combinators at the root, which providers reject, into one plain object schema.
//!
//! `allOf` becomes the union of its parts with all their required properties; `anyOf` and `oneOf` become the union of
//! their alternatives with the properties required by all of them, plus a sentence for the model about which arguments
//! belong together. The result is never stricter than the original.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Maximum number of alternatives listed in the sentence.
const MAX_TOLD: usize = 8;

/// Maximum number of alternatives whose properties are merged.
const MAX_PARTS: usize = 64;

/// Maximum length of a chain of local references.
const MAX_HOPS: usize = 8;

/// Replaces the combinator; returns whether it was present.
pub(super) fn flatten(root: &mut Map<String, Value>, keyword: &str, document: &Value) -> bool {
    let Some(combined) = root.remove(keyword) else {
        return false;
    };
    let parts: Vec<&Map<String, Value>> = combined
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| follow(part, document))
        .collect();
    let mut properties = match root.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let own: BTreeSet<String> = properties.keys().cloned().collect();
    for part in parts.iter().take(MAX_PARTS) {
        for (name, schema) in part
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            match properties.get(name) {
                None => {
                    properties.insert(name.clone(), schema.clone());
                }
                // Two alternatives define the property differently: accept both.
                Some(other) if other != schema && !own.contains(name) => {
                    let both = either(other, schema);
                    properties.insert(name.clone(), both);
                }
                Some(_) => {}
            }
        }
    }
    let groups: Vec<BTreeSet<&str>> = parts.iter().map(|part| required(part)).collect();
    let mut needed: BTreeSet<String> = required(root).into_iter().map(str::to_owned).collect();
    if keyword == "allOf" {
        needed.extend(groups.iter().flatten().map(|name| (*name).to_owned()));
    } else {
        let mut groups = groups.iter();
        if let Some(first) = groups.next() {
            let common = groups.fold(first.clone(), |common, group| &common & group);
            needed.extend(common.into_iter().map(str::to_owned));
        }
        tell(root, keyword, &parts);
    }
    // A property that one part forbids may be required by another.
    if parts.iter().any(|part| part.contains_key("properties")) {
        root.remove("additionalProperties");
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    if !needed.is_empty() {
        root.insert("required".to_owned(), json!(needed));
    }
    true
}

/// Returns the target of a local reference at the root, if it is an object schema.
pub(super) fn root_reference(
    root: &Map<String, Value>,
    document: &Value,
) -> Option<Map<String, Value>> {
    let target = root.get("$ref")?.as_str()?;
    let target = follow(resolve(document, target)?, document)?;
    let mut target = target.clone();
    target.remove("$ref");
    (target.get("type").is_none_or(|name| name == "object")).then_some(target)
}

/// Resolves a local reference.
pub(super) fn resolve<'v>(document: &'v Value, target: &str) -> Option<&'v Value> {
    let pointer = target.strip_prefix('#')?;
    document.pointer(pointer).or_else(|| {
        let decoded = percent_decoded(pointer)?;
        document.pointer(&decoded)
    })
}

fn follow<'v>(part: &'v Value, document: &'v Value) -> Option<&'v Map<String, Value>> {
    let mut part = part.as_object()?;
    for _ in 0..MAX_HOPS {
        let Some(target) = part.get("$ref").and_then(Value::as_str) else {
            return Some(part);
        };
        part = resolve(document, target)?.as_object()?;
    }
    None
}

fn required(schema: &Map<String, Value>) -> BTreeSet<&str> {
    schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn either(one: &Value, other: &Value) -> Value {
    match one.get("anyOf").and_then(Value::as_array) {
        Some(known) if one.as_object().is_some_and(|one| one.len() == 1) => {
            if known.contains(other) {
                return one.clone();
            }
            let mut all = known.clone();
            all.push(other.clone());
            json!({"anyOf": all})
        }
        _ => json!({"anyOf": [one, other]}),
    }
}

fn tell(root: &mut Map<String, Value>, keyword: &str, parts: &[&Map<String, Value>]) {
    let groups: Vec<String> = parts
        .iter()
        .map(|part| required(part).into_iter().collect::<Vec<_>>().join(", "))
        .filter(|group| !group.is_empty())
        .take(MAX_TOLD)
        .map(|group| format!("({group})"))
        .collect();
    if groups.len() < 2 {
        return;
    }
    let how_many = if keyword == "oneOf" {
        "exactly one"
    } else {
        "at least one"
    };
    let sentence = format!(
        "Give {how_many} of these groups of arguments: {}.",
        groups.join(" or ")
    );
    let described = match root.get("description").and_then(Value::as_str) {
        Some(description) => format!("{description} {sentence}"),
        None => sentence,
    };
    root.insert("description".to_owned(), Value::String(described));
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
