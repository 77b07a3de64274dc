//! Repairs a parsed schema, keyword by keyword.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::vocabulary::{
    LISTS, MAPS, SINGLES, alias, anchors, excerpt, has_hidden_names, holds_schemas, is_count, kind,
    neutralise, wrong,
};
use super::{
    EMPTY, Examined, MAX_BYTES, MAX_DEPTH, Remedy, Repaired, SchemaFinding, SchemaProblem, combine,
    is_property_name,
};
use crate::json::SharedJson;

/// Maximum number of findings; the rest are dropped.
const MAX_FINDINGS: usize = 100;

/// Maximum number of passes. Each removes targets of earlier references; more passes suggest a hostile schema.
const MAX_ROUNDS: usize = 4;

/// Checks and repairs a schema.
pub(super) fn repair(schema: &str) -> Examined {
    let (value, findings) = run(schema);
    if let Some(refused) = findings
        .iter()
        .find(|finding| finding.remedy == Remedy::SetAside)
    {
        return Examined::Refused(refused.clone());
    }
    if findings.is_empty() {
        return Examined::Fine;
    }
    Examined::Repaired(Repaired {
        schema: SharedJson::from(&value),
        findings,
    })
}

/// Returns all findings, including those that refuse the schema.
pub(super) fn findings(schema: &str) -> Vec<SchemaFinding> {
    run(schema).1
}

fn run(schema: &str) -> (Value, Vec<SchemaFinding>) {
    let mut repairer = Repairer::default();
    if schema.len() > MAX_BYTES {
        repairer.refuse(SchemaProblem::TooLarge);
        return (Value::Null, repairer.findings);
    }
    let Ok(mut value) = serde_json::from_str::<Value>(schema) else {
        repairer.refuse(SchemaProblem::Unreadable);
        return (Value::Null, repairer.findings);
    };
    // A removed part may be the target of a reference, so the result is checked again.
    for _ in 0..MAX_ROUNDS {
        repairer.is_changed = false;
        repairer.anchors = anchors(&value);
        repairer.root(&mut value);
        let is_refused = repairer
            .findings
            .iter()
            .any(|finding| finding.remedy == Remedy::SetAside);
        if !repairer.is_changed || is_refused {
            return (value, repairer.findings);
        }
    }
    repairer.refuse(SchemaProblem::Unreadable);
    (value, repairer.findings)
}

#[derive(Default)]
struct Repairer {
    path: String,
    findings: Vec<SchemaFinding>,
    /// Anchors that `#name` may refer to.
    anchors: HashSet<String>,
    /// Copy of the root, for resolving local references.
    document: Value,
    depth: usize,
    /// Whether this pass has found anything.
    is_changed: bool,
    hidden_reported: bool,
}

impl Repairer {
    fn root(&mut self, schema: &mut Value) {
        match schema {
            Value::Object(_) => {}
            Value::Bool(false) => return self.refuse(SchemaProblem::AcceptsNothing),
            other => {
                self.repaired(match &*other {
                    Value::Bool(_) => SchemaProblem::RootType,
                    other => SchemaProblem::NoSchema(kind(other)),
                });
                *other = serde_json::from_str(EMPTY).unwrap_or_default();
                return;
            }
        }
        self.document = schema.clone();
        if let Value::Object(root) = schema {
            self.root_reference(root);
            self.root_type(root);
            for keyword in ["allOf", "anyOf", "oneOf"] {
                if combine::flatten(root, keyword, &self.document) {
                    self.repaired(SchemaProblem::RootCombinator(keyword));
                }
            }
        }
        self.schema(schema);
        if has_hidden_names(schema) {
            self.refuse(SchemaProblem::HiddenCharacters);
        }
    }

    /// Replaces a root `$ref` by its target.
    fn root_reference(&mut self, root: &mut Map<String, Value>) {
        let Some(reference) = root.get("$ref").and_then(Value::as_str).map(str::to_owned) else {
            return;
        };
        match combine::root_reference(root, &self.document) {
            Some(mut target) => {
                for (name, value) in root.iter().filter(|(name, _)| *name != "$ref") {
                    target.entry(name.clone()).or_insert_with(|| value.clone());
                }
                *root = target;
                self.repaired(SchemaProblem::RootType);
            }
            // The ordinary check reports unresolvable references; a cycle resolves there and is handled here.
            None if self.resolves(&reference) => {
                root.remove("$ref");
                self.repaired(SchemaProblem::DanglingReference(excerpt(&reference)));
            }
            None => {}
        }
    }

    fn root_type(&mut self, root: &mut Map<String, Value>) {
        let is_object = |name: &Value| name.as_str() == Some("object");
        match root.get("type") {
            Some(declared) if is_object(declared) => return,
            None | Some(Value::Null) => self.repaired(SchemaProblem::RootType),
            Some(Value::Array(names)) if names.is_empty() || names.iter().any(is_object) => {
                self.repaired(SchemaProblem::RootType);
            }
            Some(Value::String(name)) if alias(name) == Some("object") || name.is_empty() => {
                self.repaired(SchemaProblem::RootType);
            }
            Some(declared) => {
                let declared = excerpt(&declared.to_string());
                return self.refuse(SchemaProblem::NotAnObject(declared));
            }
        }
        root.insert("type".to_owned(), json!("object"));
    }

