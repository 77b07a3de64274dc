//! Append-only journal of a session, and the list of stored sessions.
//!
//! Each entry is a record in the store, under the session's id and a sequence number, written only if that number is
//! free: if two agents continue one session, the second fails with [`SessionError::InUse`] before it does anything.
//! The state follows from the entries alone ([`Conversation::apply`]), so resuming a session restores it exactly.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use switchboard_config::sort;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use switchboard_store::{
    ErrorKind, Expected, Key, Record, Space, Store, StoreError, Timestamp, Write,
};

use crate::agent::SessionSummary;
use crate::changes::Changes;
use crate::conversation::Conversation;
use crate::message::{Message, ToolResult};
use crate::provider::{Stop, Usage};
use crate::session::{SessionError, SessionId};
use crate::sub_agents::SubAgents;

/// Entries of all sessions and sub-agents, under `ID/NNNNNNNN`.
const ENTRIES: Space = Space::new("session-entries");

/// One record per session, so that listing them need not read their entries.
const SESSIONS: Space = Space::new("sessions");

/// Version of the entry format.
const VERSION: u32 = 1;

/// Maximum size of a record. Larger entries are split.
const MAX_RECORD_BYTES: usize = 8 << 20;

/// First byte of a record that holds a part of an entry, and of one that holds its last part.
const PART: u8 = b'+';
const LAST_PART: u8 = b'.';

/// Batch size of reads.
const READ_AT_ONCE: usize = 128;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// Session start. The first entry, and only the first.
    Begun(Header),
    /// Message to the model.
    Said {
        message: Message,
        /// Whether the program wrote it, not the user.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_note: bool,
        /// Servers introduced to the model by this message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        introduces: Vec<String>,
    },
    /// Answer of the model.
    Answered {
        message: Message,
        /// `None` if it was interrupted.
        stop: Option<Stop>,
        usage: Usage,
    },
    /// Calls that are about to run. Written before they start.
    CallsBegun {
        /// Call ids.
        calls: Vec<String>,
    },
    CallEnded {
        result: ToolResult,
        /// Usage of a sub-agent; zero for other calls.
        #[serde(default, skip_serializing_if = "is_free")]
        usage: Usage,
    },
    /// Change of the listed tools.
    Tools {
        /// In order.
        added: Vec<String>,
        removed: Vec<String>,
        /// Whether server tools are found by search from now on.
        is_searching: bool,
    },
    /// The oldest messages were replaced by a summary.
    Compacted {
        /// Number of replaced messages.
        replaced: usize,
        summary: Message,
        usage: Usage,
    },
}

/// Fixed data of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) workspace: PathBuf,
    /// The model that the session started with.
    pub(crate) model: String,
    /// System prompt, the same in every request.
    pub(crate) system: String,
    /// Servers introduced in the system prompt.
    pub(crate) servers: Vec<String>,
}

/// Stored form of an entry.
#[derive(Serialize, Deserialize)]
struct StoredEntry<E> {
    version: u32,
    /// Milliseconds since 1970.
    at: i64,
    entry: E,
}

/// Record of a session in the list.
#[derive(Serialize, Deserialize)]
struct Listed {
    workspace: PathBuf,
    title: String,
    messages: u64,
}

/// Writes entries, and applies them to the conversation.
///
/// An append that is dropped half way is not lost: it stays pending and is completed before the next one.
pub(crate) struct Journal {
    store: Arc<dyn Store>,
    id: SessionId,
    /// Whether it is in the list of sessions.
    is_listed: bool,
    /// Sequence number of the next record.
    next: u64,
    pending: Option<Pending>,
    conversation: Conversation,
}

/// An entry that is being written.
struct Pending {
    entry: Entry,
    write: BoxFuture<'static, Written>,
}

/// Number of records written, and the error if any failed.
struct Written {
    records: u64,
    outcome: Result<(), StoreError>,
}

impl Journal {
    pub(crate) fn new(store: Arc<dyn Store>, id: SessionId) -> Self {
        Self {
            store,
            id,
            is_listed: true,
            next: 0,
            pending: None,
            conversation: Conversation::default(),
        }
    }

    /// The journal of a sub-agent, which is not a session of its own.
    pub(crate) fn of_sub_agent(store: Arc<dyn Store>, id: SessionId) -> Self {
        Self {
            is_listed: false,
            ..Self::new(store, id)
        }
    }

    /// Loads the journal of a stored session.
    pub(crate) async fn read(store: Arc<dyn Store>, id: SessionId) -> Result<Self, SessionError> {
        let mut journal = Self::new(store, id);
        journal.read_on().await?;
        if journal.conversation.header().is_none() {
            return Err(SessionError::Unknown(journal.id.to_string()));
        }
        Ok(journal)
    }

    pub(crate) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Adds an entry. Once it returns, the entry is durable.
    pub(crate) async fn append(&mut self, entry: Entry) -> Result<(), SessionError> {
        self.settle().await?;
        let store = Arc::clone(&self.store);
        let write = write(store, self.id.clone(), self.next, encode(&entry)?).boxed();
        self.pending = Some(Pending { entry, write });
        self.settle().await
    }

