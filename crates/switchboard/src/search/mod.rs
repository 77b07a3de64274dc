//! Full-text search over the tools of all servers.
//!
//! Index over names, titles, descriptions, parameters, servers and their instructions, and the ranking of results. Fed
//! with catalogue snapshots; no I/O and no connection state.
//!
//! ```
//! use switchboard::search::{Document, Index};
//!
//! let mut index = Index::new();
//! let tool = Document::new("mcp__git__git_log".into(), "git_log".into())
//!     .described("Shows the commit history of a repository");
//! index.replace(&"git".into(), "", [tool]);
//! let hits = index.search("who changed this repo last?", 5);
//! assert_eq!(hits[0].name.as_str(), "mcp__git__git_log");
//! ```
//!
//! | where | what |
//! |---|---|
//! | [`Index`] | postings by word, one segment per server; `search` is in `rank` |
//! | [`Document`] | texts of one tool |
//! | `text` | tokenizer and stemmer |
//! | `lexicon`, `synonyms.txt` | stop words, weak words, synonyms |
//! | `common_words` | common English words: frequency, and the words nearest in meaning |
//! | `vocabulary` | indexed words and typo correction |
//! | `query`, `written_file` | query parser; the file that a query wants written |
//! | `writer` | term weights (BM25F) |
//! | `live` | live index of a host's catalogue |

mod common_words;
mod document;
mod index;
mod lexicon;
mod live;
mod query;
mod rank;
mod text;
mod vocabulary;
mod writer;
mod written_file;

pub use document::Document;
pub use index::Index;
pub(crate) use live::LiveIndex;
pub use rank::Hit;

#[cfg(test)]
mod tests;