    /// Repairs a schema below the root, or the root once it is an object.
    fn schema(&mut self, schema: &mut Value) {
        match schema {
            Value::Object(members) => {
                if self.depth > MAX_DEPTH && !members.is_empty() {
                    members.clear();
                    return self.repaired(SchemaProblem::TooDeep);
                }
                self.depth += 1;
                self.object(members);
                self.depth -= 1;
            }
            Value::Bool(_) => {}
            Value::String(name) if alias(name).is_some() => {
                let named = alias(name);
                *schema = json!({"type": named});
                self.repaired(SchemaProblem::NoSchema("a string"));
            }
            other => {
                self.repaired(SchemaProblem::NoSchema(kind(other)));
                *other = json!({});
            }
        }
    }

    fn object(&mut self, members: &mut Map<String, Value>) {
        self.references(members);
        self.types(members);
        self.keywords(members);
        self.required(members);
        self.properties(members);
        self.items(members);
        for keyword in MAPS {
            self.map_of_schemas(members, keyword);
        }
        for keyword in LISTS {
            self.list_of_schemas(members, keyword);
        }
        for keyword in SINGLES {
            if let Some(value) = members.get_mut(keyword) {
                self.within(keyword, |repairer| repairer.schema(value));
            }
        }
        self.texts(members);
    }

