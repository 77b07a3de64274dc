//! Roots: the folders that a client exposes to servers.

use std::borrow::Cow;

use super::wire::{List, RawObject};
use crate::macros::wire_struct;

wire_struct! {
    /// A folder or file.
    pub struct Root<'a> {
        required {
            /// A `file://` URI.
            uri("uri"): Cow<'a, str>,
        }
        optional {
            /// Display name for users.
            name("name"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Result of `roots/list`.
    pub struct ListRootsResult<'a> {
        required {
            /// The roots of the client.
            roots("roots"): List<'a, Root<'a>>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}
