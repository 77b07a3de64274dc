//! What is kept of a session: entries that are only ever added.
//!
//! Owns what an entry is, the journal that writes them, and the list of sessions. An entry is one record of the store
//! under the session's id and a running number, written only if that number is free: of two processes that go on with
//! one session, the second fails with [`SessionError::InUse`] before it has done anything. What a session *is* follows
//! from its entries alone ([`Conversation::apply`]), so a session that was resumed is the same as one that was not.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use switchboard_store::{
    ErrorKind, Expected, Key, Record, Space, Store, StoreError, Timestamp, Write,
};

use crate::agent::SessionSummary;
use crate::conversation::Conversation;
use crate::message::{Message, ToolResult};
use crate::provider::{Stop, Usage};
use crate::session::{SessionError, SessionId};

/// The entries of all sessions, each under `ID/NNNNNNNN`.
const ENTRIES: Space = Space::new("session-entries");

/// One record for each session, so that a list need not read their entries.
const SESSIONS: Space = Space::new("sessions");

/// The version of what is written here.
const VERSION: u32 = 1;

/// What one record holds at most. A larger entry is spread over several.
const MAX_RECORD_BYTES: usize = 8 << 20;

/// How a record begins that holds a part of an entry, and how one that holds the last part of it.
const PART: u8 = b'+';
const LAST_PART: u8 = b'.';

/// How many records are read at once.
const READ_AT_ONCE: usize = 128;

/// One thing that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// It began. Always the first, and only the first.
    Begun(Header),
    /// Somebody said something to the model.
    Said {
        /// What.
        message: Message,
        /// Whether it is no person's message but a note of ours.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_note: bool,
        /// The servers that the model is told of for the first time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        introduces: Vec<String>,
    },
    /// The model answered.
    Answered {
        /// What.
        message: Message,
        /// Why it stopped; not stated where it was interrupted.
        stop: Option<Stop>,
        /// What that cost.
        usage: Usage,
    },
    /// These calls are about to be made. Written before they are.
    CallsBegun {
        /// Their ids.
        calls: Vec<String>,
    },
    /// A call has ended.
    CallEnded {
        /// What came of it.
        result: ToolResult,
        /// What it cost, where it was another agent's work.
        #[serde(default, skip_serializing_if = "is_free")]
        usage: Usage,
    },
    /// The tools that the model is told of have changed.
    Tools {
        /// Those that came, in order.
        added: Vec<String>,
        /// Those that went.
        removed: Vec<String>,
        /// Whether tools of servers are searched for from now on.
        is_searching: bool,
    },
    /// The first messages were replaced by a summary.
    Compacted {
        /// How many messages.
        replaced: usize,
        /// The message in their place.
        summary: Message,
        /// What the summary cost.
        usage: Usage,
    },
}

/// What a session begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The folder it works in.
    pub(crate) workspace: PathBuf,
    /// The model it began with.
    pub(crate) model: String,
    /// What the model is told before the conversation, the same in every request.
    pub(crate) system: String,
    /// The servers that are told of in there.
    pub(crate) servers: Vec<String>,
}

/// An entry as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept<E> {
    version: u32,
    /// Milliseconds since 1970.
    at: i64,
    entry: E,
}

/// A session as the list has it.
#[derive(Serialize, Deserialize)]
struct Listed {
    workspace: PathBuf,
    title: String,
    messages: u64,
}

/// Writes what happens, and keeps the conversation that follows from it.
///
/// An append that is dropped half way is neither lost nor in doubt: it stays here and is brought to its end before the
/// next one.
pub(crate) struct Journal {
    store: Option<Arc<dyn Store>>,
    id: SessionId,
    /// The number of the next record.
    next: u64,
    pending: Option<Pending>,
    conversation: Conversation,
}

/// An entry on its way into the store.
struct Pending {
    entry: Entry,
    write: BoxFuture<'static, Written>,
}

/// How many records were written, and whether that was all.
struct Written {
    records: u64,
    outcome: Result<(), StoreError>,
}

impl Journal {
    /// The journal of a new session.
    pub(crate) fn new(store: Arc<dyn Store>, id: SessionId) -> Self {
        Self {
            store: Some(store),
            id,
            next: 0,
            pending: None,
            conversation: Conversation::default(),
        }
    }

    /// A journal that is not kept, as that of a sub-agent.
    pub(crate) fn unkept(id: SessionId) -> Self {
        Self {
            store: None,
            id,
            next: 0,
            pending: None,
            conversation: Conversation::default(),
        }
    }

