//! Messages of a conversation, independent of the model's provider.
//!
//! Sessions are stored in this form, so changes must stay able to read older data. Each provider converts to and from
//! its own wire format.

use serde::{Deserialize, Serialize};

pub(crate) use switchboard::ToolDefinition;

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Author of the message.
    pub role: Role,
    /// Content, in order.
    pub parts: Vec<Part>,
}

/// Author of a message. Tool results have the role of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or the program on the user's behalf.
    User,
    /// The model.
    Assistant,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Plain text.
    Text {
        /// Not necessarily trimmed.
        text: String,
    },
    /// Inline image.
    Image(Image),
    /// Reasoning of a model. Only the model that produced it can use it again.
    Thinking(Thinking),
    /// Tool call requested by the model.
    ToolCall(ToolCall),
    /// Result of a tool call.
    ToolResult(ToolResult),
}

/// An inline image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Media type, such as `image/png`.
    pub mime_type: String,
    /// Base64.
    pub data: String,
}

impl Image {
    /// The types that every model with vision accepts.
    pub const MIME_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
}

/// Reasoning of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// Empty if the provider redacts it.
    pub text: String,
    /// Opaque signature to send back to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// The provider, or provider and model, that produced it.
    pub provider: String,
}

/// A tool call requested by the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id assigned by the provider; results refer to it.
    pub id: String,
    /// Tool name as written by the model.
    pub name: String,
    /// Arguments as written by the model; not necessarily valid JSON.
    pub arguments: String,
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call.
    pub call: String,
    /// Text and images, in order.
    pub content: Vec<Content>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
}

/// One part of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Plain text.
    Text {
        /// Not necessarily trimmed.
        text: String,
    },
    /// Inline image.
    Image(Image),
}

impl Message {
    /// Creates a message with one text part.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            role,
            parts: vec![Part::Text { text }],
        }
    }

    /// Joins all text parts with line breaks.
    pub fn all_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Tool calls of the message, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}
