//! Tool search: which of many tools does somebody mean.
//!
//! Owns an index over names, titles, descriptions, parameters, servers and their instructions, and the order in which
//! it answers a question. It is fed with snapshots of the catalogue and knows no connection; it reads no file and waits
//! for nothing.
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
//! | [`Index`] | postings by word, one segment for each server; `search` is in `rank` |
//! | [`Document`] | the texts of one tool |
//! | `text` | what a word is |
//! | `lexicon`, `synonyms.txt` | what is known of words: which say little, which mean the same |
//! | `vocabulary` | the words of the tools, and what a mistyped one stands for |
//! | `query`, `written_file` | a question taken apart, and the file it wants written |
//! | `writer` | how much a word says about a tool |
//! | `live` | the index that a host keeps of its catalogue |

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
