//! Accessors of a result: its text, structured content and blocks.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use switchboard_protocol::text::JsonStr;
use switchboard_protocol::types::content::ContentBlock;
use switchboard_protocol::types::decode;
use switchboard_protocol::types::tool::CallToolResult;

use super::CallOutcome;
use super::shape::without_content;
use crate::error::Error;

impl CallOutcome {
    /// All text of the result, one block per line. Without text, the structured content as JSON; without that, the
    /// whole result as JSON.
    pub fn text(&self) -> String {
        text_of(self.result.raw())
    }

    /// Deserializes the structured content into `T`.
    ///
    /// # Errors
    ///
    /// If the result has no structured content, or if it does not match the type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let result = decode::<CallToolResult<'_>>(self.result.raw()).ok();
        let structured = result
            .as_ref()
            .and_then(|result| result.structured_content.as_ref());
        let structured = structured.ok_or_else(Error::not_structured)?;
        serde_json::from_str(structured.get()).map_err(|error| Error::mismatch(&error))
    }

    /// Content blocks: text, images, audio, resources.
    pub fn content(&self) -> Vec<ContentBlock<'_>> {
        let result = decode::<CallToolResult<'_>>(self.result.raw()).ok();
        result.map_or_else(Vec::new, |result| result.content.items)
    }

    /// Whether the tool reports a failure. The text then contains the reason.
    pub const fn is_error(&self) -> bool {
        self.is_error
    }

    /// Result as the server sent it, as JSON.
    pub fn raw(&self) -> &str {
        self.result.as_str()
    }
}

/// The text of a result as a server sent it, by the rules of [`CallOutcome::text`].
pub fn text_of(result: &RawValue) -> String {
    let Ok(decoded) = decode::<CallToolResult<'_>>(result) else {
        return result.get().to_owned();
    };
    let blocks = decoded.content.items.iter();
    let texts: Vec<Cow<'_, str>> = blocks
        .filter_map(|block| block.as_text().map(JsonStr::decode))
        .collect();
    if !texts.is_empty() {
        return texts.join("\n");
    }
    match &decoded.structured_content {
        Some(structured) => structured.get().to_owned(),
        None => without_content(result).unwrap_or_default().to_owned(),
    }
}
