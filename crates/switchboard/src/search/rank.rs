//! Ranking: scores tools for a query and returns the best.
//!
//! BM25 over the terms of the query, adjusted by the server's best score, the server's instructions, and namesakes on
//! other servers. Ties follow the catalogue order, so that the same tools and query always give the same list. Changes
//! nothing in the index except for cached file writers.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashSet;

use super::common_words::CommonWords;
use super::index::{Index, LANES, Posting, Tool, to_u32};
use super::lexicon::Lexicon;
use super::query::{Query, Word, selected};
use super::written_file::WrittenFile;
use crate::names::{ExposedName, ToolRef};

/// Factor for synonyms of a query word.
const SYNONYM: f32 = 0.6;

/// Factor for words related to a query word.
const LEADS_TO: f32 = 0.8;

/// Factor for corrected or completed words.
const GUESSED: f32 = 0.7;

/// Share of a server's best score that goes to each of its matching tools: related tools are on one server.
const SERVER: f32 = 0.3;

/// Share of the score of a server's instructions that goes to its tools.
const INSTRUCTIONS: f32 = 0.2;

/// Factor per better tool of the same name: duplicates on other servers are less useful.
const NAMESAKE: f32 = 0.8;

/// Maximum number of hits of one search.
const MAX_HITS: usize = 1000;

/// Minimum weight of a word in a tool's name. A tool that writes files says so in its name.
const IN_NAME: f32 = 0.65;

/// Minimum limit at which a file writer is added to the results.
const MIN_PLACES: usize = 3;

/// Minimum length of an incomplete word.
const MIN_START: usize = 3;

/// A tool found by a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Exposed name.
    pub name: ExposedName,
    /// Server name and wire name.
    pub tool: ToolRef,
    /// Relevance; comparable within one list only. Never increases from one hit to the next.
    pub score: f32,
}

/// A candidate for the results.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    slot: u32,
    score: f32,
    /// Position of its server. Together with the slot it gives the catalogue order.
    server: u32,
    /// Hash of the bare name: equal for namesakes.
    likeness: u64,
}

