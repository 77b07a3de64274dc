//! Distinguishes a complete result from a request for input and from a task.

use super::completion::CompleteResult;
use super::elicitation::ElicitResult;
use super::input::InputRequiredResult;
use super::lifecycle::{DiscoverResult, EmptyResult, InitializeResult};
use super::prompt::{GetPromptResult, ListPromptsResult};
use super::resource::{ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult};
use super::roots::ListRootsResult;
use super::sampling::CreateMessageResult;
use super::subscription::SubscriptionsListenResult;
use super::task::{CancelTaskResult, CreatedTask, ListTasksResult, Task};
use super::tool::{CallToolResult, ListToolsResult};
use super::wire::{Decode, DecodeError, DecodeErrorKind, Extra, Raw, Reader, excerpt};
use crate::limits::Limits;
use crate::macros::wire_enum;
use crate::raw;
use serde_json::value::RawValue;

wire_enum! {
    /// The kind of a result. Absent means complete, since older servers do not send it.
    pub enum ResultType<'a> {
        /// The complete result.
        Complete = "complete",
        /// A request for input.
        InputRequired = "input_required",
        /// A task that will have the result (tasks extension).
        Task = "task",
    }
}

/// The decoded result of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<'a, T> {
    /// The complete result.
    Complete(T),
    /// The server needs input; repeat the request with the responses.
    InputRequired(InputRequiredResult<'a>),
    /// The result will be available from a task.
    Task(CreatedTask<'a>),
}

/// The result type of a method.
pub trait ResultBody<'a>: Decode<'a> {
    /// Whether the result may be a request for input instead.
    const MAY_NEED_INPUT: bool = false;
    /// Whether the result may be a task instead.
    const MAY_BE_TASK: bool = false;

    /// The declared kind, if the type has a field for it.
    fn result_type(&self) -> Option<&ResultType<'a>>;

    /// Unknown fields of the result.
    fn extra(&self) -> &Extra<'a>;
}

/// Decodes the result of a method with the result type `T`, with [`Limits::DEFAULT`].
pub fn decode_result<'a, T: ResultBody<'a>>(
    raw: &'a RawValue,
) -> Result<Outcome<'a, T>, DecodeError> {
    decode_result_within(raw, &Limits::DEFAULT)
}

/// Decodes the result of a method with the result type `T`, within `limits`.
///
/// `resultType` determines the outcome. It is not searched for first: that would read a large result twice, and nearly
/// every result is complete. Only if decoding it as complete fails is the result examined again.
///
/// For a method without result content, `null` and `[]` are accepted like an empty object. The parser reports them as
/// [`Quirk::EmptyResult`](crate::Quirk::EmptyResult).
pub fn decode_result_within<'a, T: ResultBody<'a>>(
    raw: &'a RawValue,
    limits: &Limits,
) -> Result<Outcome<'a, T>, DecodeError> {
    let attempt = T::decode(&mut Reader::new(raw, limits));
    match attempt {
        Ok(result) if is_plainly_complete(&result) => Ok(Outcome::Complete(result)),
        Err(error) if raw::says_nothing(raw) => T::decode(&mut Reader::over_valid("{}", limits))
            .map(Outcome::Complete)
            .map_err(|_| error),
        attempt => decode_by_type(&Reader::new(raw, limits), attempt),
    }
}

/// The declared kind of a result, without decoding the rest. `None` if there is none, which means complete.
pub fn declared_type(raw: &RawValue) -> Option<ResultType<'_>> {
    let [written] = Reader::new(raw, &Limits::DEFAULT)
        .find(["resultType"])
        .ok()?;
    ResultType::decode(&mut Reader::over_valid(written?, &Limits::DEFAULT)).ok()
}

/// Whether nothing in the result suggests another kind.
fn is_plainly_complete<'a, T: ResultBody<'a>>(result: &T) -> bool {
    match result.result_type() {
        Some(ResultType::Complete) => true,
        Some(_) => false,
        None => {
            let extra = result.extra();
            extra.is_empty() || (extra.get("resultType").is_none() && extra.get("task").is_none())
        }
    }
}

