//! Generates the JSON Schema of our files, from the key tables used for decoding.

use serde_json::{Map, Value, json};

use crate::document::ROOT_KEYS;
use crate::entry::keys::{KEYS, Key, Shape};
use crate::policy::{ArgumentTest, HOOK_KEYS, RULE_KEYS};
use crate::settings;

/// The schema of a configuration file (JSON Schema 2020-12).
pub fn schema() -> Value {
    let mut properties = properties(ROOT_KEYS);
    // Spelling in JSON files of other tools.
    properties.insert(
        "mcpServers".to_owned(),
        json!({ "$ref": "#/properties/mcp_servers" }),
    );
    properties.insert("$schema".to_owned(), json!({ "type": "string" }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Switchboard configuration",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "$defs": { "server": server() },
    })
}

fn server() -> Value {
    let keys: Vec<Key> = KEYS.iter().map(|(_, key)| *key).collect();
    let mut properties = properties(&keys);
    let aliases = [
        (
            "type",
            json!({ "$ref": "#/$defs/server/properties/transport" }),
        ),
        (
            "program",
            json!({ "$ref": "#/$defs/server/properties/command" }),
        ),
        (
            "environment",
            json!({ "$ref": "#/$defs/server/properties/env" }),
        ),
        (
            "name",
            json!({ "type": "string", "description": "The server's name, where servers are a list." }),
        ),
        (
            "description",
            json!({ "type": "string", "description": "A note for people." }),
        ),
        (
            "disabled",
            json!({ "type": "boolean", "description": "The opposite of `enabled`." }),
        ),
        (
            "timeout",
            json!({ "type": "number", "exclusiveMinimum": 0, "description": "`tool_timeout_sec` in milliseconds, as other tools write it." }),
        ),
    ];
    properties.extend(aliases.map(|(name, schema)| (name.to_owned(), schema)));
    let needs = |key: &str| json!({ "required": [key] });
    json!({
        "type": "object",
        "properties": properties,
        // Either a program or a URL; an in-process server has neither.
        "anyOf": [
            needs("command"), needs("program"), needs("url"),
            { "required": ["transport"], "properties": { "transport": { "const": "sdk" } } },
            { "required": ["type"], "properties": { "type": { "const": "sdk" } } },
        ],
    })
}

fn properties(keys: &[Key]) -> Map<String, Value> {
    keys.iter()
        .map(|key| (key.name.to_owned(), described(shape(key.shape), key.about)))
        .collect()
}

fn table(keys: &[Key]) -> Value {
    json!({ "type": "object", "properties": properties(keys), "additionalProperties": false })
}

fn shape(shape: Shape) -> Value {
    match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::TextList => json!({ "type": "array", "items": { "type": "string" } }),
        Shape::TextMap => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Seconds => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Shape::Count => json!({ "type": "integer", "minimum": 1 }),
        Shape::Factor => json!({ "type": "number", "minimum": 1, "maximum": 1000 }),
        Shape::Window => {
            json!({ "anyOf": [{ "const": "auto" }, { "type": "integer", "minimum": 1024 }] })
        }
        Shape::Port => json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
        Shape::ToolSearch => {
            json!({ "type": ["string", "boolean"], "pattern": "^(auto(:[0-9]{1,3})?|on|off|true|false)$" })
        }
        Shape::OneOf(words) => json!({ "enum": words }),
        Shape::Command => json!({ "type": ["string", "array"], "items": { "type": "string" } }),
        Shape::Table(keys) => table(keys),
        Shape::MapOf(keys) => json!({ "type": "object", "additionalProperties": table(keys) }),
        Shape::WordOrTable(words, keys) => json!({ "anyOf": [{ "enum": words }, table(keys)] }),
        Shape::WordOrList(words) => json!({ "anyOf": [
            { "enum": words },
            { "type": "array", "items": { "type": "string", "minLength": 1 } },
        ] }),
        Shape::PatternList => json!({
            "type": "array",
            "items": { "anyOf": [
                { "type": "string" },
                { "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
                  "properties": { "name": { "type": "string" }, "command": { "type": "string" }, "url": { "type": "string" } } },
            ] },
        }),
        Shape::Conditions => {
            let tests = ArgumentTest::NAMES.iter();
            let tests: Map<String, Value> = tests
                .map(|(name, _)| ((*name).to_owned(), json!({ "type": "string" })))
                .collect();
            json!({
                "type": "object",
                "additionalProperties": { "anyOf": [
                    { "type": "string" },
                    { "type": "object", "additionalProperties": false, "properties": tests },
                ] },
            })
        }
        Shape::Servers => json!({
            "anyOf": [
                { "type": "object", "additionalProperties": { "$ref": "#/$defs/server" } },
                { "type": "array", "items": { "allOf": [{ "$ref": "#/$defs/server" }, { "required": ["name"] }] } },
            ],
        }),
        Shape::Settings => table(&settings::keys()),
        Shape::Rules => {
            let mut rule = table(RULE_KEYS);
            rule["required"] = json!(["tool", "action"]);
            json!({ "type": "object", "additionalProperties": false, "properties": { "rules": { "type": "array", "items": rule } } })
        }
        Shape::Hooks => {
            let mut hook = table(HOOK_KEYS);
            hook["properties"]["matcher"] = json!({ "type": "string" });
            hook["required"] = json!(["event", "command"]);
            json!({ "type": "array", "items": hook })
        }
    }
}

fn described(mut schema: Value, about: &str) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), Value::from(about));
    }
    schema
}
