//! Notifications that are not specific to a feature.

use std::borrow::Cow;

use super::token::ProgressToken;
use super::wire::{Number, RawObject};
use crate::id::RequestId;
use crate::macros::wire_struct;

wire_struct! {
    /// Parameters of notifications without specific content, such as a changed list.
    pub struct NotificationParams<'a> {
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of `notifications/cancelled`.
    pub struct CancelledNotificationParams<'a> {
        optional {
            /// The cancelled request. Optional in 2025-11-25.
            request_id("requestId"): RequestId<'a>,
            /// Reason for users and logs.
            reason("reason"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of `notifications/progress`.
    pub struct ProgressNotificationParams<'a> {
        required {
            /// Token of the request.
            progress_token("progressToken"): ProgressToken<'a>,
            /// Progress so far. It only increases.
            progress("progress"): Number<'a>,
        }
        optional {
            /// Total amount of work, if known.
            total("total"): Number<'a>,
            /// Description of the current step.
            message("message"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}
