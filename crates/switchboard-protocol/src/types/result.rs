//! Telling a result from a request for input and from a task.

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
    /// What kind of answer a result is. Absent means complete: older servers do not say.
    pub enum ResultType<'a> {
        /// The answer.
        Complete = "complete",
        /// A request for input.
        InputRequired = "input_required",
        /// A task that will have the answer (tasks extension).
        Task = "task",
    }
}

/// What came back for a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<'a, T> {
    /// The answer.
    Complete(T),
    /// The server needs something first; ask again with it.
    InputRequired(InputRequiredResult<'a>),
    /// The answer will be in a task.
    Task(CreatedTask<'a>),
}

/// A type that some method answers with.
pub trait ResultBody<'a>: Decode<'a> {
    /// Whether the method may ask for input instead.
    const MAY_NEED_INPUT: bool = false;
    /// Whether the method may begin a task instead.
    const MAY_BE_TASK: bool = false;

    /// What kind of answer it says it is, if it has a field for that.
    fn result_type(&self) -> Option<&ResultType<'a>>;

    /// The fields it does not know.
    fn extra(&self) -> &Extra<'a>;
}

/// Decodes the result of a method that answers with `T`, with [`Limits::DEFAULT`].
pub fn decode_result<'a, T: ResultBody<'a>>(
    raw: &'a RawValue,
) -> Result<Outcome<'a, T>, DecodeError> {
    decode_result_within(raw, &Limits::DEFAULT)
}

/// Decodes the result of a method that answers with `T`, within `limits`.
///
/// `resultType` decides. It is not searched for beforehand: that would read a large result twice, and nearly every
/// result is complete. Only where the complete reading does not hold is the result looked at again.
///
/// `null` and `[]` say nothing, as an empty object does, so they do for a method that has nothing to say. Whoever
/// parsed the message knows them by [`Quirk::EmptyResult`](crate::Quirk::EmptyResult).
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

/// What a result says it is, without decoding the rest. `None` where it says nothing, which means complete.
pub fn declared_type(raw: &RawValue) -> Option<ResultType<'_>> {
    let [written] = Reader::new(raw, &Limits::DEFAULT)
        .find(["resultType"])
        .ok()?;
    ResultType::decode(&mut Reader::over_valid(written?, &Limits::DEFAULT)).ok()
}

/// Whether nothing in the result hints at another reading.
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
        // 2025-11-25 has no `resultType`. What it does have is a task where the answer would be.
        let may_be_task =
            T::MAY_BE_TASK && content.is_none() && task.is_some_and(|task| task.starts_with('{'));
        let task = may_be_task.then(|| Box::decode(&mut reader));
        return match (task, attempt) {
            (Some(Ok(result)), _) => Ok(Outcome::Task(CreatedTask::Nested(result))),
            // A tool may have tasks of its own to tell of, and forget the content around them.
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

/// Says of the types which methods answer with them, and what else those may answer.
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

/// The same for results of the stateful era alone and of clients, which have no `resultType`.
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
