//! The index: for every word, the tools that have it and how much it says about them.
//!
//! Owns the postings. The tools of a server lie side by side in one segment, so that a server is replaced without
//! touching the others, and an index that was updated a hundred times finds the same as one that was built today. It
//! must not know about connections.

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

/// So many slots and words may lie idle before the index is packed.
const MAX_IDLE: usize = 8 * 1024;

/// Finds tools by what they are for. It knows what it was told with [`update`](Self::update) or
/// [`replace`](Self::replace), and nothing else.
#[derive(Debug)]
pub struct Index {
    pub(super) vocabulary: Vocabulary,
    /// By term: groups of words that mean the same come first, then words.
    postings: Vec<Vec<Posting>>,
    pub(super) slots: Vec<Option<Tool>>,
    /// In the order of the servers' names.
    pub(super) segments: Vec<Segment>,
    /// Slots by the hash of the exposed and of the bare name, lower-case.
    names: HashMap<u64, Vec<u32>, RandomState>,
    tools: usize,
    /// Slots that belong to no segment.
    idle: usize,
    /// How many words there were when the index was last packed.
    packed_words: usize,
    /// The tool that writes each kind of file, looked up when first needed.
    pub(super) file_writers: Vec<OnceLock<Option<u32>>>,
    /// Whether such a tool is added to results.
    pub(super) adds_file_writers: bool,
    writer: Writer,
}

/// That a tool has a word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) slot: u32,
    /// What the word says about the tool, from 0 to 1.
    pub(super) weight: f32,
}

/// A tool that is indexed.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: ExposedName,
    pub(super) reference: ToolRef,
    /// The same for tools with the same bare name, whatever their server.
    pub(super) likeness: u64,
}

/// The tools of one server. The first slot is that of its instructions.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) server: ServerName,
    pub(super) start: u32,
    /// How many slots it uses, with the first.
    pub(super) length: u32,
    /// How many slots belong to it. Those that it does not use have no score.
    pub(super) capacity: u32,
    /// Every term that one of its slots has.
    terms: Vec<u32>,
    source: Option<Source>,
}

/// Where a segment comes from. That the lists are held makes sure that no other list has their address.
#[derive(Debug, PartialEq)]
struct Source {
    tools: Held<ServerTools>,
    instructions: Option<Held<str>>,
    withheld: Vec<usize>,
}

/// Something shared that is the same only if it is the very same.
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
    /// An index with no tools.
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

    /// Answers with matching tools only, without the tool that writes a file that the question names. For measuring.
    #[must_use]
    pub fn without_file_writers(mut self) -> Self {
        self.adds_file_writers = false;
        self
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools == 0
    }

    /// Makes it an index of this catalogue. Servers that have not changed since cost a comparison.
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

    /// Makes these the tools of a server.
    pub fn replace<'a>(
        &mut self,
        server: &ServerName,
        instructions: &str,
        documents: impl IntoIterator<Item = Document<'a>>,
    ) {
        self.write(server, instructions, documents, None);
    }

    /// Forgets a server.
    pub fn remove(&mut self, server: &ServerName) {
        if let Ok(position) = self.position(server) {
            let segment = self.segments.remove(position);
            self.clear(&segment);
            self.idle += segment.capacity as usize;
            self.forget_file_writers();
            self.pack_if_idle();
        }
    }

    /// The tools that have a term, and what it says about each.
    pub(super) fn postings(&self, term: u32) -> &[Posting] {
        self.postings
            .get(term as usize)
            .map_or(&[], |postings| postings)
    }

    /// The term of a word by its number in the vocabulary.
    pub(super) fn term(number: u32) -> u32 {
        first_word().saturating_add(number)
    }

    /// The slots of tools that may have that name, exposed or bare; lower-case.
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

    /// Finds room for a segment: where it is, or behind all others.
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

    /// Takes everything of a segment out of the index, and leaves its slots.
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

    /// So that a mistyped word may be corrected to one that no tool has, but others that mean the same.
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

    /// Drops slots of no segment and words of no tool.
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

/// Segments begin at multiples of this, so that scores can be looked over in registers.
pub(super) const LANES: usize = 8;

fn rounded_up(slots: u32) -> u32 {
    slots.next_multiple_of(to_u32(LANES))
}

/// The term of the first word; those before are groups.
fn first_word() -> u32 {
    to_u32(Lexicon::get().groups())
}

fn moved_to(moved: &[u32], from: u32) -> u32 {
    moved.get(from as usize).copied().unwrap_or_default()
}

fn names_of(tool: &Tool) -> [u64; 2] {
    [likeness(&tool.name.as_str().to_lowercase()), tool.likeness]
}

/// Slots and words are far fewer than that: servers, tools and what is read of each are bounded.
pub(super) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