fn decode_by_type<'a, T: ResultBody<'a>>(
    reader: &Reader<'a>,
    attempt: Result<T, DecodeError>,
) -> Result<Outcome<'a, T>, DecodeError> {
    let Ok([result_type, task, content]) = reader.find(["resultType", "task", "content"]) else {
        return attempt.map(Outcome::Complete);
    };
    let mut reader = reader.clone();
    let Some(written) = result_type.filter(|value| *value != "null") else {
        // 2025-11-25 has no `resultType`, but a `task` member instead of the content.
        let may_be_task =
            T::MAY_BE_TASK && content.is_none() && task.is_some_and(|task| task.starts_with('{'));
        let task = may_be_task.then(|| Box::decode(&mut reader));
        return match (task, attempt) {
            (Some(Ok(result)), _) => Ok(Outcome::Task(CreatedTask::Nested(result))),
            // A tool may have a `task` member of its own, and omit the content.
            (Some(Err(_)) | None, Ok(result)) => Ok(Outcome::Complete(result)),
            (Some(Err(error)), Err(_)) | (None, Err(error)) => Err(error),
        };
    };
    let unknown = || {
        DecodeError::new(DecodeErrorKind::UnknownResultType {
            found: excerpt(written),
        })
    };
    let unexpected = |found| DecodeError::new(DecodeErrorKind::UnexpectedResultType { found });
    match Raw::from_valid(written).decode::<ResultType<'_>>() {
        Ok(ResultType::Complete) => attempt.map(Outcome::Complete),
        Ok(ResultType::InputRequired) if !T::MAY_NEED_INPUT => Err(unexpected("input_required")),
        Ok(ResultType::InputRequired) => {
            InputRequiredResult::decode(&mut reader).map(Outcome::InputRequired)
        }
        Ok(ResultType::Task) if !T::MAY_BE_TASK => Err(unexpected("task")),
        Ok(ResultType::Task) if task.is_some() => {
            Box::decode(&mut reader).map(|result| Outcome::Task(CreatedTask::Nested(result)))
        }
        Ok(ResultType::Task) => {
            Box::decode(&mut reader).map(|task| Outcome::Task(CreatedTask::Flat(task)))
        }
        Ok(ResultType::Other(_)) | Err(_) => Err(unknown()),
    }
}

/// Implements [`ResultBody`] for result types, with the other kinds their methods may return.
macro_rules! result_bodies {
    ($($name:ident $(, input $input:literal)? $(, task $task:literal)?;)*) => {
        $(impl<'a> ResultBody<'a> for $name<'a> {
            $(const MAY_NEED_INPUT: bool = $input;)?
            $(const MAY_BE_TASK: bool = $task;)?

            fn result_type(&self) -> Option<&ResultType<'a>> {
                self.result_type.as_ref()
            }

            fn extra(&self) -> &Extra<'a> {
                &self.extra
            }
        })*
    };
}

result_bodies! {
    CallToolResult, input true, task true;
    GetPromptResult, input true;
    ReadResourceResult, input true;
    CancelTaskResult;
    CompleteResult;
    DiscoverResult;
    EmptyResult;
    InitializeResult;
    ListPromptsResult;
    ListResourceTemplatesResult;
    ListResourcesResult;
    ListToolsResult;
    SubscriptionsListenResult;
    Task;
}

/// The same for results without `resultType`: those of the stateful era only, and of clients.
macro_rules! untyped_result_bodies {
    ($($name:ident $(, task $task:literal)?;)*) => {
        $(impl<'a> ResultBody<'a> for $name<'a> {
            $(const MAY_BE_TASK: bool = $task;)?

            fn result_type(&self) -> Option<&ResultType<'a>> {
                None
            }

            fn extra(&self) -> &Extra<'a> {
                &self.extra
            }
        })*
    };
}

untyped_result_bodies! {
    CreateMessageResult, task true;
    ElicitResult, task true;
    ListRootsResult;
    ListTasksResult;
}
