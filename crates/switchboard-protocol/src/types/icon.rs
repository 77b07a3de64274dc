//! Icons of tools, prompts, resources and implementations.

use std::borrow::Cow;

use super::wire::List;
use crate::macros::{wire_enum, wire_struct};

wire_struct! {
    /// An icon for user interfaces.
    pub struct Icon<'a> {
        required {
            /// HTTPS or `data:` URI of the image.
            src("src"): Cow<'a, str>,
        }
        optional {
            /// Media type, which overrides that of the HTTP response.
            mime_type("mimeType"): Cow<'a, str>,
            /// The background it is designed for.
            theme("theme"): IconTheme<'a>,
        }
        collections {
            /// Sizes such as `48x48`, or `any`.
            sizes("sizes"): List<'a, Cow<'a, str>>,
        }
    }
}

wire_enum! {
    /// The background an icon is designed for.
    pub enum IconTheme<'a> {
        /// For light backgrounds.
        Light = "light",
        /// For dark backgrounds.
        Dark = "dark",
    }
}
