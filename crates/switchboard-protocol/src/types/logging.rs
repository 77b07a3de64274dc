//! Log messages of servers.

use std::borrow::Cow;

use super::wire::{Raw, RawObject};
use crate::macros::{wire_enum, wire_struct};

wire_struct! {
    /// What `notifications/message` says.
    pub struct LoggingMessageNotificationParams<'a> {
        required {
            /// How severe it is.
            level("level"): LoggingLevel<'a>,
            /// The message: a text, or anything else.
            data("data"): Raw<'a>,
        }
        optional {
            /// Which part of the server speaks.
            logger("logger"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `logging/setLevel` asks (stateful era).
    pub struct SetLevelRequestParams<'a> {
        required {
            /// The least severe messages wanted.
            level("level"): LoggingLevel<'a>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_enum! {
    /// How severe a message is, in syslog's words (RFC 5424).
    pub enum LoggingLevel<'a> {
        /// For whoever debugs the server.
        Debug = "debug",
        /// For whoever follows what happens.
        Info = "info",
        /// Ordinary and worth knowing.
        Notice = "notice",
        /// Something may go wrong.
        Warning = "warning",
        /// Something went wrong.
        Error = "error",
        /// A part is failing.
        Critical = "critical",
        /// Somebody must act now.
        Alert = "alert",
        /// Nothing works any more.
        Emergency = "emergency",
    }
}
