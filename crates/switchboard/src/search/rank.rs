//! From a question to the tools that answer it best.
//!
//! Owns the order of results: BM25 over the terms of the question, then what stands beside a tool: its server's best,
//! its server's instructions, namesakes on other servers. Equal scores are in the order of the catalogue, so that the
//! same tools and the same question give the same list. It changes nothing in the index but the tools it has looked up for files to be written.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashSet;

use super::index::{Index, LANES, Posting, Tool, to_u32};
use super::lexicon::Lexicon;
use super::query::{Query, selected};
use super::written_file::WrittenFile;
use crate::names::{ExposedName, ToolRef};

/// How much a word counts that means the same as one of the question.
const SYNONYM: f32 = 0.6;

/// How much a word counts that a word of the question leads to.
const LEADS_TO: f32 = 0.8;

/// How much a word counts that the question has mistyped or typed in half.
const GUESSED: f32 = 0.7;

/// How much of the best score on a server goes to all tools of it that have any: what is needed together lies together.
const SERVER: f32 = 0.3;

/// How much of the score of a server's instructions goes to its tools.
const INSTRUCTIONS: f32 = 0.2;

/// What is left of a score for each better tool of the same name: what one server offers need not be offered twice.
const NAMESAKE: f32 = 0.8;

/// The most tools that one search finds. Who wants more wants the catalogue.
const MAX_HITS: usize = 1000;

/// The weight of a word that is in the name of a tool, at least. A tool that writes files says so in its name.
const IN_NAME: f32 = 0.65;

/// A shorter list has no place for a tool that the question does not ask for.
const MIN_PLACES: usize = 3;

/// The fewest characters of a word that is typed in half.
const MIN_START: usize = 3;

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The name the model calls it by.
    pub name: ExposedName,
    /// The tool as the wire has it.
    pub tool: ToolRef,
    /// How well it fits; comparable within one list only. Never rises from one hit to the next.
    pub score: f32,
}

/// A tool that may be among the results.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    slot: u32,
    score: f32,
    /// The place of its server among all. With the slot it makes the order of the catalogue.
    server: u32,
    /// The same for its namesakes.
    likeness: u64,
}

thread_local! {
    /// One score for each slot of the index that is searched; here, so that it need not be allocated each time.
    static SCORES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl Index {
    /// The tools that answer a question best, the best first.
    ///
    /// A question may be a few keywords or several sentences. A tool that it names, by its exposed name, its bare name
    /// or `server/tool`, comes first. `select:` and names with commas between them gets those tools and no others. There
    /// are never more than a thousand hits.
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
            // Tools of one name come by their servers: the order in which servers connected is no order.
            slots.sort_by_cached_key(|slot| self.tool(*slot).map(|tool| tool.reference.clone()));
            slots
        });
        slots
            .filter(|slot| seen.insert(*slot))
            .take(limit)
            .filter_map(|slot| self.hit(slot, 1.0))
            .collect()
    }

    /// Adds up what every term of the question says.
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

    /// The terms of a question and how much each counts, in an order that the question alone decides.
    fn terms(&self, query: &Query) -> Vec<(u32, f32)> {
        let lexicon = Lexicon::get();
        let mut terms: Vec<(u32, usize, f32)> = Vec::with_capacity(4 * query.words.len());
        let mut add = |term: u32, weight: f32| {
            if !self.postings(term).is_empty() {
                terms.push((term, terms.len(), weight));
            }
        };
        let mut add_word = |number: Option<u32>, word: &str, weight: f32| {
            if let Some(number) = number {
                add(Self::term(number), weight);
            }
            for group in lexicon.groups_of(word) {
                add(u32::from(*group), weight * SYNONYM);
            }
        };
        for word in &query.words {
            let (is_name, weight) = (word.is_name, word.weight);
            let word = &*word.stem;
            let number = self.vocabulary.get(word);
            let leads_to = lexicon.entry(word).map_or(&[][..], |entry| &entry.leads_to);
            if self.reach(number, word) == 0 && leads_to.is_empty() {
                if !is_name
                    && let Some(number) = self.guess(word, query.is_short())
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
        // A term that several words lead to counts as the strongest of them.
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

    /// How many postings a word leads to, by itself or by others that mean the same.
    fn reach(&self, number: Option<u32>, word: &str) -> usize {
        let own = number.map_or(0, |number| self.postings(Self::term(number)).len());
        let groups = Lexicon::get().groups_of(word).iter();
        own + groups
            .map(|group| self.postings(u32::from(*group)).len())
            .sum::<usize>()
    }

    /// What a word may stand for that leads to nothing.
    fn guess(&self, word: &str, is_short: bool) -> Option<u32> {
        let reach = |number: u32| {
            let word = self.vocabulary.word(number).unwrap_or_default();
            self.reach(Some(number), word)
        };
        let completed = (is_short && word.len() >= MIN_START)
            .then(|| self.vocabulary.complete(word, reach))
            .flatten();
        completed.or_else(|| self.vocabulary.correct(word, reach))
    }

    /// How much it says that a tool has a term, by how many have it.
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are far fewer tools than a float can count"
    )]
    fn rarity(&self, having: usize) -> f32 {
        let having = having as f32;
        let others = (self.len() as f32 - having).max(0.0);
        (1.0 + (others + 0.5) / (having + 0.5)).ln()
    }

    /// Puts the tools that the question names before all others.
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

    /// The slots of tools with that lower-case name: exposed, bare, `server/tool` or `server.tool`.
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

    /// More tools with the best scores than are wanted, the best first.
    fn best(&self, scores: &mut [f32], limit: usize) -> Vec<Candidate> {
        let most = (4 * limit).max(64);
        let mut servers: Vec<Server> = Vec::with_capacity(self.segments.len());
        for (place, segment) in (0..).zip(&self.segments) {
            let start = segment.start as usize;
            let Some(scores) = scores.get_mut(start..start + segment.capacity as usize) else {
                continue;
            };
            // The first slot is no tool's.
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
        // So many servers have a tool that is at least as good, so nothing below it can be among the results.
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

    /// Chooses from candidates in order, each namesake of a chosen one for less.
    fn spread(mut candidates: Vec<Candidate>, limit: usize) -> Vec<Candidate> {
        let mut chosen: Vec<Candidate> = Vec::with_capacity(limit.min(candidates.len()));
        while chosen.len() < limit {
            // The first of the highest: candidates are in order, and those that were marked down come after.
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

    /// Gives the last place to the tool that writes the file that the question names, unless it is there already.
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

    /// The tool that writes such files best: it has all words of the kind, one of them in its name.
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
            let fitting = fitting.filter(|(_, (_, most, has))| *has == all && *most >= IN_NAME);
            fitting
                .filter_map(|(slot, (score, ..))| Some((*score, &self.tool(slot)?.name, slot)))
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

/// A server with tools that have any score.
struct Server {
    /// Its place among all.
    place: u32,
    /// What each of its tools gets for being there.
    share: f32,
    /// The highest score with that.
    best: f32,
}

/// Keeps so many of the best and tells the least score among them.
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

/// The highest of some scores, looked over in registers.
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
