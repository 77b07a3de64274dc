//! Inverted index: the tools that contain each word, with weights.
//!
//! The tools of a server are adjacent in one segment, so that a server can be replaced without touching the others, and
//! an index after a hundred updates returns the same results as a fresh one. Independent of connections.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use foldhash::quality::RandomState;

use super::document::Document;
use super::lexicon::Lexicon;
use super::vocabulary::Vocabulary;
use super::writer::{Writer, Written, likeness};
use super::written_file::WrittenFile;
use crate::catalog::{Catalog, CatalogServer, ServerTools};
use crate::names::{ExposedName, ServerName, ToolRef};

/// Number of unused slots and words above which the index is packed.
const MAX_IDLE: usize = 8 * 1024;

/// Search index over tools. Filled with [`update`](Self::update) or [`replace`](Self::replace).
#[derive(Debug)]
pub struct Index {
    pub(super) vocabulary: Vocabulary,
    /// By term: synonym groups come first, then words.
    postings: Vec<Vec<Posting>>,
    pub(super) slots: Vec<Option<Tool>>,
    /// Sorted by server name.
    pub(super) segments: Vec<Segment>,
    /// Slots by the hash of the exposed and of the bare name, lower-case.
    names: HashMap<u64, Vec<u32>, RandomState>,
    tools: usize,
    /// Number of slots that belong to no segment.
    idle: usize,
    /// Number of words when the index was last packed.
    packed_words: usize,
    /// Tool that writes each kind of file, computed on first use.
    pub(super) file_writers: Vec<OnceLock<Option<u32>>>,
    /// Whether such a tool is added to results.
    pub(super) adds_file_writers: bool,
    writer: Writer,
}

/// Occurrence of a term in a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) slot: u32,
    /// Weight of the term for the tool, around 1 at most.
    pub(super) weight: f32,
}

#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: ExposedName,
    pub(super) reference: ToolRef,
    /// Hash of the bare name: equal for namesakes on all servers.
    pub(super) likeness: u64,
    /// Factor in the weights of its postings that evens out long and short texts.
    pub(super) factor: f32,
}

/// Tools of one server. The first slot is for its instructions.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) server: ServerName,
    pub(super) start: u32,
    /// Number of used slots, including the first.
    pub(super) length: u32,
    /// Number of reserved slots. Unused ones have no score.
    pub(super) capacity: u32,
    /// All terms of its slots.
    terms: Vec<u32>,
    source: Option<Source>,
}

/// Origin of a segment. Holding the lists ensures that no new list reuses their address.
#[derive(Debug, PartialEq)]
struct Source {
    tools: Held<ServerTools>,
    instructions: Option<Held<str>>,
    withheld: Vec<usize>,
}

/// Shared value that is compared by address.
#[derive(Debug)]
struct Held<T: ?Sized>(Arc<T>);

