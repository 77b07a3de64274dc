//! Tasks that outlive their request, as in 2025-11-25 and in the extension of 2026-07-28.
//!
//! A task advances when it is polled, not with time: it is working for the number of polls that its tool sets, then
//! requires input if the tool asks for any, then completes. So a test sees every state without waiting.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::{Value, json};
use switchboard_protocol::{ErrorCode, Method, Revision, meta};

use super::Outcome;
use super::answers::{fail, text};
use crate::scripted::lock;
use crate::scripted::script::{Do, Tool};

/// A fixed time for all tasks.
const MOMENT: &str = "2026-01-01T00:00:00Z";

#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<BTreeMap<String, Task>>);

#[derive(Debug)]
struct Task {
    polls_left: u32,
    questions: Vec<Value>,
    responses: Option<Value>,
    outcome: Outcome,
    cancelled: bool,
}

impl Tasks {
    /// Starts a task if the caller supports it: by request in 2025-11-25, by the extension in 2026-07-28.
    pub(crate) fn begin(
        &self,
        tool: &Tool,
        polls: u32,
        params: &Value,
        revision: Revision,
        number: u64,
    ) -> Option<Value> {
        let is_extension = revision == Revision::V2026_07_28;
        let extensions = &params["_meta"][meta::CLIENT_CAPABILITIES]["extensions"];
        let wanted = match revision {
            Revision::V2025_11_25 => params["task"].is_object(),
            Revision::V2026_07_28 => extensions["io.modelcontextprotocol/tasks"].is_object(),
            _ => false,
        };
        if !wanted {
            return None;
        }
        let mut task = Task {
            polls_left: polls,
            questions: Vec::new(),
            responses: None,
            outcome: Ok(text(&params["arguments"].to_string())),
            cancelled: false,
        };
        for step in &tool.does {
            match step {
                Do::Ask { method, params } => task
                    .questions
                    .push(json!({"method": method, "params": params})),
                Do::Reply { result } => task.outcome = Ok(result.clone()),
                Do::Fail { error } => task.outcome = Err(error.clone()),
                _ => {}
            }
        }
        let id = format!("task-{number}");
        let mut state = task.state(&id, is_extension);
        lock(&self.0).insert(id, task);
        if is_extension {
            state["resultType"] = json!("task");
            return Some(state);
        }
        Some(json!({"task": state}))
    }

    /// Answers the task methods.
    pub(crate) fn answer(&self, method: Method, params: &Value, revision: Revision) -> Outcome {
        let is_extension = revision == Revision::V2026_07_28;
        let mut tasks = lock(&self.0);
        if method == Method::TasksList {
            let states = tasks.iter().map(|(id, task)| task.state(id, false));
            return Ok(json!({"tasks": states.collect::<Vec<_>>()}));
        }
        let id = params["taskId"].as_str().unwrap_or_default();
        let Some(task) = tasks.get_mut(id) else {
            return fail(ErrorCode::INVALID_PARAMS, "Unknown task");
        };
        match method {
            Method::TasksGet => {
                let state = task.state(id, is_extension);
                task.polls_left = task.polls_left.saturating_sub(1);
                Ok(state)
            }
            Method::TasksUpdate => {
                task.responses = Some(params["inputResponses"].clone());
                Ok(json!({}))
            }
            Method::TasksCancel => {
                task.cancelled = true;
                Ok(if is_extension {
                    json!({})
                } else {
                    task.state(id, false)
                })
            }
            _ => {
                task.polls_left = 0;
                let mut outcome = task.outcome.clone();
                if let Ok(result) = &mut outcome {
                    result["_meta"][meta::RELATED_TASK] = json!({"taskId": id});
                }
                outcome
            }
        }
    }
}

impl Task {
    fn state(&self, id: &str, is_extension: bool) -> Value {
        let wants_input = is_extension && !self.questions.is_empty() && self.responses.is_none();
        let status = if self.cancelled {
            "cancelled"
        } else if self.polls_left > 0 {
            "working"
        } else if wants_input {
            "input_required"
        } else if self.outcome.is_ok() {
            "completed"
        } else {
            "failed"
        };
        let (ttl, interval) = if is_extension {
            ("ttlMs", "pollIntervalMs")
        } else {
            ("ttl", "pollInterval")
        };
        let mut state = json!({
            "taskId": id,
            "status": status,
            "createdAt": MOMENT,
            "lastUpdatedAt": MOMENT,
            ttl: 60_000,
            interval: 1,
        });
        if is_extension {
            match (status, &self.outcome) {
                ("input_required", _) => {
                    let questions = self.questions.iter().enumerate();
                    let questions: serde_json::Map<_, _> = questions
                        .map(|(index, question)| (format!("ask-{index}"), question.clone()))
                        .collect();
                    state["inputRequests"] = Value::Object(questions);
                }
                ("completed", Ok(result)) => state["result"] = result.clone(),
                ("failed", Err(error)) => state["error"] = error.clone(),
                _ => {}
            }
        }
        state
    }
}