thread_local! {
    /// Reused buffer: one score per slot.
    static SCORES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl Index {
    /// Returns the tools that match a query best, best first.
    ///
    /// A query may be a few keywords or several sentences. A tool that it names, by exposed name, bare name or
    /// `server/tool`, comes first. `select:` with comma-separated names returns exactly those tools. Returns at most a
    /// thousand hits.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let limit = limit.min(MAX_HITS);
        if limit == 0 {
            return Vec::new();
        }
        if let Some(names) = selected(query) {
            return self.select(names, limit);
        }
        let query = Query::parse(query);
        let found = SCORES.with_borrow_mut(|scores| {
            scores.clear();
            scores.resize(self.slots.len(), 0.0);
            self.score(&query, scores);
            self.favour_named(&query, scores);
            self.best(scores, limit)
        });
        let found = Self::spread(found, limit);
        let found = self.with_file_writer(found, query.written_file, limit);
        let hits = found.into_iter();
        hits.filter_map(|found| self.hit(found.slot, found.score))
            .collect()
    }

    fn select<'q>(&self, names: impl Iterator<Item = &'q str>, limit: usize) -> Vec<Hit> {
        let mut seen = HashSet::new();
        let slots = names.flat_map(|name| {
            let mut slots = self.slots_named(&name.to_lowercase());
            // Namesakes are sorted by server: the connection order is arbitrary.
            slots.sort_by_cached_key(|slot| self.tool(*slot).map(|tool| tool.reference.clone()));
            slots
        });
        slots
            .filter(|slot| seen.insert(*slot))
            .take(limit)
            .filter_map(|slot| self.hit(slot, 1.0))
            .collect()
    }

    /// Adds up the weights of all terms of the query.
    fn score(&self, query: &Query, scores: &mut [f32]) {
        for (term, weight) in self.terms(query) {
            let postings = self.postings(term);
            let weight = weight * self.rarity(postings.len());
            for Posting { slot, weight: says } in postings {
                if let Some(score) = scores.get_mut(*slot as usize) {
                    *score += weight * says;
                }
            }
        }
    }

    /// Returns the weighted terms of a query, in an order that depends only on the query.
    fn terms(&self, query: &Query) -> Vec<(u32, f32)> {
        let lexicon = Lexicon::get();
        let mut terms: Vec<(u32, usize, f32)> = Vec::with_capacity(4 * query.words.len());
        let mut add = |term: u32, weight: f32| {
            if !self.postings(term).is_empty() {
                terms.push((term, terms.len(), weight));
            }
        };
        for word in &query.words {
            let Word {
                weight,
                is_name,
                common,
                ..
            } = *word;
            let word = &*word.stem;
            let number = self.vocabulary.get(word);
            // No tool contains the word: tools may contain words that are near in meaning.
            if let Some(common) = common.filter(|_| !is_name && self.count(number) == 0) {
                for (near, factor) in CommonWords::get().nearest(common) {
                    if let Some(near) = self.vocabulary.get(near) {
                        add(Self::term(near), weight * factor);
                    }
                }
            }
            let mut add_word = |number: Option<u32>, word: &str, weight: f32| {
                if let Some(number) = number {
                    add(Self::term(number), weight);
                }
                for group in lexicon.groups_of(word) {
                    add(u32::from(*group), weight * SYNONYM);
                }
            };
            let leads_to = lexicon.entry(word).map_or(&[][..], |entry| &entry.leads_to);
            if self.reach(number, word) == 0 && leads_to.is_empty() {
                if !is_name
                    && let Some(number) = self.guess(word, query.is_short(), common.is_some())
                    && let Some(guessed) = self.vocabulary.word(number)
                {
                    add_word(Some(number), guessed, weight * GUESSED);
                }
                continue;
            }
            add_word(number, word, weight);
            for need in leads_to {
                add_word(self.vocabulary.get(need), need, weight * LEADS_TO);
            }
        }
        for pair in &query.pairs {
            if let Some(number) = self.vocabulary.get(&pair.stem) {
                add(Self::term(number), pair.weight);
            }
        }
        // A term reached through several words has the highest of their weights.
        terms.sort_unstable_by(|left, right| {
            (left.0.cmp(&right.0))
                .then_with(|| right.2.total_cmp(&left.2))
                .then(left.1.cmp(&right.1))
        });
        terms.dedup_by_key(|(term, ..)| *term);
        terms.sort_unstable_by_key(|(_, place, _)| *place);
        terms
            .into_iter()
            .map(|(term, _, weight)| (term, weight))
            .collect()
    }

    /// Number of postings of a word and its synonyms.
    fn reach(&self, number: Option<u32>, word: &str) -> usize {
        let groups = Lexicon::get().groups_of(word).iter();
        self.count(number)
            + groups
                .map(|group| self.postings(u32::from(*group)).len())
                .sum::<usize>()
    }

    /// Number of tools that contain a word.
    fn count(&self, number: Option<u32>) -> usize {
        number.map_or(0, |number| self.postings(Self::term(number)).len())
    }

    /// Completes or corrects a word without postings. A common word is not a typo.
    fn guess(&self, word: &str, is_short: bool, is_common: bool) -> Option<u32> {
        let reach = |number: u32| {
            let word = self.vocabulary.word(number).unwrap_or_default();
            self.reach(Some(number), word)
        };
        let completed = (is_short && word.len() >= MIN_START)
            .then(|| self.vocabulary.complete(word, reach))
            .flatten();
        completed.or_else(|| {
            (!is_common)
                .then(|| self.vocabulary.correct(word, reach))
                .flatten()
        })
    }

    /// Inverse document frequency of a term.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the number of tools is exact in an f32"
    )]
    fn rarity(&self, having: usize) -> f32 {
        let having = having as f32;
        let others = (self.len() as f32 - having).max(0.0);
        (1.0 + (others + 0.5) / (having + 0.5)).ln()
    }

    /// Ranks the tools that the query names above all others.
    fn favour_named(&self, query: &Query, scores: &mut [f32]) {
        let mut named: Vec<u32> = (query.names.iter())
            .flat_map(|name| self.slots_named(name))
            .collect();
        if named.is_empty() {
            return;
        }
        named.sort_unstable();
        named.dedup();
        let best = scores.iter().copied().fold(0.0, f32::max);
        for slot in named {
            if let Some(score) = scores.get_mut(slot as usize) {
                *score += 1.0 + best * (1.0 + SERVER + INSTRUCTIONS);
            }
        }
    }

    /// Returns the slots of tools with that lower-case name: exposed, bare, `server/tool` or `server.tool`.
    fn slots_named(&self, name: &str) -> Vec<u32> {
        let is = |own: &str, name: &str| own.to_lowercase() == name;
        let whole = self.named(name).iter().filter(|slot| {
            self.tool(**slot).is_some_and(|found| {
                is(found.name.as_str(), name) || is(found.reference.tool.as_str(), name)
            })
        });
        let mut slots: Vec<u32> = whole.copied().collect();
        for (at, separator) in name.match_indices(['/', '.']) {
            let (server, tool) = (name.get(..at), name.get(at + separator.len()..));
            let (Some(server), Some(tool)) = (server, tool) else {
                continue;
            };
            let parts = self.named(tool).iter().copied().filter(|slot| {
                self.tool(*slot).is_some_and(|found| {
                    is(found.reference.server.as_str(), server)
                        && is(found.reference.tool.as_str(), tool)
                })
            });
            slots.extend(parts);
        }
        slots
    }

    /// Returns the best candidates in order, more than the limit.
    fn best(&self, scores: &mut [f32], limit: usize) -> Vec<Candidate> {
        let most = (4 * limit).max(64);
        let mut servers: Vec<Server> = Vec::with_capacity(self.segments.len());
        for (place, segment) in (0..).zip(&self.segments) {
            let start = segment.start as usize;
            let Some(scores) = scores.get_mut(start..start + segment.capacity as usize) else {
                continue;
            };
            // The first slot is for the instructions.
            let instructions = scores.first_mut().map(std::mem::take).unwrap_or_default();
            let best = highest(scores);
            if best > 0.0 {
                let share = best * SERVER + instructions * INSTRUCTIONS;
                servers.push(Server {
                    place,
                    share,
                    best: best + share,
                });
            }
        }
        // At least this many servers have a tool with this score, so lower ones cannot be among the results.
        let mut least = f32::MIN_POSITIVE;
        if servers.len() > most {
            let mut bests: Vec<f32> = servers.iter().map(|server| server.best).collect();
            let order = |left: &f32, right: &f32| right.total_cmp(left);
            least = *bests.select_nth_unstable_by(most - 1, order).1;
        }
        let mut pool: Vec<Candidate> = Vec::with_capacity(4 * most);
        for server in &servers {
            let segment = self.segments.get(server.place as usize);
            let Some(segment) = segment.filter(|_| server.best >= least) else {
                continue;
            };
            let slots = segment.start..segment.start + segment.length;
            let range = segment.start as usize..(segment.start + segment.length) as usize;
            for (slot, score) in slots.zip(scores.get(range).unwrap_or_default()) {
                let total = score + server.share;
                if *score > 0.0 && total >= least {
                    pool.push(Candidate {
                        slot,
                        score: total,
                        server: server.place,
                        likeness: 0,
                    });
                }
            }
            if pool.len() >= 4 * most {
                least = keep_best(&mut pool, most);
            }
        }
        keep_best(&mut pool, most);
        pool.sort_unstable_by(by_score);
        for candidate in &mut pool {
            candidate.likeness = self.likeness(candidate.slot);
        }
        pool
    }

    /// Selects the results in order; each namesake of a selected tool is marked down.
    fn spread(mut candidates: Vec<Candidate>, limit: usize) -> Vec<Candidate> {
        let mut chosen: Vec<Candidate> = Vec::with_capacity(limit.min(candidates.len()));
        while chosen.len() < limit {
            // The first of the highest: candidates are sorted, and marked-down ones come after.
            let mut best: Option<(usize, f32)> = None;
            for (place, candidate) in candidates.iter().enumerate() {
                if best.is_none_or(|(_, score)| candidate.score > score) {
                    best = Some((place, candidate.score));
                }
            }
            let Some((place, _)) = best else {
                break;
            };
            let taken = candidates.remove(place);
            chosen.push(taken);
            for candidate in &mut candidates {
                if candidate.likeness == taken.likeness {
                    candidate.score *= NAMESAKE;
                }
            }
        }
        chosen
    }

    /// Puts the tool that writes the query's file in the last place, unless it is already in the results.
    fn with_file_writer(
        &self,
        mut chosen: Vec<Candidate>,
        file: Option<WrittenFile>,
        limit: usize,
    ) -> Vec<Candidate> {
        let file = file.filter(|_| self.adds_file_writers && limit >= MIN_PLACES);
        let Some(slot) = file.and_then(|file| self.writer_of(file)) else {
            return chosen;
        };
        let likeness = self.likeness(slot);
        if chosen
            .iter()
            .any(|candidate| candidate.likeness == likeness)
        {
            return chosen;
        }
        chosen.truncate(limit - 1);
        let score = chosen.last().map_or(1.0, |candidate| candidate.score);
        chosen.push(Candidate {
            slot,
            score,
            server: 0,
            likeness,
        });
        chosen
    }

    /// Returns the best tool for writing such files: it has all words of the kind, one of them in its name.
    fn writer_of(&self, file: WrittenFile) -> Option<u32> {
        *self.file_writers.get(file.place())?.get_or_init(|| {
            let words = file.words();
            let mut fits: Vec<(f32, f32, u8)> = vec![(0.0, 0.0, 0); self.slots.len()];
            for (bit, word) in (0_u8..8).zip(&words) {
                let number = self.vocabulary.get(word).map(Self::term);
                let groups = Lexicon::get().groups_of(word).iter();
                let groups = groups.map(|group| (u32::from(*group), SYNONYM));
                for (term, weight) in number.map(|term| (term, 1.0)).into_iter().chain(groups) {
                    let postings = self.postings(term);
                    let weight = weight * self.rarity(postings.len());
                    for posting in postings {
                        if let Some((score, most, has)) = fits.get_mut(posting.slot as usize) {
                            *score += weight * posting.weight;
                            *most = most.max(posting.weight);
                            *has |= 1 << bit;
                        }
                    }
                }
            }
            let all = (0..words.len()).fold(0_u8, |all, bit| {
                all | 1_u8.checked_shl(to_u32(bit)).unwrap_or(0)
            });
            let fitting = (0_u32..).zip(&fits);
            fitting
                .filter(|(_, (.., has))| *has == all)
                .filter_map(|(slot, (score, most, _))| {
                    let tool = self.tool(slot)?;
                    (*most >= IN_NAME * tool.factor).then_some((*score, &tool.name, slot))
                })
                .min_by(|left, right| {
                    (right.0.total_cmp(&left.0)).then_with(|| left.1.cmp(right.1))
                })
                .map(|(.., slot)| slot)
        })
    }

    fn hit(&self, slot: u32, score: f32) -> Option<Hit> {
        let tool = self.tool(slot)?;
        Some(Hit {
            name: tool.name.clone(),
            tool: tool.reference.clone(),
            score,
        })
    }

    fn likeness(&self, slot: u32) -> u64 {
        self.tool(slot).map_or(0, |tool| tool.likeness)
    }

    fn tool(&self, slot: u32) -> Option<&Tool> {
        self.slots.get(slot as usize)?.as_ref()
    }
}

/// A server with matching tools.
struct Server {
    /// Position in the list of segments.
    place: u32,
    /// Bonus for each of its matching tools.
    share: f32,
    /// Highest score including the bonus.
    best: f32,
}

/// Truncates to the best `most` candidates; returns the lowest score among them.
fn keep_best(pool: &mut Vec<Candidate>, most: usize) -> f32 {
    if pool.len() <= most {
        return f32::MIN_POSITIVE;
    }
    let least = pool.select_nth_unstable_by(most - 1, by_score).1.score;
    pool.truncate(most);
    least
}

fn by_score(left: &Candidate, right: &Candidate) -> Ordering {
    (right.score.total_cmp(&left.score))
        .then((left.server, left.slot).cmp(&(right.server, right.slot)))
}

/// Maximum of the scores, written for SIMD.
fn highest(scores: &[f32]) -> f32 {
    let higher = |left: f32, right: f32| if left > right { left } else { right };
    let mut lanes = [0.0_f32; LANES];
    for chunk in scores.chunks_exact(LANES) {
        for (lane, score) in lanes.iter_mut().zip(chunk) {
            *lane = higher(*lane, *score);
        }
    }
    lanes.into_iter().fold(0.0, higher)
}
