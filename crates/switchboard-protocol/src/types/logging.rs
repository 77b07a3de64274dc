//! Log messages of servers.

use std::borrow::Cow;

use super::wire::{Raw, RawObject};
use crate::macros::{wire_enum, wire_struct};

wire_struct! {
    /// Parameters of `notifications/message`.
    pub struct LoggingMessageNotificationParams<'a> {
        required {
            /// Severity of the message.
            level("level"): LoggingLevel<'a>,
            /// Any JSON, usually a text.
            data("data"): Raw<'a>,
        }
        optional {
            /// The component that logs.
            logger("logger"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of `logging/setLevel` (stateful era).
    pub struct SetLevelRequestParams<'a> {
        required {
            /// Minimum severity of messages to send.
            level("level"): LoggingLevel<'a>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_enum! {
    /// Severity levels of syslog (RFC 5424).
    pub enum LoggingLevel<'a> {
        /// Details for debugging the server.
        Debug = "debug",
        /// Normal progress of operation.
        Info = "info",
        /// Normal but significant events.
        Notice = "notice",
        /// Potential problems or degradation.
        Warning = "warning",
        /// Errors of an operation.
        Error = "error",
        /// Failure of a component.
        Critical = "critical",
        /// Immediate action is required.
        Alert = "alert",
        /// The system is unusable.
        Emergency = "emergency",
    }
}
