//! Pictures for tools, prompts, resources and implementations.

use std::borrow::Cow;

use super::wire::List;
use crate::macros::{wire_enum, wire_struct};

wire_struct! {
    /// A picture to show beside something.
    pub struct Icon<'a> {
        required {
            /// Where it is: an HTTPS or `data:` URI.
            src("src"): Cow<'a, str>,
        }
        optional {
            /// Its media type, where the server's may not be trusted.
            mime_type("mimeType"): Cow<'a, str>,
            /// The background it is made for.
            theme("theme"): IconTheme<'a>,
        }
        collections {
            /// Its sizes, as `48x48` or `any`.
            sizes("sizes"): List<'a, Cow<'a, str>>,
        }
    }
}

wire_enum! {
    /// The background an icon is made for.
    pub enum IconTheme<'a> {
        /// Light backgrounds.
        Light = "light",
        /// Dark backgrounds.
        Dark = "dark",
    }
}
