//! Work that outlives its request: the tasks of 2025-11-25, and the tasks extension of 2026-07-28.
//!
//! Both have the same task with other names for its times, so there is one type. What differs is how one begins: the
//! extension answers any call with the task itself (`resultType: "task"`), 2025-11-25 answers a call that asked for
//! it with an object that holds one.

use std::borrow::Cow;
use std::time::Duration;

use super::input::InputRequest;
use super::result::ResultType;
use super::wire::{Found, List, Map, Nullable, Number, Raw, RawObject};
use crate::error::ErrorObject;
use crate::macros::{wire_enum, wire_struct};

wire_struct! {
    /// A task and how it stands. Also what `tasks/get` answers and what task notifications say.
    pub struct Task<'a> {
        required {
            /// Its id.
            task_id("taskId"): Cow<'a, str>,
            /// How it stands.
            status("status"): TaskStatus<'a>,
        }
        optional {
            /// `task` where it begins, complete where it is asked for (extension).
            result_type("resultType"): ResultType<'a>,
            /// How it stands, for people.
            status_message("statusMessage"): Cow<'a, str>,
            /// When it began, ISO 8601. Required by both revisions; nothing depends on it.
            created_at("createdAt"): Cow<'a, str>,
            /// When it last changed, ISO 8601. Required by both revisions; nothing depends on it.
            last_updated_at("lastUpdatedAt"): Cow<'a, str>,
            /// How long it is kept from its beginning, in milliseconds; `null` for ever (2025-11-25).
            ttl("ttl"): Nullable<Number<'a>>,
            /// How long it is kept from its beginning, in milliseconds; `null` for ever (extension).
            ttl_ms("ttlMs"): Nullable<Number<'a>>,
            /// How long to wait between questions, in milliseconds (2025-11-25).
            poll_interval("pollInterval"): Number<'a>,
            /// How long to wait between questions, in milliseconds (extension).
            poll_interval_ms("pollIntervalMs"): Number<'a>,
            /// The answer of a completed task, of the method that began it (extension).
            result("result"): RawObject<'a>,
            /// The JSON-RPC error of a failed task, as written (extension). [`Task::failure`] reads it.
            error("error"): Raw<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// What a task that needs input wants (extension).
            input_requests("inputRequests"): Map<'a, InputRequest<'a>>,
        }
    }
}

wire_enum! {
    /// How a task stands.
    pub enum TaskStatus<'a> {
        /// It runs.
        Working = "working",
        /// It waits for the client.
        InputRequired = "input_required",
        /// It is done.
        Completed = "completed",
        /// It went wrong.
        Failed = "failed",
        /// It was called off.
        Cancelled = "cancelled",
    }
}

wire_struct! {
    /// The beginning of a task in 2025-11-25.
    pub struct CreateTaskResult<'a> {
        required {
            /// The task.
            task("task"): Task<'a>,
        }
        optional {
            /// `task`, from a server between the revisions.
            result_type("resultType"): ResultType<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

/// The beginning of a task, in either form.
#[derive(Debug, Clone, PartialEq)]
pub enum CreatedTask<'a> {
    /// The task itself (extension).
    Flat(Box<Task<'a>>),
    /// An object that holds it (2025-11-25).
    Nested(Box<CreateTaskResult<'a>>),
}

wire_struct! {
    /// The wish to run a request as a task (2025-11-25).
    pub struct TaskMetadata<'a> {
        optional {
            /// How long to keep it, in milliseconds.
            ttl("ttl"): Number<'a>,
        }
    }
}

wire_struct! {
    /// The task a message belongs to, in its `_meta` (2025-11-25).
    pub struct RelatedTaskMetadata<'a> {
        required {
            /// The task.
            task_id("taskId"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// What `tasks/get`, `tasks/cancel` and `tasks/result` ask.
    pub struct TaskRequestParams<'a> {
        required {
            /// The task.
            task_id("taskId"): Cow<'a, str>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `tasks/update` asks (extension).
    pub struct UpdateTaskRequestParams<'a> {
        required {
            /// The task.
            task_id("taskId"): Cow<'a, str>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Answers to what the task wants, by its keys.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

wire_struct! {
    /// What `tasks/cancel` answers: the task in 2025-11-25, nothing in the extension.
    pub struct CancelTaskResult<'a> {
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// The task.
            task_id("taskId"): Cow<'a, str>,
            /// How it stands.
            status("status"): TaskStatus<'a>,
            /// How it stands, for people.
            status_message("statusMessage"): Cow<'a, str>,
            /// When it began, ISO 8601.
            created_at("createdAt"): Cow<'a, str>,
            /// When it last changed, ISO 8601.
            last_updated_at("lastUpdatedAt"): Cow<'a, str>,
            /// How long it is kept from its beginning, in milliseconds; `null` for ever.
            ttl("ttl"): Nullable<Number<'a>>,
            /// How long to wait between questions, in milliseconds.
            poll_interval("pollInterval"): Number<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `tasks/list` answers (2025-11-25).
    pub struct ListTasksResult<'a> {
        required {
            /// The tasks of this page.
            tasks("tasks"): List<'a, Task<'a>>,
        }
        optional {
            /// Where the next page starts.
            next_cursor("nextCursor"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

impl TaskStatus<'_> {
    /// Whether nothing more will happen.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl Task<'_> {
    /// How long to wait between questions, in either revision's words.
    pub fn poll_interval(&self) -> Option<Duration> {
        let number = self
            .poll_interval_ms
            .as_ref()
            .or(self.poll_interval.as_ref())?;
        number.as_u64().map(Duration::from_millis)
    }

    /// Why the task failed, however badly the server says it; none where it says nothing.
    pub fn failure(&self) -> Option<ErrorObject<'_>> {
        let error = self.error.as_ref()?;
        (error.found() != Found::Null).then(|| error.decode().ok())?
    }

    /// How long the task is kept from its beginning, in either revision's words; none if unlimited or not said.
    pub fn time_to_live(&self) -> Option<Duration> {
        let number = self.ttl_ms.as_ref().or(self.ttl.as_ref())?.as_value()?;
        number.as_u64().map(Duration::from_millis)
    }
}

impl<'a> CreatedTask<'a> {
    /// The task.
    pub fn task(&self) -> &Task<'a> {
        match self {
            Self::Flat(task) => task,
            Self::Nested(result) => &result.task,
        }
    }
}
