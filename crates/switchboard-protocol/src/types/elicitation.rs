//! Asking the user, by a form or by a page to visit.

use std::borrow::Cow;

use super::elicitation_schema::ElicitationSchema;
use super::task::TaskMetadata;
use super::wire::RawObject;
use crate::macros::{wire_enum, wire_struct, wire_union};

wire_union! {
    /// What `elicitation/create` asks.
    pub enum ElicitRequestParams<'a> by "mode" or absent "form" {
        /// To fill in a form.
        Form(ElicitRequestFormParams<'a>) = "form",
        /// To visit a page.
        Url(ElicitRequestUrlParams<'a>) = "url",
    }
}

wire_struct! {
    /// A form to fill in.
    pub struct ElicitRequestFormParams<'a> {
        required {
            /// Why it is asked.
            message("message"): Cow<'a, str>,
            /// The form's fields.
            requested_schema("requestedSchema"): ElicitationSchema<'a>,
        }
        optional {
            /// `form`, where it is said.
            mode("mode"): Cow<'a, str>,
            /// The wish to run it as a task (2025-11-25).
            task("task"): TaskMetadata<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// A page to visit.
    pub struct ElicitRequestUrlParams<'a> {
        tag "mode" = "url";
        required {
            /// Why it is asked.
            message("message"): Cow<'a, str>,
            /// The page.
            url("url"): Cow<'a, str>,
        }
        optional {
            /// What the later notification refers to (2025-11-25).
            elicitation_id("elicitationId"): Cow<'a, str>,
            /// The wish to run it as a task (2025-11-25).
            task("task"): TaskMetadata<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What the user did.
    pub struct ElicitResult<'a> {
        required {
            /// Whether they agreed.
            action("action"): ElicitAction<'a>,
        }
        optional {
            /// What they filled in, by field.
            content("content"): RawObject<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_enum! {
    /// What the user did with a question.
    pub enum ElicitAction<'a> {
        /// Answered it.
        Accept = "accept",
        /// Said no.
        Decline = "decline",
        /// Went away without an answer.
        Cancel = "cancel",
    }
}

wire_struct! {
    /// What `notifications/elicitation/complete` says (2025-11-25).
    pub struct ElicitationCompleteNotificationParams<'a> {
        required {
            /// The question that is settled.
            elicitation_id("elicitationId"): Cow<'a, str>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}
