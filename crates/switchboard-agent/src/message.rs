//! What a conversation consists of, whoever the model's provider is.
//!
//! Owns the types that sessions are stored as: a change here must still read what was written before. Each provider
//! turns them into its own wire format and back.

use serde::{Deserialize, Serialize};

pub(crate) use switchboard::ToolDefinition;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

/// Who says something. Results of tools are said by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or whoever writes on their behalf.
    User,
    /// The model.
    Assistant,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(Image),
    /// What a model thought before it spoke. Only the provider that made it can use it again.
    Thinking(Thinking),
    /// A call that the model wants made.
    ToolCall(ToolCall),
    /// What came of a call.
    ToolResult(ToolResult),
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its media type.
    pub mime_type: String,
    /// Its bytes, base64.
    pub data: String,
}

impl Image {
    /// The types that every model with vision accepts.
    pub const MIME_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
}

/// What a model thought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// The thought in words; empty where the provider keeps it to itself.
    pub text: String,
    /// What the provider wants back with it, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// Which provider it is of.
    pub provider: String,
}

/// A call that the model wants made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// What the provider calls it; results refer to it.
    pub id: String,
    /// The tool, as the model spelled it.
    pub name: String,
    /// The arguments as the model wrote them. They need not be JSON.
    pub arguments: String,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's id.
    pub call: String,
    /// What came of it: texts and pictures.
    pub content: Vec<Content>,
    /// Whether it failed.
    #[serde(default)]
    pub is_error: bool,
}

/// One part of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(Image),
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            role,
            parts: vec![Part::Text { text }],
        }
    }

    /// All its text, one part after the other.
    pub fn all_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The calls it wants made.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}
