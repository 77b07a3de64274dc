//! The events of a running call: its beginning and its end, or that it was cancelled.

use std::time::Duration;

use tokio::time::Instant;

use super::{CallError, CallOutcome, CallTarget, ToolReply};
use crate::events::{CallResult, Event};
use crate::host::Host;
use crate::json::SharedJson;
use crate::names::{CallId, CalledTool};
use crate::peer::ProgressSink;

/// Sends the call's events to listeners. If dropped before the end, reports the call as cancelled.
pub(super) struct Running<'a> {
    host: &'a Host,
    id: CallId,
    tool: CallTarget<'a>,
    started: Instant,
    ended: bool,
}

impl<'a> Running<'a> {
    pub(super) fn begin(
        host: &'a Host,
        id: CallId,
        tool: CallTarget<'a>,
        progress: Option<ProgressSink>,
        started: Instant,
    ) -> Self {
        if host.event_channel().has_call_listeners() {
            let CalledTool { server, tool } = tool.called();
            host.event_channel().send(Event::CallBegin {
                call: id,
                server,
                tool,
            });
        }
        host.under_way().begin(id, started, progress);
        Self {
            host,
            id,
            tool,
            started,
            ended: false,
        }
    }

    pub(super) fn end(
        mut self,
        outcome: Result<ToolReply, CallError>,
        elapsed: Duration,
    ) -> Result<CallOutcome, CallError> {
        self.ended = true;
        let outcome = outcome.map(|answer| CallOutcome {
            id: self.id,
            tool: self.tool.called(),
            is_error: answer.is_error,
            result: answer.result,
            display: answer.display,
            elapsed,
            is_exact: answer.is_exact,
        });
        match &outcome {
            Ok(outcome) => self.send_end(elapsed, outcome.is_error, || Ok(outcome.result.clone())),
            Err(error) => self.send_end(elapsed, true, || Err(error.to_string())),
        }
        outcome
    }

    fn send_end(
        &self,
        elapsed: Duration,
        is_error: bool,
        result: impl FnOnce() -> Result<SharedJson, String>,
    ) {
        if self.host.event_channel().has_call_listeners() {
            let (result, error) = match result() {
                Ok(result) => (Some(CallResult(result)), None),
                Err(error) => (None, Some(error)),
            };
            let CalledTool { server, tool } = self.tool.called();
            self.host.event_channel().send(Event::CallEnd {
                call: self.id,
                server,
                tool,
                elapsed,
                is_error,
                result,
                error,
            });
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.host.under_way().end(self.id);
        if !self.ended {
            let cancelled = || Err("cancelled".to_owned());
            self.send_end(self.started.elapsed(), true, cancelled);
        }
    }
}