    /// The journal of a stored session.
    pub(crate) async fn read(store: Arc<dyn Store>, id: SessionId) -> Result<Self, SessionError> {
        let mut journal = Self::new(store, id);
        journal.read_on().await?;
        if journal.conversation.header().is_none() {
            return Err(SessionError::Unknown(journal.id.to_string()));
        }
        Ok(journal)
    }

    /// What the entries come to.
    pub(crate) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Adds an entry. When it returns, the entry will be there after any crash.
    pub(crate) async fn append(&mut self, entry: Entry) -> Result<(), SessionError> {
        self.settle().await?;
        let Some(store) = self.store.clone() else {
            self.conversation.apply(entry);
            return Ok(());
        };
        let write = write(store, self.id.clone(), self.next, encode(&entry)?).boxed();
        self.pending = Some(Pending { entry, write });
        self.settle().await
    }

    /// Brings an append to its end that was left half way.
    pub(crate) async fn settle(&mut self) -> Result<(), SessionError> {
        let Some(pending) = &mut self.pending else {
            return Ok(());
        };
        let Written { records, outcome } = pending.write.as_mut().await;
        self.next += records;
        let Some(Pending { entry, .. }) = self.pending.take() else {
            return Ok(());
        };
        match outcome {
            Ok(()) => {
                self.conversation.apply(entry);
                Ok(())
            }
            Err(StoreError {
                kind: ErrorKind::Conflict { .. },
                ..
            }) => Err(SessionError::InUse(self.id.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts the session on the list, or its new state.
    pub(crate) async fn list(&mut self) -> Result<(), SessionError> {
        let (Some(store), Some(header)) = (&self.store, self.conversation.header()) else {
            return Ok(());
        };
        let listed = Listed {
            workspace: header.workspace.clone(),
            title: self.conversation.title().to_owned(),
            messages: self.conversation.prompts(),
        };
        let listed = to_json(&listed)?;
        let key = Key::new(self.id.as_str())?;
        store.put(SESSIONS, &key, Write::new(listed)).await?;
        Ok(())
    }

    async fn read_on(&mut self) -> Result<(), SessionError> {
        let Some(store) = self.store.clone() else {
            return Ok(());
        };
        let mut parts = Vec::new();
        let keys = keys_of(&*store, &self.id).await?;
        for keys in keys.chunks(READ_AT_ONCE) {
            for (key, record) in keys.iter().zip(store.get_many(ENTRIES, keys).await?) {
                let Some(Record { value, .. }) = record else {
                    continue;
                };
                self.next = number_of(&self.id, key).map_or(self.next, |number| number + 1);
                // Parts that are followed by no last one are of an entry that never came to be.
                let entry = match value.first() {
                    Some(&PART) => {
                        parts.extend_from_slice(&value[1..]);
                        continue;
                    }
                    Some(&LAST_PART) => {
                        parts.extend_from_slice(&value[1..]);
                        decode(&std::mem::take(&mut parts), key)?
                    }
                    _ => {
                        parts.clear();
                        decode(&value, key)?
                    }
                };
                self.conversation.apply(entry);
            }
        }
        Ok(())
    }
}

/// The stored sessions, the latest first.
pub(crate) async fn sessions(store: &dyn Store) -> Result<Vec<SessionSummary>, SessionError> {
    let mut summaries = Vec::new();
    let mut after: Option<Key> = None;
    loop {
        let listing = store.list(SESSIONS, after.as_ref()).await?;
        let keys: Vec<Key> = listing.entries.into_iter().map(|entry| entry.key).collect();
        for keys in keys.chunks(READ_AT_ONCE) {
            let records = store.get_many(SESSIONS, keys).await?;
            for (key, record) in keys.iter().zip(records) {
                summaries.extend(record.and_then(|record| summary(key, &record)));
            }
        }
        match keys.into_iter().next_back() {
            Some(last) if listing.more => after = Some(last),
            _ => break,
        }
    }
    summaries.sort_by(|left, right| {
        let latest_first = right.written_at.cmp(&left.written_at);
        latest_first.then_with(|| left.id.as_str().cmp(right.id.as_str()))
    });
    Ok(summaries)
}

/// Removes a session; `false` if there is none of that id.
pub(crate) async fn delete(store: &dyn Store, id: &SessionId) -> Result<bool, SessionError> {
    // In this order, whatever is left when it is interrupted is no session, and is still found by the next attempt.
    let mut existed = false;
    for key in keys_of(store, id).await? {
        existed |= store.remove(ENTRIES, &key, Expected::Anything).await?;
    }
    let key = Key::new(id.as_str())?;
    existed |= store.remove(SESSIONS, &key, Expected::Anything).await?;
    Ok(existed)
}

/// The keys of a session's entries, in order.
async fn keys_of(store: &dyn Store, id: &SessionId) -> Result<Vec<Key>, StoreError> {
    let mut keys = Vec::new();
    let mut after = Key::new(format!("{id}/"))?;
    loop {
        let listing = store.list(ENTRIES, Some(&after)).await?;
        let is_own = |key: &Key| number_of(id, key).is_some();
        let listed = listing.entries.len();
        let own: Vec<Key> = listing
            .entries
            .into_iter()
            .map(|entry| entry.key)
            .take_while(is_own)
            .collect();
        let ends_here = own.len() < listed || !listing.more;
        keys.extend(own);
        match keys.last() {
            Some(last) if !ends_here => after = last.clone(),
            _ => return Ok(keys),
        }
    }
}

fn number_of(id: &SessionId, key: &Key) -> Option<u64> {
    let number = key.as_str().strip_prefix(id.as_str())?.strip_prefix('/')?;
    number.parse().ok()
}

/// Writes an entry under the next free numbers.
async fn write(store: Arc<dyn Store>, id: SessionId, first: u64, entry: Vec<u8>) -> Written {
    let mut records = 0;
    let outcome = async {
        for value in split(entry) {
            let key = Key::new(format!("{id}/{:08}", first + records))?;
            let write = Write::new(value).expecting(Expected::Absent);
            store.put(ENTRIES, &key, write).await?;
            records += 1;
        }
        Ok(())
    }
    .await;
    Written { records, outcome }
}

/// The records that hold an entry: nearly always one.
fn split(entry: Vec<u8>) -> Vec<Bytes> {
    if entry.len() <= MAX_RECORD_BYTES {
        return vec![entry.into()];
    }
    let mut parts = entry.chunks(MAX_RECORD_BYTES).peekable();
    let mut records = Vec::new();
    while let Some(part) = parts.next() {
        let mark = if parts.peek().is_some() {
            PART
        } else {
            LAST_PART
        };
        let mut record = Vec::with_capacity(part.len() + 1);
        record.push(mark);
        record.extend_from_slice(part);
        records.push(record.into());
    }
    records
}

fn encode(entry: &Entry) -> Result<Vec<u8>, SessionError> {
    let at = Timestamp::from(SystemTime::now()).as_millis();
    to_json(&Kept {
        version: VERSION,
        at,
        entry,
    })
}

fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>, SessionError> {
    let unwritable = |error: serde_json::Error| {
        StoreError::new(
            ErrorKind::Unavailable,
            format!("it cannot be written: {error}"),
        )
    };
    Ok(serde_json::to_vec(value).map_err(unwritable)?)
}

fn decode(value: &[u8], key: &Key) -> Result<Entry, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let damaged = |error: serde_json::Error| {
        let message = format!("the entry {key} cannot be read: {error}");
        StoreError::new(ErrorKind::Corrupt, message)
    };
    let Version { version } = serde_json::from_slice(value).map_err(damaged)?;
    if version > VERSION {
        let kind = ErrorKind::NewerSchema {
            found: i64::from(version),
            known: i64::from(VERSION),
        };
        let message = format!("the entry {key} was written by a newer version of this program");
        return Err(StoreError::new(kind, message));
    }
    let kept: Kept<Entry> = serde_json::from_slice(value).map_err(damaged)?;
    Ok(kept.entry)
}

/// A session of the list. What cannot be read is left out: it is no reason to show no list at all.
fn summary(key: &Key, record: &Record) -> Option<SessionSummary> {
    let listed: Listed = serde_json::from_slice(&record.value).ok()?;
    Some(SessionSummary {
        id: SessionId::parse(key.as_str())?,
        workspace: listed.workspace,
        title: listed.title,
        written_at: record.written_at,
        messages: listed.messages,
    })
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

fn is_free(usage: &Usage) -> bool {
    *usage == Usage::default()
}

/// A path that can be kept: one that is no text is written as nearly as it can be.
pub(crate) fn keepable(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().into_owned())
}
