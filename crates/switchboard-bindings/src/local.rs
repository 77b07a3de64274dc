//! The server of tools that the program implements in its own language.
//!
//! One in-process server for a host. Its tools are called like those of any other server: through the permission gate,
//! with their arguments checked, audited and cancelled.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::service::unknown_tool;
use switchboard::{Features, Reply, RequestContext, Service, error_result, text_result};
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use switchboard_protocol::types::{IntoOwned as _, decode};

use crate::callback::{self, Callback};
use crate::failure::Failure;

/// The tools of the program. Cheap to clone.
#[derive(Clone, Default)]
pub struct LocalTools(Arc<Inner>);

#[derive(Default)]
struct Inner {
    tools: RwLock<Vec<LocalTool>>,
}

#[derive(Clone)]
struct LocalTool {
    definition: Tool<'static>,
    callback: Arc<dyn Callback>,
}

impl LocalTools {
    /// Adds a tool, or replaces the one with its name. The definition has the form of the protocol: `name`,
    /// `description`, `inputSchema`, …
    ///
    /// # Errors
    ///
    /// If the definition is invalid.
    pub fn add(&self, definition: &str, callback: Arc<dyn Callback>) -> Result<(), Failure> {
        let invalid = |error: &dyn fmt::Display| {
            Failure::invalid_arguments(format!("the tool's definition is invalid: {error}"))
        };
        let raw = RawValue::from_string(definition.to_owned()).map_err(|error| invalid(&error))?;
        let definition = decode::<Tool<'_>>(&raw).map_err(|error| invalid(&error))?;
        let definition = definition.into_owned();
        if definition.name.is_empty() {
            return Err(invalid(&"it has no name"));
        }
        {
            let mut tools = self.0.tools.write().unwrap_or_else(PoisonError::into_inner);
            tools.retain(|tool| tool.definition.name != definition.name);
            tools.push(LocalTool {
                definition,
                callback,
            });
        }
        Ok(())
    }

    /// The names of the tools.
    fn names(&self) -> Vec<String> {
        let tools = self.tools();
        tools
            .iter()
            .map(|tool| tool.definition.name.clone().into_owned())
            .collect()
    }

    fn tools(&self) -> Vec<LocalTool> {
        let tools = self.0.tools.read();
        tools.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Service for LocalTools {
    fn identity(&self) -> Implementation<'static> {
        Implementation::new("local".into())
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            ..Features::NONE
        }
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        let tools = Self::tools(self).into_iter();
        tools.map(|tool| tool.definition).collect()
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            let mut tools = Self::tools(self).into_iter();
            let tool = tools.find(|tool| tool.definition.name == call.name);
            let Some(tool) = tool else {
                return Err(unknown_tool(&call.name));
            };
            let arguments = call
                .arguments
                .as_ref()
                .map_or("{}", |arguments| arguments.get());
            let answer = callback::ask(&*tool.callback, &call.name, arguments.to_owned()).await;
            Ok(match answer {
                Ok(answer) => result(&answer),
                Err(message) => error_result(message),
            })
        })
    }
}

/// The result of a tool, from what its function returned: a whole result (an object with a list `content`), a text, or
/// any other value, which becomes text, and structured content if it is an object.
fn result(answer: &str) -> CallToolResult<'static> {
    let Ok(value) = serde_json::from_str::<Value>(answer) else {
        return error_result("the tool returned something that is not JSON");
    };
    let whole = match value {
        Value::Null => return text_result(""),
        Value::String(text) => return text_result(text),
        Value::Object(object) if object.get("content").is_some_and(Value::is_array) => {
            Value::Object(object)
        }
        value => {
            let content = json!([{"type": "text", "text": value.to_string()}]);
            if value.is_object() {
                json!({"content": content, "structuredContent": value})
            } else {
                json!({"content": content})
            }
        }
    };
    let raw = serde_json::value::to_raw_value(&whole).ok();
    let decoded = raw.as_deref().map(decode::<CallToolResult<'_>>);
    match decoded {
        Some(Ok(result)) => result.into_owned(),
        Some(Err(error)) => error_result(format!("the tool's result is invalid: {error}")),
        None => error_result("the tool's result is invalid"),
    }
}

impl fmt::Debug for LocalTools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: &CallToolResult<'_>) -> String {
        let mut blocks = result.content.items.iter();
        let block = blocks.next().and_then(|block| block.as_text());
        block.map(|text| text.decode().into_owned()).unwrap()
    }

    #[test]
    fn what_a_function_returns_becomes_a_result() {
        assert_eq!(text(&result("\"hello\"")), "hello");
        assert_eq!(text(&result("null")), "");
        assert_eq!(text(&result("42")), "42");
        let structured = result("{\"sum\":3}");
        assert_eq!(text(&structured), "{\"sum\":3}");
        assert_eq!(structured.structured_content.unwrap().get(), "{\"sum\":3}");
        let whole =
            result("{\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"isError\":true}");
        assert_eq!(
            (text(&whole), whole.is_error),
            ("done".to_owned(), Some(true))
        );
        assert_eq!(result("{").is_error, Some(true));
    }
}
