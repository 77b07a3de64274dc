//! Compares the types with every revision's `schema.json`: no field missing, required too strictly or invented, and no
//! definition omitted.
//!
//! The schemas are not part of the repository; without them the test is skipped.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod tables;

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Map, Value};
use switchboard_protocol::{Method, Revision};
use switchboard_test::shared::protocol_data;

use tables::{ENUMS, EXTENSIONS, NOT_TYPES, OPAQUE, STRICTER, TYPES};

#[test]
fn types_agree_with_every_schema() {
    let Some(schemas) = schemas() else { return };
    let mut complaints = Vec::new();
    for (revision, definitions) in &schemas {
        for (path, fields) in TYPES {
            let Some(object) = object_at(definitions, path) else {
                continue;
            };
            for (property, schema) in &object.properties {
                if !fields.iter().any(|field| field.name == property) {
                    complaints.push(format!("{revision} {path}: no field for `{property}`"));
                }
                let inner = format!("{path}.{property}");
                let is_object = schema
                    .get("properties")
                    .and_then(Value::as_object)
                    .is_some_and(|properties| !properties.is_empty());
                let known = TYPES.iter().any(|(path, _)| *path == inner)
                    || OPAQUE.iter().any(|(name, _)| name == property);
                if is_object && !known {
                    complaints.push(format!("{revision} {inner}: an unmapped object"));
                }
            }
            for field in fields.iter().filter(|field| field.required) {
                let optional = object.properties.contains_key(field.name)
                    && !object.required.contains(field.name);
                let excused = STRICTER
                    .iter()
                    .any(|(at, name, _)| at == path && *name == field.name);
                if optional && !excused {
                    complaints.push(format!(
                        "{revision} {path}: `{}` is optional there and required here",
                        field.name
                    ));
                }
            }
        }
    }
    assert_eq!(complaints, Vec::<String>::new());
}

#[test]
fn every_field_is_in_some_schema() {
    let Some(schemas) = schemas() else { return };
    let mut complaints = Vec::new();
    // A type used in several places must have each field in at least one of them.
    for (path, fields) in TYPES {
        let places = TYPES.iter().filter(|(_, other)| other == fields);
        let names: Vec<&str> = places.clone().map(|(place, _)| *place).collect();
        let seen: BTreeSet<String> = names
            .iter()
            .flat_map(|place| schemas.iter().map(move |(_, defs)| object_at(defs, place)))
            .flatten()
            .flat_map(|object| object.properties.into_iter().map(|(name, _)| name))
            .collect();
        for field in *fields {
            let excused = EXTENSIONS
                .iter()
                .any(|(at, name, _)| names.contains(at) && *name == field.name);
            if !seen.contains(field.name) && !excused {
                complaints.push(format!("{path}: `{}` is in no schema", field.name));
            }
            if seen.contains(field.name) && excused {
                complaints.push(format!("{path}: `{}` needs no excuse", field.name));
            }
        }
    }
    assert_eq!(complaints, Vec::<String>::new());
}

#[test]
fn every_definition_has_a_place() {
    let Some(schemas) = schemas() else { return };
    let mut complaints = Vec::new();
    for (revision, definitions) in &schemas {
        for (name, definition) in definitions {
            let listed = TYPES.iter().any(|(path, _)| path == name)
                || ENUMS.iter().any(|(path, _)| path == name)
                || NOT_TYPES.iter().any(|(known, _)| known == name);
            if !listed && !is_known_message(name, definition) {
                complaints.push(format!(
                    "{revision} {name}: no type, and no reason for none"
                ));
            }
        }
    }
    for (path, _) in TYPES {
        if !schemas
            .iter()
            .any(|(_, defs)| object_at(defs, path).is_some())
        {
            complaints.push(format!("{path}: in no schema"));
        }
    }
    for (name, _) in NOT_TYPES {
        if !schemas.iter().any(|(_, defs)| defs.contains_key(*name)) {
            complaints.push(format!("{name}: in no schema"));
        }
    }
    assert_eq!(complaints, Vec::<String>::new());
}

#[test]
fn strings_out_of_a_set_agree_with_every_schema() {
    let Some(schemas) = schemas() else { return };
    let mut compared = 0;
    for (revision, definitions) in &schemas {
        for (path, values) in ENUMS {
            let Some(schema) = schema_at(definitions, path) else {
                continue;
            };
            let Some(listed) = schema.get("enum").and_then(Value::as_array) else {
                continue;
            };
            let theirs: BTreeSet<&str> = listed.iter().filter_map(Value::as_str).collect();
            let ours: BTreeSet<&str> = values.iter().copied().collect();
            assert_eq!(ours, theirs, "{revision} {path}");
            compared += 1;
        }
    }
    assert!(
        compared >= ENUMS.len(),
        "only {compared} sets were compared"
    );
}

/// A complete message whose method is known, or whose result is a type.
fn is_known_message(name: &str, definition: &Value) -> bool {
    let method = definition
        .pointer("/properties/method/const")
        .and_then(Value::as_str);
    if let Some(method) = method {
        return Method::from_name(method).is_some();
    }
    name.strip_suffix("Response")
        .is_some_and(|result| TYPES.iter().any(|(path, _)| *path == result))
}

struct Object {
    properties: Map<String, Value>,
    required: BTreeSet<String>,
}

/// The object schema at `path`, with everything it inherits.
fn object_at(definitions: &Map<String, Value>, path: &str) -> Option<Object> {
    let mut object = Object {
        properties: Map::new(),
        required: BTreeSet::new(),
    };
    collect(definitions, schema_at(definitions, path)?, &mut object);
    (!object.properties.is_empty()).then_some(object)
}

fn schema_at<'d>(definitions: &'d Map<String, Value>, path: &str) -> Option<&'d Value> {
    let mut steps = path.split('.');
    let mut schema = definitions.get(steps.next()?)?;
    for step in steps {
        let parts = schema.get("allOf").and_then(Value::as_array);
        schema = std::iter::once(schema)
            .chain(parts.into_iter().flatten())
            .find_map(|part| part.get("properties")?.get(step))?;
    }
    Some(schema)
}

fn collect(definitions: &Map<String, Value>, schema: &Value, object: &mut Object) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().expect("a name");
        collect(definitions, &definitions[name], object);
    }
    for part in schema
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        collect(definitions, part, object);
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        object.properties.extend(properties.clone());
    }
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        object.required.insert(name.to_owned());
    }
}

type Schemas = Vec<(Revision, Map<String, Value>)>;

fn schemas() -> Option<Schemas> {
    let read = |revision: Revision| {
        let folder = protocol_data(revision.as_str())?;
        let text = fs::read_to_string(folder.join("schema.json")).expect("a schema");
        let Value::Object(mut schema) = serde_json::from_str(&text).expect("JSON") else {
            panic!("{revision}: a schema is an object");
        };
        let definitions = schema
            .remove("$defs")
            .or_else(|| schema.remove("definitions"));
        let Some(Value::Object(definitions)) = definitions else {
            panic!("{revision}: a schema has definitions");
        };
        Some((revision, definitions))
    };
    Revision::ALL.into_iter().map(read).collect()
}