    fn references(&mut self, members: &mut Map<String, Value>) {
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let problem = match members.get(keyword) {
                None => continue,
                Some(Value::String(target)) if self.resolves(target) => continue,
                Some(Value::String(target)) if target.starts_with('#') => {
                    SchemaProblem::DanglingReference(excerpt(target))
                }
                Some(Value::String(target)) => SchemaProblem::RemoteReference(excerpt(target)),
                Some(_) => wrong(keyword, "a string"),
            };
            members.remove(keyword);
            self.within(keyword, |repairer| repairer.repaired(problem));
        }
    }

    fn resolves(&self, target: &str) -> bool {
        match target.strip_prefix('#') {
            Some("") => true,
            Some(pointer) if pointer.starts_with('/') => {
                combine::resolve(&self.document, target).is_some()
            }
            Some(anchor) => self.anchors.contains(anchor),
            None => false,
        }
    }

    fn types(&mut self, members: &mut Map<String, Value>) {
        let Some(declared) = members.get_mut("type") else {
            return;
        };
        let mut unknown = None;
        let mut known = |name: &Value| {
            let known = name.as_str().and_then(alias);
            if known.is_none() || known != name.as_str() {
                unknown = Some(excerpt(&name.to_string()));
            }
            known
        };
        let repaired = match &*declared {
            Value::String(_) => known(declared).map(|name| json!(name)),
            Value::Array(names) => {
                let mut known_names: Vec<&str> = Vec::new();
                for name in names.iter().filter_map(&mut known) {
                    if !known_names.contains(&name) {
                        known_names.push(name);
                    }
                }
                if known_names.len() != names.len() && unknown.is_none() {
                    unknown = Some("twice".to_owned());
                }
                match known_names.as_slice() {
                    [] => None,
                    _ => Some(json!(known_names)),
                }
            }
            _ => known(declared).map(|name| json!(name)),
        };
        let is_changed = repaired.as_ref() != Some(declared);
        match repaired {
            Some(repaired) => *declared = repaired,
            None => {
                members.remove("type");
            }
        }
        if is_changed {
            let name = unknown.unwrap_or_else(|| "[]".to_owned());
            self.within("type", |repairer| {
                repairer.repaired(SchemaProblem::UnknownType(name));
            });
        }
    }

    /// Removes keywords whose plain value has the wrong type.
    fn keywords(&mut self, members: &mut Map<String, Value>) {
        members.retain(|name, value| {
            let (is_right, expected) = match name.as_str() {
                "description" | "title" | "$comment" | "format" | "pattern" | "$schema" | "$id"
                | "$anchor" | "contentEncoding" | "contentMediaType" => {
                    (value.is_string(), "a string")
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                    (value.is_number(), "a number")
                }
                "multipleOf" => (
                    value.as_f64().is_some_and(|value| value > 0.0),
                    "a positive number",
                ),
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" | "minContains" | "maxContains" => {
                    (is_count(value), "a non-negative integer")
                }
                "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => {
                    (value.is_boolean(), "true or false")
                }
                "enum" => (
                    value.as_array().is_some_and(|values| !values.is_empty()),
                    "a non-empty array",
                ),
                "examples" => (value.is_array(), "an array"),
                _ => (true, ""),
            };
            if !is_right {
                let problem = wrong(name, expected);
                self.within(name, |repairer| repairer.repaired(problem));
            }
            is_right
        });
    }

    fn required(&mut self, members: &mut Map<String, Value>) {
        let Some(required) = members.get_mut("required") else {
            return;
        };
        let Value::Array(names) = required else {
            members.remove("required");
            return self.within("required", |repairer| {
                repairer.repaired(wrong("required", "an array of strings"));
            });
        };
        let before = names.len();
        let mut seen = HashSet::new();
        names.retain(|name| {
            name.as_str()
                .is_some_and(|name| seen.insert(name.to_owned()))
        });
        if names.len() != before {
            self.within("required", |repairer| {
                repairer.repaired(wrong("required", "an array of unique strings"));
            });
        }
    }

    fn properties(&mut self, members: &mut Map<String, Value>) {
        let required: HashSet<String> = members
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let Some(properties) = members.get_mut("properties") else {
            return;
        };
        let Value::Object(properties) = properties else {
            members.insert("properties".to_owned(), json!({}));
            return self.within("properties", |repairer| {
                repairer.repaired(wrong("properties", "an object"));
            });
        };
        self.within("properties", |repairer| {
            properties.retain(|name, schema| {
                let is_named = is_property_name(name);
                let required = required.contains(name);
                if is_named {
                    repairer.within(name, |repairer| repairer.schema(schema));
                } else {
                    let name = excerpt(name);
                    let problem = SchemaProblem::PropertyName { name, required };
                    // A call needs it at the root. Below the root, the enclosing object may be omitted.
                    if required && repairer.depth == 1 {
                        repairer.refuse(problem);
                    } else {
                        repairer.repaired(problem);
                    }
                }
                is_named
            });
        });
        if let Some(Value::Array(names)) = members.get_mut("required") {
            names.retain(|name| name.as_str().is_some_and(is_property_name));
        }
    }

    fn items(&mut self, members: &mut Map<String, Value>) {
        if let Some(Value::Array(_)) = members.get("items") {
            // Older form of `prefixItems`.
            if let Some(items) = members.remove("items") {
                members.entry("prefixItems").or_insert(items);
            }
            if let Some(rest) = members.remove("additionalItems") {
                members.insert("items".to_owned(), rest);
            }
            self.within("items", |repairer| {
                repairer.repaired(wrong("items", "one schema"));
            });
        }
        if let Some(items) = members.get_mut("items") {
            self.within("items", |repairer| repairer.schema(items));
            return;
        }
        let names_array = match members.get("type") {
            Some(Value::String(name)) => name == "array",
            Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
            _ => false,
        };
        if names_array && !members.contains_key("prefixItems") {
            members.insert("items".to_owned(), json!({}));
            self.repaired(SchemaProblem::ArrayWithoutItems);
        }
    }

    fn map_of_schemas(&mut self, members: &mut Map<String, Value>, keyword: &'static str) {
        match members.get_mut(keyword) {
            None => {}
            Some(Value::Object(schemas)) => self.within(keyword, |repairer| {
                for (name, schema) in schemas.iter_mut() {
                    repairer.within(name, |repairer| repairer.schema(schema));
                }
            }),
            Some(_) => {
                members.remove(keyword);
                self.within(keyword, |repairer| {
                    repairer.repaired(wrong(keyword, "an object"));
                });
            }
        }
    }

    fn list_of_schemas(&mut self, members: &mut Map<String, Value>, keyword: &'static str) {
        match members.get_mut(keyword) {
            None => {}
            Some(Value::Array(schemas)) if !schemas.is_empty() => {
                self.within(keyword, |repairer| {
                    for (index, schema) in schemas.iter_mut().enumerate() {
                        repairer.within(&index.to_string(), |repairer| repairer.schema(schema));
                    }
                });
            }
            Some(_) => {
                members.remove(keyword);
                self.within(keyword, |repairer| {
                    repairer.repaired(wrong(keyword, "a non-empty array of schemas"));
                });
            }
        }
    }

    /// Sanitizes texts for the model. Names stay unchanged: calls use them.
    fn texts(&mut self, members: &mut Map<String, Value>) {
        for (keyword, value) in members
            .iter_mut()
            .filter(|(keyword, _)| !holds_schemas(keyword))
        {
            if !neutralise(value) {
                continue;
            }
            self.is_changed = true;
            if !std::mem::replace(&mut self.hidden_reported, true) {
                self.within(keyword, |repairer| {
                    repairer.repaired(SchemaProblem::HiddenCharacters);
                });
            }
        }
    }

    fn repaired(&mut self, problem: SchemaProblem) {
        self.record(problem, Remedy::Repaired);
    }

    fn refuse(&mut self, problem: SchemaProblem) {
        self.record(problem, Remedy::SetAside);
    }

    fn record(&mut self, problem: SchemaProblem, remedy: Remedy) {
        self.is_changed = true;
        if self.findings.len() < MAX_FINDINGS || remedy == Remedy::SetAside {
            self.findings.push(SchemaFinding {
                path: self.path.clone(),
                problem,
                remedy,
            });
        }
    }

    fn within(&mut self, key: &str, inner: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path
            .push_str(&key.replace('~', "~0").replace('/', "~1"));
        inner(self);
        self.path.truncate(length);
    }
}
