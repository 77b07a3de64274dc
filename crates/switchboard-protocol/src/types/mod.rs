//! The MCP types of every revision, in one set.
//!
//! Each type is the union of the revisions 2024-11-05 to 2026-07-28 and the tasks extension: a field that some of them
//! lack is an `Option`. Types borrow from the message they were decoded from; [`IntoOwned`] copies them.
//!
//! Decoding is lenient. An invalid entry does not affect the rest of its list, an optional field of the wrong type
//! counts as absent, a list of one may lack its brackets, a text block may be a bare string, and unknown parts are
//! stored; [`defects`] reports all of these afterwards. [`encode`] preserves the meaning: unknown parts verbatim, known
//! ones in the order of their declaration. The only exception is a lone surrogate in a short string (a name, not a
//! text), which becomes U+FFFD.
//!
//! Results are decoded by the request's method, never by their shape: see [`decode_result`] and [`method`].
//!
//! This module does not implement rules of the protocol, such as the fields that an era requires.

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
