//! Keeps what servers write, so that `switchboard logs` shows it after they have ended.
//!
//! Lines are appended to a log of the state store: private, and bounded in age and size. The host has redacted the
//! server's secrets; what looks like another secret is masked here.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use switchboard::{Event, Host, LogLine, LogSource};
use switchboard_config::mask;
use switchboard_store::{LogEntry, LogQuery, Retention, Space, Store, StoreError, Timestamp};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const LOG: Space = Space::new("server-logs");
const RETENTION: Retention = Retention {
    max_age: Duration::from_secs(14 * 24 * 60 * 60),
    max_bytes: 4 * 1024 * 1024,
};
/// Longest kept line, in characters.
const MAX_LINE: usize = 4 * 1024;
/// Most lines that are written at once.
const MAX_BATCH: usize = 256;
/// Most pages of the log that are searched for the lines of one server.
const MAX_PAGES: usize = 32;

/// A kept line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptLine {
    /// The server's name.
    server: String,
    /// Which run of the program it belongs to.
    pub(crate) run: String,
    stream: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logger: Option<String>,
    text: String,
}

impl KeptLine {
    fn new(server: &str, run: &str, line: &LogLine) -> Self {
        let (stream, level, logger) = match &line.source {
            LogSource::Stderr => ("stderr", None, None),
            LogSource::Noise => ("noise", None, None),
            LogSource::Message { level, logger } => ("log", Some(level.clone()), logger.clone()),
        };
        let text: String = line.text.chars().take(MAX_LINE).collect();
        Self {
            server: server.to_owned(),
            run: run.to_owned(),
            stream: stream.to_owned(),
            level,
            logger,
            text: mask::message(&text).into_owned(),
        }
    }

    /// The line as the host had it.
    pub(crate) fn line(&self) -> LogLine {
        let source = match self.stream.as_str() {
            "log" => LogSource::Message {
                level: self.level.clone().unwrap_or_default(),
                logger: self.logger.clone(),
            },
            "noise" => LogSource::Noise,
            _ => LogSource::Stderr,
        };
        LogLine {
            source,
            text: self.text.clone(),
        }
    }
}

/// Records the lines of a host's servers until it is stopped.
pub(crate) struct Recorder {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Recorder {
    pub(crate) fn start(host: &Host, store: Arc<dyn Store>) -> Self {
        let events = host.server_events();
        let (stop, stopped) = oneshot::channel();
        let now = Timestamp::from(SystemTime::now()).as_millis();
        let run = format!("{now}-{}", std::process::id());
        let task = tokio::spawn(record(events, store, run, stopped));
        Self { stop, task }
    }

    /// Writes what has arrived, and ends.
    pub(crate) async fn stop(self) {
        // A task that has ended by itself has written everything.
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

async fn record(
    mut events: Receiver<Event>,
    store: Arc<dyn Store>,
    run: String,
    mut stopped: oneshot::Receiver<()>,
) {
    loop {
        let event = tokio::select! {
            event = events.recv() => Some(event),
            _ = &mut stopped => None,
        };
        let is_last = event.is_none();
        let mut batch = Vec::new();
        match event {
            Some(Ok(event)) => batch.extend(entry(event, &run)),
            Some(Err(RecvError::Closed)) => return,
            // The oldest lines are lost; the following ones are kept.
            Some(Err(RecvError::Lagged(_))) | None => {}
        }
        while batch.len() < MAX_BATCH || is_last {
            match events.try_recv() {
                Ok(event) => batch.extend(entry(event, &run)),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if !batch.is_empty()
            && let Err(error) = store.append(LOG, batch, RETENTION).await
        {
            tracing::warn!(%error, "failed to keep the output of a server");
            return;
        }
        if is_last {
            return;
        }
    }
}

fn entry(event: Event, run: &str) -> Option<LogEntry> {
    let Event::Log { server, line } = event else {
        return None;
    };
    let value = serde_json::to_vec(&KeptLine::new(server.as_str(), run, &line)).ok()?;
    Some(LogEntry {
        at: Timestamp::from(SystemTime::now()),
        value: value.into(),
    })
}

/// The last lines that a server wrote, oldest first.
pub(crate) async fn kept(
    store: &dyn Store,
    server: &str,
    most: usize,
) -> Result<Vec<(Timestamp, KeptLine)>, StoreError> {
    let mut lines = Vec::new();
    let mut before = None;
    for _ in 0..MAX_PAGES {
        let query = LogQuery {
            before,
            ..LogQuery::default()
        };
        let page = store.read_log(LOG, query).await?;
        let Some(last) = page.last() else { break };
        before = Some(last.number);
        for logged in page {
            let line: Option<KeptLine> = serde_json::from_slice(&logged.value).ok();
            lines.extend(
                line.filter(|line| line.server == server)
                    .map(|line| (logged.at, line)),
            );
        }
        if lines.len() >= most {
            break;
        }
    }
    lines.truncate(most);
    lines.reverse();
    Ok(lines)
}
