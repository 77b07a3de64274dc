//! Validation rules of the real model endpoints, which a lenient test server would hide.
//!
//! Covers the rules of the wire formats that an agent's requests are likely to break. A violation is answered with 400
//! and the rule, like the real endpoint.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::Wire;

/// Maximum number of `cache_control` blocks at Anthropic.
const MOST_MARKS: usize = 4;

type Check = Result<(), String>;

/// The rule that a request breaks, if any.
pub(super) fn broken(
    wire: Wire,
    headers: &BTreeMap<String, String>,
    body: &Value,
) -> Option<String> {
    let check = match wire {
        Wire::Anthropic => anthropic_request(headers, body),
        Wire::OpenAi => openai_request(body),
        Wire::Responses => responses_request(body),
    };
    check.err()
}

fn anthropic_request(headers: &BTreeMap<String, String>, body: &Value) -> Check {
    rule(
        headers.contains_key("anthropic-version"),
        "anthropic-version: header is required",
    )?;
    rule(body["model"].is_string(), "model: Field required")?;
    rule(
        body["max_tokens"].as_u64() > Some(0),
        "max_tokens: Field required",
    )?;
    rule(body["stream"] == true, "the scripted model only streams")?;
    rule(
        count_marks(body) <= MOST_MARKS,
        "A maximum of 4 blocks with cache_control may be provided",
    )?;
    let tools = list(&body["tools"])
        .iter()
        .map(|tool| (&tool["name"], &tool["input_schema"]));
    check_tools(tools, 128)?;
    let messages = list(&body["messages"]);
    rule(
        !messages.is_empty(),
        "messages: at least one message is required",
    )?;
    rule(
        messages
            .first()
            .is_some_and(|first| first["role"] == "user"),
        "messages: first message must use the \"user\" role",
    )?;
    rule(
        messages.last().is_some_and(|last| last["role"] == "user"),
        "messages: the last message must be the user's",
    )?;
    for block in list(&body["system"]) {
        text_block(block)?;
    }
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = |text: String| format!("messages.{index}: {text}");
        let blocks = list(&message["content"]);
        rule(
            !blocks.is_empty()
                || message["content"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
            "messages: content must be non-empty",
        )?;
        let mut answered: Vec<&str> = Vec::new();
        let mut results_are_over = false;
        for block in blocks {
            anthropic_block(block).map_err(at)?;
            if block["type"] == "tool_result" {
                rule(
                    !results_are_over,
                    "tool_result blocks must come first in the content",
                )?;
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                rule(
                    open.contains(&id),
                    &format!("unexpected tool_use_id found in tool_result blocks: {id}"),
                )?;
                rule(
                    !answered.contains(&id),
                    "each tool_use must have a single result",
                )?;
                answered.push(id);
            } else {
                results_are_over = true;
            }
        }
        if let Some(missing) = open.iter().find(|id| !answered.contains(id)) {
            return Err(at(format!(
                "tool_use ids were found without tool_result blocks immediately after: {missing}"
            )));
        }
        open.clear();
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        for id in calls.filter_map(|call| call["id"].as_str()) {
            rule(
                message["role"] == "assistant",
                "tool_use blocks are the assistant's",
            )?;
            rule(ids.insert(id), "tool_use ids must be unique")?;
            open.push(id);
        }
    }
    rule(
        open.is_empty(),
        "tool_use ids were found without tool_result blocks",
    )
}

