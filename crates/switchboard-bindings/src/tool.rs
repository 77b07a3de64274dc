//! Tools, and their definitions in the forms that model providers take.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::{Catalog, CatalogTool, ExposedName};

/// A tool of a server. Its definition is decoded on access. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tool {
    catalog: Arc<Catalog>,
    name: ExposedName,
}

/// The form of a tool's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `OpenAI`'s Chat Completions.
    OpenAi,
    /// `OpenAI`'s Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
}

impl Format {
    /// Finds a format by its name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "openai" => Some(Self::OpenAi),
            "openai-responses" => Some(Self::OpenAiResponses),
            "anthropic" => Some(Self::Anthropic),
            _ => None,
        }
    }
}

impl Tool {
    pub(crate) fn new(catalog: &Arc<Catalog>, name: ExposedName) -> Self {
        Self {
            catalog: Arc::clone(catalog),
            name,
        }
    }

    /// The name that a model calls: `mcp__server__tool`.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The name of its server.
    pub fn server(&self) -> &str {
        self.get()
            .map_or("", |tool| tool.reference().server.as_str())
    }

    /// Its name on the server.
    pub fn tool(&self) -> &str {
        self.get().map_or("", |tool| tool.reference().tool.as_str())
    }

    /// Its title.
    pub fn title(&self) -> Option<String> {
        Some(self.get()?.title()?.into_owned())
    }

    /// The description as a model sees it: sanitized and cut.
    pub fn description(&self) -> String {
        self.get()
            .map_or_else(String::new, |tool| tool.model_description().into_owned())
    }

    /// The JSON Schema of its arguments, in a form that providers accept.
    pub fn input_schema(&self) -> &str {
        self.get()
            .map_or("{}", |tool| tool.model_view().input_schema.get())
    }

    /// The JSON Schema of its structured results.
    pub fn output_schema(&self) -> Option<&str> {
        self.get()?.output_schema().map(RawValue::get)
    }

    /// The definition as the server wrote it.
    pub fn definition(&self) -> &str {
        self.get().map_or("{}", |tool| tool.definition().as_str())
    }

    /// The definition as a provider takes it, as JSON text.
    pub fn formatted(&self, format: Format) -> String {
        let Some(tool) = self.get() else {
            return "{}".to_owned();
        };
        let view = tool.model_view();
        let (name, description, schema) = (view.name, view.description, view.input_schema);
        let definition: Value = match format {
            Format::OpenAi => json!({
                "type": "function",
                "function": {"name": name, "description": description, "parameters": schema},
            }),
            Format::OpenAiResponses => json!({
                "type": "function",
                "name": name,
                "description": description,
                "parameters": schema,
                "strict": false,
            }),
            Format::Anthropic => json!({
                "name": name,
                "description": description,
                "input_schema": schema,
            }),
        };
        definition.to_string()
    }

    fn get(&self) -> Option<&CatalogTool> {
        self.catalog.exposed(self.name.as_str())
    }
}
