//! Earlier inputs, kept in a file.

use std::path::PathBuf;

use rustyline::Config;
use rustyline::history::{FileHistory, History as _, SearchDirection};

const MAX_ENTRIES: usize = 1_000;

pub(crate) struct History {
    file: PathBuf,
    entries: Option<FileHistory>,
    /// The entry that is shown, and the text typed before.
    shown: Option<(usize, String)>,
}

impl History {
    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self {
            file: PathBuf::new(),
            entries: None,
            shown: None,
        }
    }

    /// A missing or unreadable file counts as empty.
    pub(crate) fn load(file: PathBuf) -> Self {
        let config = Config::builder()
            .history_ignore_space(true)
            .max_history_size(MAX_ENTRIES);
        let entries = config.ok().map(|config| {
            let mut entries = FileHistory::with_config(&config.build());
            let _ = entries.load(&file);
            entries
        });
        Self {
            file,
            entries,
            shown: None,
        }
    }

    pub(super) fn add(&mut self, text: &str) {
        let Some(entries) = &mut self.entries else {
            return;
        };
        if entries.add(text).is_ok_and(|is_added| is_added) {
            // If the history cannot be written, it lasts until the program ends.
            let _ = entries.append(&self.file);
        }
    }

    /// The latest entries first, without repetitions.
    pub(crate) fn latest(&self) -> Vec<String> {
        let mut seen = std::collections::HashSet::new();
        let entries = self.entries.iter().flat_map(|entries| entries.iter().rev());
        entries
            .filter(|entry| seen.insert((*entry).clone()))
            .cloned()
            .collect()
    }

    pub(super) fn earlier(&mut self, current: &str) -> Option<String> {
        let count = self.entries.as_ref()?.len();
        let (index, typed) = match self.shown.take() {
            Some((0, typed)) => {
                self.shown = Some((0, typed));
                return None;
            }
            Some((index, typed)) => (index - 1, typed),
            None => (count.checked_sub(1)?, current.to_owned()),
        };
        self.shown = Some((index, typed));
        self.entry(index)
    }

    pub(super) fn later(&mut self) -> Option<String> {
        let (index, typed) = self.shown.take()?;
        match self.entry(index + 1) {
            Some(entry) => {
                self.shown = Some((index + 1, typed));
                Some(entry)
            }
            None => Some(typed),
        }
    }

    pub(super) fn leave(&mut self) {
        self.shown = None;
    }

    fn entry(&self, index: usize) -> Option<String> {
        let entries = self.entries.as_ref()?;
        let found = entries.get(index, SearchDirection::Forward).ok()??;
        Some(found.entry.into_owned())
    }
}
