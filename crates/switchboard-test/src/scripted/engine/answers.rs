//! Builds the scripted server's answer to each method.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_protocol::{Era, ErrorCode, Method, Revision, meta};

use super::{
    ClientSession, Outcome, Plan, PlannedAnswer, Request, Server, Step, encode_notification,
};
use crate::scripted::lock;
use crate::scripted::script::{Do, Script, Tool};

impl Server {
    /// Plans the answer to an accepted request.
    pub(super) fn answer(
        &self,
        script: &Script,
        session: &ClientSession,
        request: &Request,
        revision: Revision,
    ) -> Plan {
        let method = Method::from_name(&request.method).filter(|method| method.exists_in(revision));
        let mut plan = match method {
            Some(Method::ToolsCall) => self.call(script, request, revision),
            Some(Method::SubscriptionsListen) => listen(request),
            Some(method) => {
                let outcome = self.plain(script, session, request, revision, method);
                Plan::new(request, PlannedAnswer::Now(outcome))
            }
            None => {
                let message = format!("Method not found: {}", request.method);
                Plan::new(
                    request,
                    PlannedAnswer::Now(fail(ErrorCode::METHOD_NOT_FOUND, &message)),
                )
            }
        };
        if revision.era() == Era::Stateless
            && let PlannedAnswer::Now(outcome) = &mut plan.answer
        {
            finish_stateless(script, method, outcome);
            if let Err(error) = outcome {
                let code = error["code"].as_i64().unwrap_or_default();
                plan.http_status = ErrorCode(code).http_status();
            }
        }
        plan
    }

    /// Methods that are answered at once.
    fn plain(
        &self,
        script: &Script,
        session: &ClientSession,
        request: &Request,
        revision: Revision,
        method: Method,
    ) -> Outcome {
        let value = &request.value;
        match method {
            Method::Initialize => Ok(without_nulls(json!({
                "protocolVersion": revision,
                "capabilities": capabilities(script, revision),
                "serverInfo": {"name": script.name, "version": script.version},
                "instructions": script.instructions,
            }))),
            Method::Discover => Ok(without_nulls(json!({
                "supportedVersions": script.revisions,
                "capabilities": capabilities(script, revision),
                "instructions": script.instructions,
                "_meta": {meta::SERVER_INFO: {"name": script.name, "version": script.version}},
            }))),
            Method::ToolsList => page(script, value, "tools", tools(script)),
            Method::ResourcesList => page(
                script,
                value,
                "resources",
                script.resources.iter().map(|one| one.definition.clone()),
            ),
            Method::ResourceTemplatesList => page(
                script,
                value,
                "resourceTemplates",
                script.resource_templates.iter().cloned(),
            ),
            Method::PromptsList => page(
                script,
                value,
                "prompts",
                script.prompts.iter().map(|one| one.definition.clone()),
            ),
            Method::ResourcesRead => read(script, value, revision),
            Method::ResourcesSubscribe => {
                let uri = value["uri"].as_str().unwrap_or_default();
                lock(&session.subscribed).insert(uri.to_owned());
                Ok(json!({}))
            }
            Method::ResourcesUnsubscribe => {
                let uri = value["uri"].as_str().unwrap_or_default();
                lock(&session.subscribed).remove(uri);
                Ok(json!({}))
            }
            Method::PromptsGet => prompt(script, value),
            Method::Complete => Ok(complete(script, value)),
            Method::TasksGet
            | Method::TasksUpdate
            | Method::TasksCancel
            | Method::TasksList
            | Method::TasksResult => self.tasks.answer(method, value, revision),
            // `ping`, `logging/setLevel` and others without content.
            _ => Ok(json!({})),
        }
    }

    /// A tool call: its steps, then its answer.
    fn call(&self, script: &Script, request: &Request, revision: Revision) -> Plan {
        let name = request.value["name"].as_str().unwrap_or_default();
        let scripted = script.tools.iter().find(|tool| tool.name() == name);
        let is_generated = script.generated_tools.as_ref().is_some_and(|generated| {
            let index = name
                .strip_prefix("tool_")
                .and_then(|index| index.parse().ok());
            index.is_some_and(|index: usize| index < generated.count)
        });
        let tool = match scripted {
            Some(tool) => tool.clone(),
            None if is_generated => Tool::new(name),
            None => {
                let message = format!("Unknown tool: {name}");
                return Plan::new(
                    request,
                    PlannedAnswer::Now(fail(ErrorCode::INVALID_PARAMS, &message)),
                );
            }
        };
        if let Some(polls) = tool.task_polls
            && let Some(started) =
                self.tasks
                    .begin(&tool, polls, &request.value, revision, self.next())
        {
            return Plan::new(request, PlannedAnswer::Now(Ok(started)));
        }
        steps(script, &tool, request, revision)
    }
}

