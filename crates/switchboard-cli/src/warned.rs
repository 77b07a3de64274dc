//! Remembers which warnings about configuration files were shown, so that each is shown once a day.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use switchboard_config::diagnostic::Diagnostic;
use switchboard_config::files::{Disk, Files as _};

use crate::store;

/// Name of the file in the state folder.
const FILE: &str = "warned.json";
/// How long a warning is not repeated.
const QUIET: Duration = Duration::from_secs(24 * 60 * 60);
/// Most warnings that are remembered.
const MAX_WARNINGS: usize = 500;

/// When each warning was shown, in seconds since 1970, by its digest.
type Shown = BTreeMap<String, u64>;

/// The diagnostics that were not shown in the last day. Marks them as shown.
pub(crate) fn unseen(diagnostics: &[Diagnostic], state: &Path) -> Vec<Diagnostic> {
    if diagnostics.is_empty() {
        return Vec::new();
    }
    let (path, mut shown, now) = read(state);
    let fresh: Vec<Diagnostic> = diagnostics
        .iter()
        .filter(|diagnostic| !shown.contains_key(&digest(diagnostic)))
        .cloned()
        .collect();
    if !fresh.is_empty() && shown.len() + fresh.len() <= MAX_WARNINGS {
        shown.extend(fresh.iter().map(|diagnostic| (digest(diagnostic), now)));
        write(&path, &shown);
    }
    fresh
}

/// Whether a warning was not shown in the last day. Marks it as shown.
#[cfg(unix)]
pub(crate) fn is_new(message: &str, state: &Path) -> bool {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    let digest = format!("{:016x}", hasher.finish());
    let (path, mut shown, now) = read(state);
    if shown.contains_key(&digest) {
        return false;
    }
    shown.insert(digest, now);
    write(&path, &shown);
    true
}

/// What was shown within the last day, its file, and the time.
fn read(state: &Path) -> (PathBuf, Shown, u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    let path = state.join(FILE);
    let bytes = Disk.read(&path).ok().flatten().unwrap_or_default();
    let mut shown: Shown = serde_json::from_slice(&bytes).unwrap_or_default();
    // A clock that was set back makes an entry of the future stale.
    shown.retain(|_, at| {
        now.checked_sub(*at)
            .is_some_and(|age| age < QUIET.as_secs())
    });
    (path, shown, now)
}

/// If it cannot be written, the warnings are shown again.
fn write(path: &Path, shown: &Shown) {
    let text = serde_json::to_string(shown).unwrap_or_default();
    let _ = store::replace(path, &text);
}

/// Identifies a warning by what it says and the file it is about. A line that moves does not make it new.
fn digest(diagnostic: &Diagnostic) -> String {
    let mut hasher = DefaultHasher::new();
    diagnostic.code.hash(&mut hasher);
    diagnostic.message.hash(&mut hasher);
    diagnostic.server.hash(&mut hasher);
    diagnostic.place.file().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