impl<T: ?Sized> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// Creates an empty index.
    pub fn new() -> Self {
        let mut index = Self {
            vocabulary: Vocabulary::default(),
            postings: vec![Vec::new(); Lexicon::get().groups()],
            slots: Vec::new(),
            segments: Vec::new(),
            names: HashMap::default(),
            tools: 0,
            idle: 0,
            packed_words: 0,
            file_writers: Vec::new(),
            adds_file_writers: true,
            writer: Writer::default(),
        };
        index.learn_synonyms();
        index.forget_file_writers();
        index
    }

    /// Disables adding the tool that writes the file named in a query. For measurements.
    #[must_use]
    pub fn without_file_writers(mut self) -> Self {
        self.adds_file_writers = false;
        self
    }

    /// Number of indexed tools.
    pub fn len(&self) -> usize {
        self.tools
    }

    /// Whether no tools are indexed.
    pub fn is_empty(&self) -> bool {
        self.tools == 0
    }

    /// Synchronizes the index with this catalogue. An unchanged server costs one comparison.
    pub fn update(&mut self, catalog: &Catalog) {
        let servers = catalog.servers();
        let is_gone = |segment: &Segment| {
            servers
                .binary_search_by(|server| server.name().cmp(&segment.server))
                .is_err()
        };
        let gone: Vec<ServerName> = self
            .segments
            .iter()
            .filter(|segment| is_gone(segment))
            .map(|segment| segment.server.clone())
            .collect();
        for server in &gone {
            self.remove(server);
        }
        for server in servers {
            let source = Source::of(server);
            let known = self.position(server.name()).ok();
            let known = known.and_then(|position| self.segments.get(position));
            if known.is_some_and(|segment| segment.source.as_ref() == Some(&source)) {
                continue;
            }
            let instructions = server.instructions().unwrap_or_default();
            let documents = server.tools().map(Document::from);
            self.write(server.name(), instructions, documents, Some(source));
        }
    }

    /// Replaces the tools of a server.
    pub fn replace<'a>(
        &mut self,
        server: &ServerName,
        instructions: &str,
        documents: impl IntoIterator<Item = Document<'a>>,
    ) {
        self.write(server, instructions, documents, None);
    }

    /// Removes a server and its tools.
    pub fn remove(&mut self, server: &ServerName) {
        if let Ok(position) = self.position(server) {
            let segment = self.segments.remove(position);
            self.clear(&segment);
            self.idle += segment.capacity as usize;
            self.forget_file_writers();
            self.pack_if_idle();
        }
    }

    /// Returns the postings of a term.
    pub(super) fn postings(&self, term: u32) -> &[Posting] {
        self.postings
            .get(term as usize)
            .map_or(&[], |postings| postings)
    }

    /// Converts the number of a word in the vocabulary to a term.
    pub(super) fn term(number: u32) -> u32 {
        first_word().saturating_add(number)
    }

    /// Whether a term is a word and not a synonym group.
    pub(super) fn is_word(term: u32) -> bool {
        term >= first_word()
    }

    /// Returns the slots of tools that may have this lower-case name, exposed or bare.
    pub(super) fn named(&self, name: &str) -> &[u32] {
        self.names
            .get(&likeness(name))
            .map_or(&[], |slots| slots.as_slice())
    }

    fn position(&self, server: &ServerName) -> Result<usize, usize> {
        self.segments
            .binary_search_by(|segment| segment.server.cmp(server))
    }

    fn write<'a>(
        &mut self,
        server: &ServerName,
        instructions: &str,
        documents: impl IntoIterator<Item = Document<'a>>,
        source: Option<Source>,
    ) {
        let position = self.position(server);
        let mut segment = match position {
            Ok(position) => {
                let segment = self.segments.remove(position);
                self.clear(&segment);
                segment
            }
            Err(_) => Segment {
                server: server.clone(),
                start: to_u32(self.slots.len()),
                length: 0,
                capacity: 0,
                terms: Vec::new(),
                source: None,
            },
        };
        segment.source = source;
        let mut written = Written::default();
        self.writer
            .instructions(&mut self.vocabulary, instructions, &mut written);
        let mut documents: Vec<Document<'_>> = documents.into_iter().collect();
        documents.sort_by(|left, right| left.name.cmp(&right.name));
        for document in documents {
            self.writer
                .tool(&mut self.vocabulary, server, &document, &mut written);
        }
        self.place(&mut segment, written.tools.len() + 1);
        self.fill(&mut segment, written);
        let position = self.position(server).unwrap_or_else(|position| position);
        self.segments.insert(position, segment);
        self.forget_file_writers();
        self.pack_if_idle();
    }

    /// Allocates slots for a segment: in place if they fit, else at the end.
    fn place(&mut self, segment: &mut Segment, length: usize) {
        segment.length = to_u32(length);
        if length > segment.capacity as usize {
            self.idle += segment.capacity as usize;
            segment.start = to_u32(self.slots.len());
            segment.capacity = rounded_up(segment.length);
            self.slots.resize_with(
                rounded_up(to_u32(self.slots.len() + length)) as usize,
                || None,
            );
        }
    }

    fn fill(&mut self, segment: &mut Segment, written: Written) {
        self.postings
            .resize_with(first_word() as usize + self.vocabulary.len(), Vec::new);
        segment.terms.clear();
        for (term, place, weight) in written.postings {
            if let Some(postings) = self.postings.get_mut(term as usize) {
                let slot = segment.start + place;
                postings.push(Posting { slot, weight });
                segment.terms.push(term);
            }
        }
        segment.terms.sort_unstable();
        segment.terms.dedup();
        segment.terms.shrink_to_fit();
        self.tools += written.tools.len();
        for (slot, tool) in (segment.start + 1..).zip(written.tools) {
            for name in names_of(&tool) {
                self.names.entry(name).or_default().push(slot);
            }
            if let Some(place) = self.slots.get_mut(slot as usize) {
                *place = Some(tool);
            }
        }
    }

    /// Removes all entries of a segment and keeps its slots.
    fn clear(&mut self, segment: &Segment) {
        let range = segment.start..segment.start + segment.length;
        for term in &segment.terms {
            if let Some(postings) = self.postings.get_mut(*term as usize) {
                postings.retain(|posting| !range.contains(&posting.slot));
            }
        }
        for slot in range.skip(1) {
            let place = self.slots.get_mut(slot as usize);
            let Some(tool) = place.and_then(Option::take) else {
                continue;
            };
            self.tools -= 1;
            for name in names_of(&tool) {
                if let Some(slots) = self.names.get_mut(&name) {
                    slots.retain(|other| *other != slot);
                    if slots.is_empty() {
                        self.names.remove(&name);
                    }
                }
            }
        }
    }

    /// Adds all synonyms, so that a typo can be corrected to a word whose synonyms occur in tools.
    fn learn_synonyms(&mut self) {
        for word in Lexicon::get().grouped_words() {
            self.vocabulary.number(word);
        }
        self.packed_words = self.vocabulary.len();
    }

    fn forget_file_writers(&mut self) {
        self.file_writers.clear();
        self.file_writers
            .resize_with(WrittenFile::COUNT, OnceLock::new);
    }

    fn pack_if_idle(&mut self) {
        let is_sparse = self.idle > MAX_IDLE && self.idle > self.slots.len() / 2;
        let has_grown = self.vocabulary.len() > 2 * self.packed_words + MAX_IDLE;
        if is_sparse || has_grown {
            self.pack();
        }
    }

    /// Drops slots without a segment and words without a tool.
    pub(super) fn pack(&mut self) {
        let mut old = std::mem::take(self);
        self.adds_file_writers = old.adds_file_writers;
        let mut moved_slots = vec![0_u32; old.slots.len()];
        for segment in &mut old.segments {
            let start = to_u32(self.slots.len());
            let slots = segment.start..segment.start + segment.length;
            for (new, old_slot) in (start..).zip(slots) {
                if let Some(moved) = moved_slots.get_mut(old_slot as usize) {
                    *moved = new;
                }
                let tool = old.slots.get_mut(old_slot as usize);
                self.slots.push(tool.and_then(Option::take));
            }
            segment.start = start;
            segment.capacity = rounded_up(segment.length);
            self.slots
                .resize_with(rounded_up(to_u32(self.slots.len())) as usize, || None);
        }
        let mut moved_terms = vec![0_u32; old.postings.len()];
        for ((term, mut postings), moved) in (0_u32..).zip(old.postings).zip(&mut moved_terms) {
            if postings.is_empty() {
                continue;
            }
            *moved = match term.checked_sub(first_word()) {
                None => term,
                Some(number) => {
                    let word = old.vocabulary.word(number).unwrap_or_default();
                    Self::term(self.vocabulary.number(word))
                }
            };
            for posting in &mut postings {
                posting.slot = moved_to(&moved_slots, posting.slot);
            }
            let place = *moved as usize;
            if self.postings.len() <= place {
                self.postings.resize_with(place + 1, Vec::new);
            }
            if let Some(place) = self.postings.get_mut(place) {
                *place = postings;
            }
        }
        for segment in &mut old.segments {
            for term in &mut segment.terms {
                *term = moved_to(&moved_terms, *term);
            }
        }
        for slots in old.names.values_mut() {
            for slot in slots {
                *slot = moved_to(&moved_slots, *slot);
            }
        }
        self.segments = old.segments;
        self.names = old.names;
        self.tools = old.tools;
        self.packed_words = self.vocabulary.len();
    }
}

impl Source {
    fn of(server: &CatalogServer) -> Self {
        Self {
            tools: Held(Arc::clone(server.list())),
            instructions: server.shared_instructions().cloned().map(Held),
            withheld: server.withheld().collect(),
        }
    }
}

/// Segments start at multiples of this, so that scores can be scanned with SIMD.
pub(super) const LANES: usize = 8;

fn rounded_up(slots: u32) -> u32 {
    slots.next_multiple_of(to_u32(LANES))
}

/// First term that is a word; lower ones are synonym groups.
fn first_word() -> u32 {
    to_u32(Lexicon::get().groups())
}

fn moved_to(moved: &[u32], from: u32) -> u32 {
    moved.get(from as usize).copied().unwrap_or_default()
}

fn names_of(tool: &Tool) -> [u64; 2] {
    [likeness(&tool.name.as_str().to_lowercase()), tool.likeness]
}

/// Cannot overflow: servers, tools and indexed texts are bounded.
pub(super) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