/// The steps of a tool, up to its answer or, in the stateless era, to its first unanswered questions.
fn steps(script: &Script, tool: &Tool, request: &Request, revision: Revision) -> Plan {
    let stateless = revision.era() == Era::Stateless;
    let arguments = &request.value["arguments"];
    let meta = &request.value["_meta"];
    let token = &meta[meta::PROGRESS_TOKEN];
    let mut answered = match answered(request) {
        Ok(answered) => answered,
        Err(error) => return Plan::new(request, PlannedAnswer::Now(Err(error))),
    };
    let mut plan = Plan::new(request, PlannedAnswer::Now(Ok(echo(arguments))));
    let mut questions = 0;
    let mut open: Vec<(String, Value)> = Vec::new();
    for step in &tool.does {
        if !open.is_empty() && !matches!(step, Do::Ask { .. }) {
            break;
        }
        match step {
            Do::Progress { .. } if token.is_null() => {}
            Do::Progress {
                progress,
                total,
                message,
            } => plan.steps.push(Step::Send(encode_notification(
                "notifications/progress",
                &without_nulls(json!({
                    "progressToken": token,
                    "progress": progress,
                    "total": total,
                    "message": message,
                })),
            ))),
            // In the stateless era a client requests logs with each request.
            Do::Log { .. } if stateless && meta[meta::LOG_LEVEL].is_null() => {}
            Do::Log { level, data } => plan.steps.push(Step::Send(encode_notification(
                "notifications/message",
                &json!({"level": level, "logger": script.name, "data": data}),
            ))),
            Do::Notify { method, params } => {
                plan.steps
                    .push(Step::Send(encode_notification(method, params)));
            }
            Do::Wait { gate } => plan.steps.push(Step::Wait(gate.clone())),
            Do::Pause { ms } => plan.steps.push(Step::Pause(Duration::from_millis(*ms))),
            Do::Ask { method, params } if stateless => {
                if questions >= answered.len() {
                    let question = json!({"method": method, "params": params});
                    open.push((format!("ask-{questions}"), without_nulls(question)));
                }
                questions += 1;
            }
            Do::Ask { method, params } => plan.steps.push(Step::Ask {
                method: method.clone(),
                params: params.clone(),
            }),
            Do::Reply { result } => plan.answer = PlannedAnswer::Now(Ok(result.clone())),
            Do::Echo => plan.answer = PlannedAnswer::Now(Ok(echo(arguments))),
            Do::Asked if stateless => {
                let answers = Value::Array(std::mem::take(&mut answered));
                plan.answer = PlannedAnswer::Now(Ok(text(&answers.to_string())));
            }
            Do::Asked => plan.answer = PlannedAnswer::Asked,
            Do::Fail { error } => plan.answer = PlannedAnswer::Now(Err(error.clone())),
        }
    }
    if !open.is_empty() {
        let mut result = json!({
            "resultType": "input_required",
            "inputRequests": open.into_iter().collect::<serde_json::Map<_, _>>(),
        });
        if script.request_state {
            result["requestState"] = json!(Value::Array(answered).to_string());
        }
        plan.answer = PlannedAnswer::Now(Ok(result));
    }
    plan
}

/// The answers so far: from earlier rounds, restored from `requestState`, and from this one.
fn answered(request: &Request) -> Result<Vec<Value>, Value> {
    let invalid =
        || json!({"code": ErrorCode::INVALID_PARAMS.0, "message": "requestState was changed"});
    let mut answered: Vec<Value> = match &request.value["requestState"] {
        Value::Null => Vec::new(),
        Value::String(state) => serde_json::from_str(state).map_err(|_| invalid())?,
        _ => return Err(invalid()),
    };
    let responses = &request.value["inputResponses"];
    while let Some(response) = responses.get(format!("ask-{}", answered.len())) {
        answered.push(response.clone());
    }
    Ok(answered)
}

fn listen(request: &Request) -> Plan {
    let mut plan = Plan::new(request, PlannedAnswer::Listened);
    let filter = request.value["notifications"].clone();
    let id: Value = serde_json::from_str(&request.id.json()).unwrap_or_default();
    plan.steps.push(Step::Send(encode_notification(
        "notifications/subscriptions/acknowledged",
        &json!({"notifications": filter, "_meta": {meta::SUBSCRIPTION_ID: id}}),
    )));
    plan.steps.push(Step::Listen { filter });
    plan
}

/// Adds the members of every result in the stateless era.
fn finish_stateless(script: &Script, method: Option<Method>, outcome: &mut Outcome) {
    let Ok(Value::Object(result)) = outcome else {
        return;
    };
    result
        .entry("resultType")
        .or_insert_with(|| json!("complete"));
    let is_complete = result["resultType"] == "complete";
    if is_complete && method.is_some_and(Method::is_cacheable) {
        result.insert("ttlMs".to_owned(), json!(script.ttl_ms));
        result.insert("cacheScope".to_owned(), json!(script.cache_scope));
    }
}

