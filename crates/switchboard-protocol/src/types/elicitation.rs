//! Elicitation: asking the user through a form or a URL.

use std::borrow::Cow;

use super::elicitation_schema::ElicitationSchema;
use super::task::TaskMetadata;
use super::wire::RawObject;
use crate::macros::{wire_enum, wire_struct, wire_union};

wire_union! {
    /// Parameters of `elicitation/create`.
    pub enum ElicitRequestParams<'a> by "mode" or absent "form" {
        /// Fill in a form.
        Form(ElicitRequestFormParams<'a>) = "form",
        /// Open a URL.
        Url(ElicitRequestUrlParams<'a>) = "url",
    }
}

wire_struct! {
    /// A form for the user.
    pub struct ElicitRequestFormParams<'a> {
        required {
            /// Message that explains the request.
            message("message"): Cow<'a, str>,
            /// Fields of the form.
            requested_schema("requestedSchema"): ElicitationSchema<'a>,
        }
        optional {
            /// `form`, if stated explicitly.
            mode("mode"): Cow<'a, str>,
            /// Requests execution as a task (2025-11-25).
            task("task"): TaskMetadata<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// A URL for the user to open.
    pub struct ElicitRequestUrlParams<'a> {
        tag "mode" = "url";
        required {
            /// Message that explains the request.
            message("message"): Cow<'a, str>,
            /// The URL to open.
            url("url"): Cow<'a, str>,
        }
        optional {
            /// Referenced by the completion notification (2025-11-25).
            elicitation_id("elicitationId"): Cow<'a, str>,
            /// Requests execution as a task (2025-11-25).
            task("task"): TaskMetadata<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// The user's answer.
    pub struct ElicitResult<'a> {
        required {
            /// Whether the user accepted.
            action("action"): ElicitAction<'a>,
        }
        optional {
            /// Values of the form, by field.
            content("content"): RawObject<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_enum! {
    /// The user's decision.
    pub enum ElicitAction<'a> {
        /// The user submitted or agreed.
        Accept = "accept",
        /// The user explicitly declined.
        Decline = "decline",
        /// The user dismissed the request.
        Cancel = "cancel",
    }
}

wire_struct! {
    /// Parameters of `notifications/elicitation/complete` (2025-11-25).
    pub struct ElicitationCompleteNotificationParams<'a> {
        required {
            /// The completed elicitation.
            elicitation_id("elicitationId"): Cow<'a, str>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}
