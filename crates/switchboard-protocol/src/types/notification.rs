//! Notifications that belong to no one feature.

use std::borrow::Cow;

use super::token::ProgressToken;
use super::wire::{Number, RawObject};
use crate::id::RequestId;
use crate::macros::wire_struct;

wire_struct! {
    /// What a notification says that has nothing of its own to say: a list changed, the client is ready.
    pub struct NotificationParams<'a> {
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `notifications/cancelled` says.
    pub struct CancelledNotificationParams<'a> {
        optional {
            /// The request that nobody waits for any more. 2025-11-25 lets it be absent.
            request_id("requestId"): RequestId<'a>,
            /// Why.
            reason("reason"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `notifications/progress` says.
    pub struct ProgressNotificationParams<'a> {
        required {
            /// The token of the request that progresses.
            progress_token("progressToken"): ProgressToken<'a>,
            /// How far it is. It only grows.
            progress("progress"): Number<'a>,
        }
        optional {
            /// How far it goes, if that is known.
            total("total"): Number<'a>,
            /// What it is doing.
            message("message"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}