fn capabilities(script: &Script, revision: Revision) -> Value {
    if let Some(capabilities) = &script.capabilities {
        return capabilities.clone();
    }
    let stateful = revision.era() == Era::Stateful;
    let has_tools = !script.tools.is_empty() || script.generated_tools.is_some();
    let has_resources = !script.resources.is_empty() || !script.resource_templates.is_empty();
    let has_tasks = script.tools.iter().any(|tool| tool.task_polls.is_some());
    without_nulls(json!({
        "logging": stateful.then(|| json!({})),
        "tools": has_tools.then(|| json!({"listChanged": true})),
        "resources": has_resources.then(|| json!({"listChanged": true, "subscribe": true})),
        "prompts": (!script.prompts.is_empty()).then(|| json!({"listChanged": true})),
        "completions": (!script.completions.is_empty()).then(|| json!({})),
        "tasks": (has_tasks && revision == Revision::V2025_11_25)
            .then(|| json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})),
        "extensions": (has_tasks && !stateful)
            .then(|| json!({"io.modelcontextprotocol/tasks": {}})),
    }))
}

fn tools(script: &Script) -> impl Iterator<Item = Value> {
    let generated = script.generated_tools.clone();
    let description = "d".repeat(generated.as_ref().map_or(0, |one| one.description_bytes));
    let generated = (0..generated.map_or(0, |one| one.count)).map(move |index| {
        json!({
            "name": format!("tool_{index}"),
            "description": description,
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        })
    });
    let scripted = script.tools.iter().map(|tool| tool.definition.clone());
    scripted.chain(generated)
}

fn page(script: &Script, params: &Value, key: &str, items: impl Iterator<Item = Value>) -> Outcome {
    let start = match &params["cursor"] {
        Value::Null => 0,
        Value::String(cursor) => {
            match cursor.strip_prefix("page-").and_then(|at| at.parse().ok()) {
                Some(start) => start,
                None => return fail(ErrorCode::INVALID_PARAMS, "Invalid cursor"),
            }
        }
        _ => return fail(ErrorCode::INVALID_PARAMS, "Invalid cursor"),
    };
    let size = script.page_size.unwrap_or(usize::MAX);
    let mut items = items.skip(start);
    let listed: Vec<Value> = items.by_ref().take(size).collect();
    let next = items.next().map(|_| format!("page-{}", start + size));
    Ok(without_nulls(json!({key: listed, "nextCursor": next})))
}

fn read(script: &Script, params: &Value, revision: Revision) -> Outcome {
    let found = script
        .resources
        .iter()
        .find(|resource| resource.definition["uri"] == params["uri"]);
    if let Some(resource) = found {
        return Ok(json!({"contents": resource.contents}));
    }
    let code = if revision.era() == Era::Stateless {
        ErrorCode::INVALID_PARAMS
    } else {
        ErrorCode::RESOURCE_NOT_FOUND
    };
    Err(json!({
        "code": code.0,
        "message": "Resource not found",
        "data": {"uri": params["uri"]},
    }))
}

fn prompt(script: &Script, params: &Value) -> Outcome {
    let found = script
        .prompts
        .iter()
        .find(|prompt| prompt.definition["name"] == params["name"]);
    let Some(prompt) = found else {
        return fail(ErrorCode::INVALID_PARAMS, "Unknown prompt");
    };
    let mut messages = prompt.messages.clone();
    for message in &mut messages {
        if let Value::String(text) = &mut message["content"]["text"] {
            for (name, value) in params["arguments"].as_object().into_iter().flatten() {
                *text = text.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default());
            }
        }
    }
    Ok(without_nulls(json!({
        "description": prompt.definition["description"],
        "messages": messages,
    })))
}

fn complete(script: &Script, params: &Value) -> Value {
    let argument = &params["argument"];
    let prefix = argument["value"].as_str().unwrap_or_default();
    let known = script
        .completions
        .get(argument["name"].as_str().unwrap_or_default());
    let fitting: Vec<&String> = known
        .into_iter()
        .flatten()
        .filter(|value| value.starts_with(prefix))
        .collect();
    json!({"completion": {
        "values": fitting.iter().take(100).collect::<Vec<_>>(),
        "total": fitting.len(),
        "hasMore": fitting.len() > 100,
    }})
}

fn echo(arguments: &Value) -> Value {
    text(&arguments.to_string())
}

/// A tool result with this text.
pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub(super) fn fail(code: ErrorCode, message: &str) -> Outcome {
    Err(json!({"code": code.0, "message": message}))
}

/// Drops `null` members of an object.
fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(members) = &mut value {
        members.retain(|_, member| !member.is_null());
    }
    value
}
