//! The MCP types of every revision, in one set.
//!
//! Each type is the union of what the revisions 2024-11-05 to 2026-07-28 (and the tasks extension) give it: a field
//! that some of them lack is an `Option`. Types borrow from the message they were read from; [`IntoOwned`] detaches
//! them.
//!
//! Decoding is lenient. A bad entry costs that entry and never its list, an optional field of the wrong type counts
//! as absent, a list of one may come without its brackets and a text block as a bare string, what is unknown is kept,
//! and [`defects`] tells afterwards what was worked around. What comes back out
//! of [`encode`] means what went in: unknown parts byte for byte, known ones in the order of their declaration. The
//! one exception is half a surrogate pair in a short string (a name, not a text), which becomes U+FFFD.
//!
//! Results are decoded by the method that asked, never by their looks: see [`decode_result`] and [`method`].
//!
//! This module must not decide what a value is good for: which fields an era asks for, what may be sent to whom.

pub mod cache;
pub mod capabilities;
pub mod completion;
pub mod content;
pub mod elicitation;
pub mod elicitation_schema;
pub mod error_data;
pub mod icon;
pub mod input;
pub mod lifecycle;
pub mod logging;
pub mod meta;
pub mod method;
pub mod notification;
pub mod prompt;
pub mod resource;
pub mod result;
pub mod roots;
pub mod sampling;
pub mod subscription;
pub mod task;
pub mod token;
pub mod tool;
pub mod wire;

pub use result::{Outcome, ResultBody, ResultType, decode_result, decode_result_within};
pub use wire::{
    Decode, DecodeError, DecodeErrorKind, Defect, Encode, Extra, IntoOwned, Lint, List, Map,
    Number, Raw, RawObject, SetAside, decode, decode_within, defects, encode,
};
