//! The folders a client lets servers work in.

use std::borrow::Cow;

use super::wire::{List, RawObject};
use crate::macros::wire_struct;

wire_struct! {
    /// A folder or file.
    pub struct Root<'a> {
        required {
            /// Where it is, as a `file://` URI.
            uri("uri"): Cow<'a, str>,
        }
        optional {
            /// Its name for people.
            name("name"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `roots/list` answers.
    pub struct ListRootsResult<'a> {
        required {
            /// The folders.
            roots("roots"): List<'a, Root<'a>>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}
