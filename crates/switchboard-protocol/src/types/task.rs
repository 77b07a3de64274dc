//! Tasks that outlive their request, in 2025-11-25 and in the tasks extension of 2026-07-28.
//!
//! Both have the same task with different names for its times, so there is one type. They differ in how a task is
//! created: the extension answers any call with the task itself (`resultType: "task"`), 2025-11-25 answers a call that
//! requested it with an object that contains one.

use std::borrow::Cow;
use std::time::Duration;

use super::input::InputRequest;
use super::result::ResultType;
use super::wire::{Found, List, Map, Nullable, Number, Raw, RawObject};
use crate::error::ErrorObject;
use crate::macros::{wire_enum, wire_struct};

wire_struct! {
    /// A task and its status. Also the result of `tasks/get`, and the parameters of task notifications.
    pub struct Task<'a> {
        required {
            /// Unique id of the task.
            task_id("taskId"): Cow<'a, str>,
            /// Current status of the task.
            status("status"): TaskStatus<'a>,
        }
        optional {
            /// `task` when created, `complete` in `tasks/get` (extension).
            result_type("resultType"): ResultType<'a>,
            /// Status message for users.
            status_message("statusMessage"): Cow<'a, str>,
            /// Creation time, ISO 8601. Required by both revisions; nothing depends on it.
            created_at("createdAt"): Cow<'a, str>,
            /// Time of the last change, ISO 8601. Required by both revisions; nothing depends on it.
            last_updated_at("lastUpdatedAt"): Cow<'a, str>,
            /// Lifetime from creation, in milliseconds; `null`: unlimited (2025-11-25).
            ttl("ttl"): Nullable<Number<'a>>,
            /// Lifetime from creation, in milliseconds; `null`: unlimited (extension).
            ttl_ms("ttlMs"): Nullable<Number<'a>>,
            /// Recommended polling interval in milliseconds (2025-11-25).
            poll_interval("pollInterval"): Number<'a>,
            /// Recommended polling interval in milliseconds (extension).
            poll_interval_ms("pollIntervalMs"): Number<'a>,
            /// The result of a completed task, of the type of its method (extension).
            result("result"): RawObject<'a>,
            /// The JSON-RPC error of a failed task, verbatim (extension). [`Task::failure`] decodes it.
            error("error"): Raw<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Requests for input of a task (extension).
            input_requests("inputRequests"): Map<'a, InputRequest<'a>>,
        }
    }
}

wire_enum! {
    /// The status of a task.
    pub enum TaskStatus<'a> {
        /// The task is running.
        Working = "working",
        /// The task waits for input.
        InputRequired = "input_required",
        /// The task has a result.
        Completed = "completed",
        /// The task has failed.
        Failed = "failed",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }
}

wire_struct! {
    /// The result that creates a task in 2025-11-25.
    pub struct CreateTaskResult<'a> {
        required {
            /// The created task.
            task("task"): Task<'a>,
        }
        optional {
            /// `task`, from servers between the two revisions.
            result_type("resultType"): ResultType<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

/// A created task, in either form.
#[derive(Debug, Clone, PartialEq)]
pub enum CreatedTask<'a> {
    /// The task itself (extension).
    Flat(Box<Task<'a>>),
    /// An object that contains the task (2025-11-25).
    Nested(Box<CreateTaskResult<'a>>),
}

wire_struct! {
    /// Requests execution as a task (2025-11-25).
    pub struct TaskMetadata<'a> {
        optional {
            /// Requested lifetime in milliseconds.
            ttl("ttl"): Number<'a>,
        }
    }
}

wire_struct! {
    /// The task a message belongs to, in its `_meta` (2025-11-25).
    pub struct RelatedTaskMetadata<'a> {
        required {
            /// Id of the task.
            task_id("taskId"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// Parameters of `tasks/get`, `tasks/cancel` and `tasks/result`.
    pub struct TaskRequestParams<'a> {
        required {
            /// Id of the task.
            task_id("taskId"): Cow<'a, str>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of `tasks/update` (extension).
    pub struct UpdateTaskRequestParams<'a> {
        required {
            /// Id of the task.
            task_id("taskId"): Cow<'a, str>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Responses to the task's input requests, by key.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

wire_struct! {
    /// Result of `tasks/cancel`: the task in 2025-11-25, empty in the extension.
    pub struct CancelTaskResult<'a> {
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Id of the task.
            task_id("taskId"): Cow<'a, str>,
            /// Current status of the task.
            status("status"): TaskStatus<'a>,
            /// Status message for users.
            status_message("statusMessage"): Cow<'a, str>,
            /// Creation time, ISO 8601.
            created_at("createdAt"): Cow<'a, str>,
            /// Time of the last change, ISO 8601.
            last_updated_at("lastUpdatedAt"): Cow<'a, str>,
            /// Lifetime from creation, in milliseconds; `null`: unlimited.
            ttl("ttl"): Nullable<Number<'a>>,
            /// Recommended polling interval in milliseconds.
            poll_interval("pollInterval"): Number<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Result of `tasks/list` (2025-11-25).
    pub struct ListTasksResult<'a> {
        required {
            /// The tasks of this page.
            tasks("tasks"): List<'a, Task<'a>>,
        }
        optional {
            /// Cursor of the next page.
            next_cursor("nextCursor"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

impl TaskStatus<'_> {
    /// Whether the status cannot change any more.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl Task<'_> {
    /// The recommended polling interval, from the field of either revision.
    pub fn poll_interval(&self) -> Option<Duration> {
        let number = self
            .poll_interval_ms
            .as_ref()
            .or(self.poll_interval.as_ref())?;
        number.as_u64().map(Duration::from_millis)
    }

    /// The error of a failed task, decoded leniently; `None` if there is none.
    pub fn failure(&self) -> Option<ErrorObject<'_>> {
        let error = self.error.as_ref()?;
        (error.found() != Found::Null).then(|| error.decode().ok())?
    }

    /// The lifetime from creation, from the field of either revision; `None` if unlimited or not stated.
    pub fn time_to_live(&self) -> Option<Duration> {
        let number = self.ttl_ms.as_ref().or(self.ttl.as_ref())?.as_value()?;
        number.as_u64().map(Duration::from_millis)
    }
}

impl<'a> CreatedTask<'a> {
    /// The created task, from either form.
    pub fn task(&self) -> &Task<'a> {
        match self {
            Self::Flat(task) => task,
            Self::Nested(result) => &result.task,
        }
    }
}
