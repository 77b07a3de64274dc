//! Routes a server's unsolicited messages: logs, list changes, process id.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::value::RawValue;
use switchboard_config::redact::Redactor;

use super::super::install::Signs;
use super::Signals;
use crate::caller::Caller;
use crate::events::{Event, Events, LogLine, LogSource};
use crate::json::SharedJson;
use crate::logs::LogRing;
use crate::names::ServerName;
use crate::peer::{Notice, Observer};
use crate::transport::Closed;

pub(super) struct ConnectionObserver {
    pub(super) server: ServerName,
    pub(super) events: Events,
    pub(super) logs: Arc<LogRing>,
    pub(super) signals: Arc<Signals>,
    pub(super) signs: Arc<Signs>,
    pub(super) redactor: Redactor,
}

impl ConnectionObserver {
    fn log(&self, source: LogSource, text: String) {
        self.signs.lines.fetch_add(1, Ordering::Relaxed);
        let text = match self.redactor.redact(&text) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => text,
        };
        let line = LogLine { source, text };
        if self.events.has_listeners() {
            self.events.send(Event::Log {
                server: self.server.clone(),
                line: line.clone(),
            });
        }
        self.logs.push(line);
    }
}

impl ConnectionObserver {
    fn pass(&self, method: &str, params: Option<&RawValue>, caller: Option<&Arc<Caller>>) {
        if caller.is_none() && !self.events.has_listeners() {
            return;
        }
        let masked = params.and_then(|params| match self.redactor.redact(params.get()) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        });
        let Ok(masked) = masked.map(RawValue::from_string).transpose() else {
            // Masked, it is no longer JSON.
            return;
        };
        let params = masked.as_deref().or(params);
        match caller {
            Some(caller) => caller.handler.notified(&self.server, method, params),
            None => self.events.send(Event::Notification {
                server: self.server.clone(),
                method: method.to_owned(),
                params: params.map(|params| SharedJson::trusted(params.get().to_owned())),
            }),
        }
    }
}

impl Observer for ConnectionObserver {
    fn notice(&self, notice: Notice<'_>) {
        match notice {
            Notice::ListChanged(kind) => self.signals.refresh(kind),
            Notice::Started(process) => self.signs.process.store(process, Ordering::Relaxed),
            Notice::ResourceUpdated(uri) => self.events.send(Event::ResourceUpdated {
                server: self.server.clone(),
                uri: uri.to_owned(),
            }),
            Notice::Diagnostic(line) => self.log(LogSource::Stderr, line.to_owned()),
            Notice::Noise(text) => self.log(LogSource::Noise, text.to_owned()),
            Notice::Log(message) => {
                let source = LogSource::Message {
                    level: message.level.as_str().to_owned(),
                    logger: message.logger.map(Cow::into_owned),
                };
                self.log(source, text_of(message.data.get()));
            }
            Notice::Passed {
                method,
                params,
                caller,
            } => self.pass(method, params, caller),
            Notice::ElicitationComplete(_)
            | Notice::TaskChanged(_)
            | Notice::SubscriptionAcknowledged => {}
        }
    }

    fn closed(&self, _: &Closed) {}
}

/// The data of a log message as text: a string unquoted, anything else as JSON.
fn text_of(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}
