//! Follows requests that the server turned into tasks, polling until they are done.
//!
//! To the caller a task is a request like any other. Cancelling the request cancels the task.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_protocol::types::method::{CallTool, Request as _};
use switchboard_protocol::types::result::Outcome;
use switchboard_protocol::types::task::{Task, TaskRequestParams, TaskStatus};
use switchboard_protocol::types::wire::{self, Encode as _, IntoOwned as _};
use switchboard_protocol::{Era, Method};
use tokio::time::{Instant, sleep};

use super::pending::later;
use super::{Params, RequestError, RequestOptions, Shared, to_raw, unwritable};
use crate::json::SharedJson;

/// Poll interval if the server does not suggest one.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Bounds for the interval that a server suggests.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(60));

impl Shared {
    /// Follows a task to its result.
    pub(super) async fn follow_task(
        &self,
        created: &SharedJson,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        let task = match CallTool::decode_result(created.raw()) {
            Ok(Outcome::Task(created)) => created.task().clone().into_owned(),
            Ok(_) => return Ok(created.clone()),
            Err(error) => return Err(RequestError::Malformed(error.to_string())),
        };
        let running = RunningTask {
            shared: self,
            task_id: Some(task.task_id.to_string()),
        };
        let end = later(Instant::now(), options.total);
        let outcome = self.poll(task, options, end).await;
        if !matches!(
            outcome,
            Err(RequestError::Idle(_) | RequestError::Expired(_))
        ) {
            running.disarm();
        }
        outcome
    }

    async fn poll(
        &self,
        first: Task<'static>,
        options: &RequestOptions,
        end: Instant,
    ) -> Result<SharedJson, RequestError> {
        let mut task = first;
        let params = to_raw(&TaskRequestParams::new(task.task_id.clone()))?;
        loop {
            match &task.status {
                TaskStatus::Completed => return self.result_of(&task, options).await,
                TaskStatus::Failed => {
                    return Err(match task.failure() {
                        Some(error) => RequestError::Rejected(Box::new(error.into_owned())),
                        None => RequestError::Task(with_message("failed", &task)),
                    });
                }
                TaskStatus::Cancelled => {
                    return Err(RequestError::Task(with_message("been cancelled", &task)));
                }
                TaskStatus::InputRequired if !task.input_requests.is_empty() => {
                    let responses = self.fulfil(&task.input_requests, options).await?;
                    let update = update_params(&task.task_id, &responses)?;
                    self.exchange(Method::TasksUpdate, Some(&update), options)
                        .await?;
                }
                TaskStatus::InputRequired if self.facts.revision.era() == Era::Stateful => {
                    // Revision 2025-11-25 sends its input requests while the client waits for the result.
                    return self
                        .exchange(Method::TasksResult, Some(&params), options)
                        .await;
                }
                _ => {}
            }
            if Instant::now() >= end {
                return Err(RequestError::Expired(options.total));
            }
            let (shortest, longest) = POLL_BOUNDS;
            let interval = task.poll_interval().unwrap_or(POLL_INTERVAL);
            sleep(interval.clamp(shortest, longest)).await;
            let answer = self
                .exchange(Method::TasksGet, Some(&params), options)
                .await?;
            task = wire::decode::<Task<'_>>(answer.raw())
                .map_err(|error| RequestError::Malformed(error.to_string()))?
                .into_owned();
            if let Some(route) = &options.progress {
                route.tell(super::Progress {
                    progress: 0.0,
                    total: None,
                    message: task.status_message.as_deref().map(str::to_owned),
                });
            }
        }
    }

    /// The result of a completed task: part of the task in the extension, fetched separately in 2025-11-25.
    async fn result_of(
        &self,
        task: &Task<'_>,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        if let Some(result) = &task.result {
            let result = result
                .as_raw()
                .to_raw_value()
                .map_err(|error| RequestError::Malformed(error.to_string()))?;
            return Ok(result.into());
        }
        let params = to_raw(&TaskRequestParams::new(task.task_id.clone()))?;
        self.exchange(Method::TasksResult, Some(&params), options)
            .await
    }
}

fn update_params(task_id: &str, responses: &str) -> Result<Box<RawValue>, RequestError> {
    let mut params = String::from("{\"taskId\":");
    task_id.encode(&mut params);
    params.push_str(",\"inputResponses\":");
    params.push_str(responses);
    params.push('}');
    RawValue::from_string(params).map_err(unwritable)
}

fn with_message(what: &str, task: &Task<'_>) -> String {
    match &task.status_message {
        Some(message) => format!("{what}: {message}"),
        None => what.to_owned(),
    }
}

/// A task being followed. Dropping it before its end cancels the task.
struct RunningTask<'a> {
    shared: &'a Shared,
    task_id: Option<String>,
}

impl RunningTask<'_> {
    fn disarm(mut self) {
        self.task_id = None;
    }
}

impl Drop for RunningTask<'_> {
    fn drop(&mut self) {
        let Some(task_id) = self.task_id.take() else {
            return;
        };
        let Ok(params) = to_raw(&TaskRequestParams::new(task_id.into())) else {
            return;
        };
        // The response is ignored, so there is no waiter.
        let Ok((id, _)) = self.shared.receiver.pending.enter(None, None, None) else {
            return;
        };
        self.shared.receiver.pending.forget(id);
        let options = RequestOptions::within(POLL_INTERVAL);
        let encoded = self.shared.encode_request(
            id,
            Method::TasksCancel.name(),
            Params::Any(Some(&params)),
            &options,
        );
        if let (Ok(message), Ok(runtime)) = (encoded, tokio::runtime::Handle::try_current()) {
            let link = Arc::clone(&self.shared.link);
            runtime.spawn(async move { link.send(message).await });
        }
    }
}