    /// Completes a pending append.
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
            }) => Err(SessionError::InUse {
                session: self.id.to_string(),
                pid: None,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the session's record in the list.
    pub(crate) async fn list(&mut self) -> Result<(), SessionError> {
        let Some(header) = self.conversation.header().filter(|_| self.is_listed) else {
            return Ok(());
        };
        let listed = Listed {
            workspace: header.workspace.clone(),
            title: self.conversation.title().to_owned(),
            messages: self.conversation.prompts(),
        };
        let listed = to_json(&listed)?;
        let key = Key::new(self.id.as_str())?;
        self.store.put(SESSIONS, &key, Write::new(listed)).await?;
        Ok(())
    }

    /// Loads the whole conversation of a session, with the messages that were replaced by summaries.
    pub(crate) async fn transcript(
        store: Arc<dyn Store>,
        id: SessionId,
    ) -> Result<Vec<Message>, SessionError> {
        let mut whole = Self::new(store, id);
        whole.read_entries(Replay::Uncompacted).await?;
        Ok(whole.conversation.messages().to_vec())
    }

    async fn read_on(&mut self) -> Result<(), SessionError> {
        self.read_entries(Replay::All).await
    }

    async fn read_entries(&mut self, replay: Replay) -> Result<(), SessionError> {
        let store = Arc::clone(&self.store);
        let mut parts = Vec::new();
        let keys = keys_of(&*store, &self.id).await?;
        for keys in keys.chunks(READ_AT_ONCE) {
            for (key, record) in keys.iter().zip(store.get_many(ENTRIES, keys).await?) {
                let Some(Record { value, .. }) = record else {
                    continue;
                };
                self.next = number_of(&self.id, key).map_or(self.next, |number| number + 1);
                // Parts without a last part belong to an entry that was not completely written.
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
                let is_summary = matches!(entry, Entry::Compacted { .. });
                if replay == Replay::All || !is_summary {
                    self.conversation.apply(entry);
                }
            }
        }
        Ok(())
    }
}

/// Which entries are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replay {
    All,
    /// All but summaries.
    Uncompacted,
}

/// Lists the stored sessions, newest first.
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
    sort::by(&mut summaries, |left, right| {
        let latest_first = right.written_at.cmp(&left.written_at);
        latest_first.then_with(|| left.id.as_str().cmp(right.id.as_str()))
    });
    Ok(summaries)
}

/// Deletes a session; `false` if the id is unknown.
pub(crate) async fn delete(store: &dyn Store, id: &SessionId) -> Result<bool, SessionError> {
    // Entries first: an interrupted deletion leaves no readable session, and the next attempt still finds the rest.
    SubAgents::delete(store, id).await?;
    Changes::delete(store, id).await?;
    let mut existed = delete_entries(store, id).await?;
    let key = Key::new(id.as_str())?;
    existed |= store.remove(SESSIONS, &key, Expected::Anything).await?;
    Ok(existed)
}

/// Deletes the entries of a session or sub-agent; `false` if there are none.
pub(crate) async fn delete_entries(store: &dyn Store, id: &SessionId) -> Result<bool, StoreError> {
    let mut existed = false;
    for key in keys_of(store, id).await? {
        existed |= store.remove(ENTRIES, &key, Expected::Anything).await?;
    }
    Ok(existed)
}

/// Keys of a session's entries, in order.
async fn keys_of(store: &dyn Store, id: &SessionId) -> Result<Vec<Key>, StoreError> {
    let keys = keys_below(store, ENTRIES, id).await?;
    let is_entry = |key: &Key| number_of(id, key).is_some();
    Ok(keys.into_iter().filter(is_entry).collect())
}

/// Records of a space under `ID/`, in order.
pub(crate) async fn all_below(
    store: &dyn Store,
    space: Space,
    id: &SessionId,
) -> Result<Vec<(Key, Bytes)>, StoreError> {
    let mut found = Vec::new();
    let keys = keys_below(store, space, id).await?;
    for keys in keys.chunks(READ_AT_ONCE) {
        let records = store.get_many(space, keys).await?;
        let records = keys.iter().zip(records);
        found.extend(records.filter_map(|(key, record)| Some((key.clone(), record?.value))));
    }
    Ok(found)
}

async fn keys_below(
    store: &dyn Store,
    space: Space,
    id: &SessionId,
) -> Result<Vec<Key>, StoreError> {
    let mut keys = Vec::new();
    let start = format!("{id}/");
    let mut after = Key::new(start.as_str())?;
    loop {
        let listing = store.list(space, Some(&after)).await?;
        let is_own = |key: &Key| key.as_str().starts_with(&start);
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

/// Splits an entry into records; nearly always one.
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
    to_json(&StoredEntry {
        version: VERSION,
        at,
        entry,
    })
}

fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>, SessionError> {
    let unwritable = |error: serde_json::Error| {
        StoreError::new(
            ErrorKind::Unavailable,
            format!("cannot be serialized: {error}"),
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
    let stored: StoredEntry<Entry> = serde_json::from_slice(value).map_err(damaged)?;
    Ok(stored.entry)
}

/// Decodes a record of the list. Unreadable records are skipped, so that the others are still listed.
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

/// Converts a path for storage; invalid UTF-8 is replaced.
pub(crate) fn keepable(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().into_owned())
}
