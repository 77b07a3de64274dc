//! What the suite requires of a server, as JSON: tools, prompts, resources, fixed results and forms.

use serde_json::{Value, json};

/// A PNG with one red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A WAV file without samples.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Tools without parameters: name and description.
const PLAIN: &[(&str, &str)] = &[
    ("test_simple_text", "Answers with a text"),
    ("test_image_content", "Answers with a picture"),
    ("test_audio_content", "Answers with a sound"),
    ("test_embedded_resource", "Answers with a resource"),
    (
        "test_multiple_content_types",
        "Answers with text, picture and resource",
    ),
    ("test_tool_with_logging", "Logs three messages"),
    ("test_logging_tool", "Logs one message"),
    ("test_error_handling", "Fails"),
    ("test_tool_with_progress", "Reports progress three times"),
    ("test_reconnection", "Takes longer than a stream lasts"),
    (
        "test_elicitation_sep1034_defaults",
        "Asks the user, with defaults",
    ),
    ("test_elicitation_sep1330_enums", "Asks the user to choose"),
    ("test_missing_capability", "Needs a client with a model"),
    (
        "test_streaming_elicitation",
        "Reports progress, then asks the user",
    ),
    ("test_trigger_tool_change", "Announces changed tools"),
    ("test_trigger_prompt_change", "Announces changed prompts"),
    (
        "test_input_required_result_elicitation",
        "Asks the user first",
    ),
    (
        "test_input_required_result_sampling",
        "Asks the model first",
    ),
    (
        "test_input_required_result_list_roots",
        "Asks for the roots first",
    ),
    (
        "test_input_required_result_request_state",
        "Asks first, and expects its state back",
    ),
    (
        "test_input_required_result_tampered_state",
        "Asks first, and checks its state",
    ),
    (
        "test_input_required_result_multiple_inputs",
        "Asks for three things at once",
    ),
    ("test_input_required_result_multi_round", "Asks twice"),
    (
        "test_input_required_result_capabilities",
        "Asks what the client can answer",
    ),
    ("test_wait", "Runs until it is cancelled"),
    (
        "test_all_ended",
        "Waits until all calls of test_wait have ended",
    ),
];

pub(crate) fn tools() -> Vec<Value> {
    let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let with_schema = |name: &str, description: &str, schema: Value| json!({"name": name, "description": description, "inputSchema": schema});
    let plain = PLAIN.iter().map(|(name, description)| {
        with_schema(
            name,
            description,
            json!({"type": "object", "properties": {}}),
        )
    });
    let others = [
        with_schema("test_sampling", "Asks the model", text("prompt")),
        with_schema("test_elicitation", "Asks the user", text("message")),
        with_schema(
            "test_custom_headers",
            "Has a parameter mirrored as a header",
            json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}),
        ),
        with_schema(
            "json_schema_2020_12_tool",
            "Tool with JSON Schema 2020-12 features",
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                }},
                "properties": {
                    "name": {"type": "string"},
                    "address": {"$ref": "#/$defs/address"},
                    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                    "phone": {"type": "string"},
                    "email": {"type": "string"},
                },
                "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
                "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
                "then": {"required": ["phone"]},
                "else": {"required": ["email"]},
                "additionalProperties": false,
            }),
        ),
    ];
    plain.chain(others).collect()
}

pub(crate) fn prompts() -> Vec<Value> {
    let argument = |name: &str| json!({"name": name, "description": name, "required": true});
    vec![
        json!({"name": "test_simple_prompt", "description": "Returns one message"}),
        json!({
            "name": "test_prompt_with_arguments",
            "description": "Repeats its arguments",
            "arguments": [argument("arg1"), argument("arg2")],
        }),
        json!({
            "name": "test_prompt_with_embedded_resource",
            "description": "Embeds a resource",
            "arguments": [argument("resourceUri")],
        }),
        json!({"name": "test_prompt_with_image", "description": "Embeds a picture"}),
        json!({"name": "test_input_required_result_prompt", "description": "Asks the user first"}),
    ]
}

pub(crate) fn resources() -> Vec<Value> {
    let resource = |name: &str, kind: &str| json!({"uri": format!("test://{name}"), "name": name, "description": name, "mimeType": kind});
    vec![
        resource("static-text", "text/plain"),
        resource("static-binary", "image/png"),
        resource("watched-resource", "text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data for an id",
        "mimeType": "application/json",
    })]
}

/// The messages of a prompt; `None` if it does not exist.
pub(crate) fn prompt(name: &str, argument: impl Fn(&str) -> String) -> Option<Value> {
    let user = |content: Value| json!({"role": "user", "content": content});
    let text = |text: &str| user(json!({"type": "text", "text": text}));
    let messages = match name {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => json!([text(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))]),
        "test_prompt_with_embedded_resource" => json!([
            user(json!({"type": "resource", "resource": {
                "uri": argument("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }})),
            text("Please process the embedded resource above."),
        ]),
        "test_prompt_with_image" => json!([
            user(json!({"type": "image", "data": PIXEL, "mimeType": "image/png"})),
            text("Please analyze the image above."),
        ]),
        _ => return None,
    };
    Some(json!({"messages": messages}))
}

/// The contents of a resource; `None` if it does not exist.
pub(crate) fn contents(uri: &str) -> Option<Value> {
    Some(match uri {
        "test://static-text" => json!({
            "uri": uri,
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        }),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL}),
        "test://watched-resource" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "watched"})
        }
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
    })
}

/// The result of a tool that always answers the same; `None` for other tools.
pub(crate) fn plain(name: &str) -> Option<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let picture = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    let resource = |uri: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}});
    let content = match name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([picture]),
        "test_audio_content" => {
            json!([{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}])
        }
        "test_embedded_resource" => json!([resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            picture,
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        "test_error_handling" => {
            let reason = text("This tool intentionally returns an error for testing");
            return Some(json!({"content": [reason], "isError": true}));
        }
        _ => return None,
    };
    Some(json!({"content": content}))
}

/// A form elicitation.
pub(crate) fn form(message: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": properties, "required": required},
    })
}

/// A form with one text field.
pub(crate) fn text_form(message: &str, field: &str) -> Value {
    form(message, &json!({field: {"type": "string"}}), &[field])
}

/// A form whose fields all have defaults.
pub(crate) fn form_with_defaults() -> Value {
    form(
        "Please review the values",
        &json!({
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        }),
        &[],
    )
}

/// A form with every kind of choice.
pub(crate) fn form_of_choices() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "First"},
        {"const": "value2", "title": "Second"},
        {"const": "value3", "title": "Third"},
    ]);
    form(
        "Please choose",
        &json!({
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        }),
        &[],
    )
}

/// A sampling request.
pub(crate) fn to_the_model(text: &str) -> Value {
    json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "maxTokens": 100,
    })
}