fn anthropic_block(block: &Value) -> Check {
    match block["type"].as_str().unwrap_or_default() {
        "text" => text_block(block),
        "image" => image(&block["source"]["media_type"], &block["source"]["data"]),
        "thinking" => rule(
            block["signature"]
                .as_str()
                .is_some_and(|seal| !seal.is_empty()),
            "thinking.signature: Field required",
        ),
        "redacted_thinking" => rule(
            block["data"].is_string(),
            "redacted_thinking.data: Field required",
        ),
        "tool_use" => {
            let id = block["id"].as_str().unwrap_or_default();
            rule(
                is_word(id, usize::MAX),
                "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            )?;
            rule(
                is_word(block["name"].as_str().unwrap_or_default(), 200),
                "tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'",
            )?;
            rule(
                block["input"].is_object(),
                "tool_use.input: Input should be a valid dictionary",
            )
        }
        "tool_result" => {
            let is_error = block["is_error"] == true;
            let blocks = list(&block["content"]);
            rule(
                !is_error || !blocks.is_empty(),
                "content cannot be empty if `is_error` is true",
            )?;
            for block in blocks {
                rule(
                    !is_error || block["type"] == "text",
                    "all content must be type `text` if `is_error` is true",
                )?;
                anthropic_block(block)?;
            }
            Ok(())
        }
        other => Err(format!("Input tag '{other}' is not expected")),
    }
}

fn openai_request(body: &Value) -> Check {
    rule(
        body["model"].is_string(),
        "you must provide a model parameter",
    )?;
    rule(body["stream"] == true, "the scripted model only streams")?;
    if !body["tools"].is_null() {
        rule(
            !list(&body["tools"]).is_empty(),
            "[] is too short - 'tools'",
        )?;
    }
    let tools = list(&body["tools"])
        .iter()
        .map(|tool| (&tool["function"]["name"], &tool["function"]["parameters"]));
    check_tools(tools, 64)?;
    let messages = list(&body["messages"]);
    rule(!messages.is_empty(), "[] is too short - 'messages'")?;
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let place = open.iter().position(|open| *open == id);
            let place = place.ok_or("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'")?;
            open.remove(place);
            rule(
                message["content"].is_string(),
                "the content of a tool message is a string",
            )?;
            continue;
        }
        if let Some(missing) = open.first() {
            return Err(format!(
                "an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': {missing}"
            ));
        }
        let calls = list(&message["tool_calls"]);
        match role {
            "system" => rule(
                message["content"].is_string(),
                "the content of a system message is a string",
            )?,
            "user" => user_content(&message["content"])?,
            "assistant" => {
                let speaks = message["content"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty());
                rule(
                    speaks || !calls.is_empty(),
                    "an assistant message has content or tool calls",
                )?;
                rule(
                    message["tool_calls"].is_null() || !calls.is_empty(),
                    "[] is too short - 'tool_calls'",
                )?;
            }
            other => return Err(format!("invalid role: {other}")),
        }
        for call in calls {
            let id = call["id"].as_str().unwrap_or_default();
            rule(
                (1..=40).contains(&id.len()),
                "tool_calls.id: string too long, or missing",
            )?;
            rule(!open.contains(&id), "tool_calls.id: given twice")?;
            rule(
                is_word(call["function"]["name"].as_str().unwrap_or_default(), 64),
                "tool_calls.function.name: invalid",
            )?;
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            // OpenAI accepts any text; servers that insert it into a template accept only objects.
            let parsed: Option<Value> = serde_json::from_str(arguments).ok();
            rule(
                parsed.is_some_and(|value| value.is_object()),
                "tool_calls.function.arguments: not an object",
            )?;
            open.push(id);
        }
    }
    rule(open.is_empty(), "tool calls without an answer")
}

fn responses_request(body: &Value) -> Check {
    rule(
        body["model"].is_string(),
        "Missing required parameter: 'model'.",
    )?;
    rule(body["stream"] == true, "the scripted model only streams")?;
    rule(
        body["store"] == false,
        "the agent stores nothing at the provider",
    )?;
    let tools = list(&body["tools"]);
    rule(
        tools.iter().all(|tool| tool["strict"] == false),
        "strict schemas must list all properties as required",
    )?;
    let tools = tools
        .iter()
        .map(|tool| (&tool["name"], &tool["parameters"]));
    check_tools(tools, 64)?;
    let items = list(&body["input"]);
    rule(!items.is_empty(), "[] is too short - 'input'")?;
    let mut open: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for (place, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap_or_default() {
            "message" => message_item(item)?,
            "reasoning" => {
                rule(
                    item["encrypted_content"].is_string(),
                    "Item of type 'reasoning' not found",
                )?;
                rule(
                    item["summary"].is_array(),
                    "Missing required parameter: 'summary'.",
                )?;
                let next = items.get(place + 1);
                let is_followed = next.is_some_and(|next| {
                    next["type"] == "function_call" || next["role"] == "assistant"
                });
                rule(
                    is_followed,
                    "Item of type 'reasoning' was provided without its required following item.",
                )?;
            }
            "function_call" => {
                rule((1..=64).contains(&id.len()), "call_id: invalid length")?;
                rule(ids.insert(id), "call_id: given twice")?;
                rule(
                    is_word(item["name"].as_str().unwrap_or_default(), 64),
                    "name: invalid",
                )?;
                rule(item["arguments"].is_string(), "arguments: not a string")?;
                open.push(id);
            }
            "function_call_output" => {
                let called = open.iter().position(|open| *open == id);
                let called = called.ok_or("No tool call found for function call output")?;
                open.remove(called);
                let output = &item["output"];
                rule(
                    output.is_string() || output.is_array(),
                    "output: invalid type",
                )?;
            }
            other => return Err(format!("Invalid value: '{other}'")),
        }
    }
    match open.first() {
        Some(id) => Err(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}

fn message_item(item: &Value) -> Check {
    let parts = list(&item["content"]);
    rule(!parts.is_empty(), "the content of a message is empty")?;
    let texts: &[&str] = match item["role"].as_str().unwrap_or_default() {
        "user" => &["input_text", "input_image"],
        "assistant" => &["output_text"],
        other => return Err(format!("Invalid value: '{other}'")),
    };
    for part in parts {
        let kind = part["type"].as_str().unwrap_or_default();
        rule(texts.contains(&kind), &format!("Invalid value: '{kind}'"))?;
        let text = part["text"].as_str().or(part["image_url"].as_str());
        rule(text.is_some_and(|text| !text.is_empty()), "empty content")?;
    }
    Ok(())
}

fn user_content(content: &Value) -> Check {
    if let Some(text) = content.as_str() {
        return rule(!text.is_empty(), "the content of a user message is empty");
    }
    let parts = list(content);
    rule(!parts.is_empty(), "the content of a user message is empty")?;
    for part in parts {
        match part["type"].as_str().unwrap_or_default() {
            "text" => rule(
                part["text"].as_str().is_some_and(|text| !text.is_empty()),
                "empty text",
            )?,
            "image_url" => {
                let url = part["image_url"]["url"].as_str().unwrap_or_default();
                rule(
                    url.starts_with("data:image/") && url.contains(";base64,"),
                    "invalid image_url",
                )?;
            }
            other => return Err(format!("invalid content type: {other}")),
        }
    }
    Ok(())
}

fn check_tools<'v>(tools: impl Iterator<Item = (&'v Value, &'v Value)>, longest: usize) -> Check {
    let mut names = HashSet::new();
    for (name, schema) in tools {
        let name = name.as_str().unwrap_or_default();
        rule(
            is_word(name, longest),
            &format!("tools: \"{name}\" is not a valid name"),
        )?;
        rule(names.insert(name), "tools: Tool names must be unique")?;
        rule(
            schema["type"] == "object",
            &format!("tools: the schema of {name} must be an object"),
        )?;
    }
    Ok(())
}

fn text_block(block: &Value) -> Check {
    let text = block["text"].as_str().unwrap_or_default();
    rule(
        !text.trim().is_empty(),
        "text content blocks must contain non-whitespace text",
    )
}

fn image(media_type: &Value, data: &Value) -> Check {
    let supported = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    rule(
        supported.iter().any(|kind| media_type == kind),
        "image.source.media_type: not supported",
    )?;
    rule(
        data.as_str().is_some_and(|data| !data.is_empty()),
        "image cannot be empty",
    )
}

fn count_marks(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_marks).sum(),
        Value::Object(fields) => {
            let own = usize::from(fields.contains_key("cache_control"));
            own + fields.values().map(count_marks).sum::<usize>()
        }
        _ => 0,
    }
}

fn is_word(text: &str, longest: usize) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !text.is_empty() && text.len() <= longest && text.bytes().all(is_good)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn rule(holds: bool, otherwise: &str) -> Check {
    holds.then_some(()).ok_or_else(|| otherwise.to_owned())
}
