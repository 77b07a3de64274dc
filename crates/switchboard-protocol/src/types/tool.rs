//! Tools: listing and calling them.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::cache::CacheScope;
use super::content::ContentBlock;
use super::icon::Icon;
use super::result::ResultType;
use super::task::TaskMetadata;
use super::wire::{List, Map, Number, Raw, RawObject, Reader};
use crate::limits::Limits;
use crate::macros::{wire_enum, wire_struct};
use crate::string_scan::end_of_string;
use crate::text::JsonStr;

wire_struct! {
    /// A tool that a server offers.
    pub struct Tool<'a> {
        required {
            /// Identifies it in `tools/call`.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Display name for users.
            title("title"): Cow<'a, str>,
            /// Description for the model.
            description("description"): Cow<'a, str>,
            /// A JSON Schema for the arguments. Every revision requires it, but servers still send `null`: such a tool
            /// accepts any arguments.
            input_schema("inputSchema"): RawObject<'a>,
            /// A JSON Schema for `structuredContent`.
            output_schema("outputSchema"): RawObject<'a>,
            /// Hints on its behaviour, by the server.
            annotations("annotations"): Box<ToolAnnotations<'a>>,
            /// Supported ways of execution.
            execution("execution"): ToolExecution<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Icons for user interfaces.
            icons("icons"): List<'a, Icon<'a>>,
        }
    }
}

wire_struct! {
    /// Hints about a tool. They are claims of the server and must not be trusted.
    pub struct ToolAnnotations<'a> {
        optional {
            /// Display name, if `Tool::title` is absent.
            title("title"): Cow<'a, str>,
            /// Whether it changes nothing. Default: false.
            read_only_hint("readOnlyHint"): bool,
            /// Whether it may destroy data. Default: true.
            destructive_hint("destructiveHint"): bool,
            /// Whether repeating a call has no additional effect. Default: false.
            idempotent_hint("idempotentHint"): bool,
            /// Whether it interacts with external entities. Default: true.
            open_world_hint("openWorldHint"): bool,
        }
    }
}

wire_struct! {
    /// Supported ways of executing a tool.
    pub struct ToolExecution<'a> {
        optional {
            /// Whether calls may, must or must not be tasks.
            task_support("taskSupport"): TaskSupport<'a>,
        }
    }
}

wire_enum! {
    /// Whether calls of a tool are tasks.
    pub enum TaskSupport<'a> {
        /// Never; the default.
        Forbidden = "forbidden",
        /// At the client's choice.
        Optional = "optional",
        /// Calls must be tasks.
        Required = "required",
    }
}

wire_struct! {
    /// Result of `tools/list`.
    pub struct ListToolsResult<'a> {
        required {
            /// The tools of this page.
            tools("tools"): List<'a, Tool<'a>>,
        }
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Cache lifetime in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// Who may share the cached result.
            cache_scope("cacheScope"): CacheScope<'a>,
            /// Cursor of the next page; may be an empty string. A repeated cursor means an endless list.
            next_cursor("nextCursor"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of `tools/call`.
    pub struct CallToolRequestParams<'a> {
        required {
            /// Name of the tool.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Arguments of the call.
            arguments("arguments"): RawObject<'a>,
            /// Requests execution as a task (2025-11-25).
            task("task"): TaskMetadata<'a>,
            /// Opaque state of the previous result, sent back with the responses.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Responses to the server's input requests, by key.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

wire_struct! {
    /// Result of `tools/call`.
    pub struct CallToolResult<'a> {
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// The result as data, of any JSON type.
            structured_content("structuredContent"): Raw<'a>,
            /// Whether the tool failed. The content then explains the error to the model.
            is_error("isError"): bool,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// The result as content blocks. Every revision requires it, but servers omit it next to
            /// `structuredContent`.
            content("content"): List<'a, ContentBlock<'a>>,
        }
    }
}

impl CallToolResult<'_> {
    /// Whether the tool reports a failure, even as a string or number: a failure must not be mistaken for success.
    pub fn is_error(&self) -> bool {
        self.is_error.unwrap_or_else(|| {
            let written = self.extra.get("isError").map(Raw::get);
            matches!(written, Some("\"true\"" | "\"True\"" | "1"))
        })
    }

    /// Whether the tool reports a failure, if that is evident without decoding the content.
    ///
    /// `None` for an unusual result, such as a request for input, a task or a malformed result, which has to be
    /// decoded. `Some` equals [`is_error`](Self::is_error) of the decoded result.
    pub fn error_flag_at_a_glance(result: &RawValue) -> Option<bool> {
        Self::error_flag_of_one_text(result.get().as_bytes()).or_else(|| Self::error_flag(result))
    }

    /// Like [`error_flag_at_a_glance`](Self::error_flag_at_a_glance), for a result with a single text block in the
    /// usual spelling. The bytes must be valid JSON.
    pub fn error_flag_of_one_text(result: &[u8]) -> Option<bool> {
        const COMPLETE: &[u8] = br#"{"resultType":"complete","#;
        const HEAD: &[u8] = br#""content":[{"type":"text","text":""#;
        let members = result
            .strip_prefix(COMPLETE)
            .or(result.strip_prefix(b"{"))?;
        let text = members.strip_prefix(HEAD)?;
        match text.get(end_of_string(text, 0)?.position..)? {
            br"}]}" | br#"}],"isError":false}"# | br#"}],"resultType":"complete"}"# => Some(false),
            br#"}],"isError":true}"# => Some(true),
            _ => None,
        }
    }

    /// The same for a result with any members.
    fn error_flag(result: &RawValue) -> Option<bool> {
        let limits = Limits::DEFAULT;
        let mut reader = Reader::new(result, &limits);
        reader.begin_object().ok()?;
        let (mut content, mut result_type, mut is_error) = (None, None, None);
        let mut members = 0;
        while let Some(key) = reader.next_key().ok()? {
            let slot = match key.decode().as_ref() {
                "content" => Some(&mut content),
                "resultType" => Some(&mut result_type),
                "isError" => Some(&mut is_error),
                "task" => return None,
                _ => None,
            };
            let value = reader.raw().ok()?;
            if slot.is_some_and(|slot| slot.replace(value).is_some()) {
                return None;
            }
            members += 1;
        }
        let content: &str = content?;
        // An entry takes at least two bytes, so a shorter list cannot have too many.
        let is_plain = content.starts_with('[') && content.len().max(members) <= limits.max_items;
        let is_complete = matches!(result_type, None | Some("\"complete\""));
        let is_error = match is_error {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return None,
        };
        (is_plain && is_complete).then_some(is_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::method::{CallTool, Request as _};
    use crate::types::result::Outcome;

    #[track_caller]
    fn check(text: &str, expected: Option<bool>) {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let flag = CallToolResult::error_flag_at_a_glance(raw);
        assert_eq!(flag, expected, "{text}");
        if let Some(flag) = flag {
            let Ok(Outcome::Complete(result)) = CallTool::decode_result(raw) else {
                panic!("{text} is not complete");
            };
            assert_eq!(flag, result.is_error(), "{text}");
        }
    }

    #[test]
    fn the_error_flag_equals_that_of_decoding_or_is_none() {
        check(r#"{"content":[]}"#, Some(false));
        check(
            r#"{"content":[{"type":"odd"},3],"isError":false}"#,
            Some(false),
        );
        for (text, flag) in [
            (r#"{"content":[{"type":"text","text":"one"}]}"#, false),
            (
                r#"{"content":[{"type":"text","text":"\"}]}"}],"isError":true}"#,
                true,
            ),
            (
                r#"{"content":[{"type":"text","text":""}],"isError":false}"#,
                false,
            ),
            (
                r#"{"content":[{"type":"text","text":"a"}],"resultType":"complete"}"#,
                false,
            ),
            (
                r#"{"resultType":"complete","content":[{"type":"text","text":"a"}],"isError":true}"#,
                true,
            ),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":true}"#,
                true,
            ),
        ] {
            check(text, Some(flag));
        }
        check(
            r#"{"content":[{"type":"text","text":"a"}],"resultType":"input_required"}"#,
            None,
        );
        check(
            r#"{"resultType":"complete","isError" : true ,"x":{"task":1}, "content" : [ ]}"#,
            Some(true),
        );
        for unusual in [
            r"{}",
            r"null",
            r"[]",
            r#"{"content":null}"#,
            r#"{"content":"text"}"#,
            r#"{"content":[],"content":[]}"#,
            r#"{"content":[],"isError":"true"}"#,
            r#"{"content":[],"isError":1}"#,
            r#"{"content":[],"isError":false,"\u0069sError":true}"#,
            r#"{"content":[],"resultType":"input_required"}"#,
            r#"{"content":[],"resultType":null}"#,
            r#"{"content":[],"task":{"taskId":"1"}}"#,
            r#"{"structuredContent":{}}"#,
        ] {
            check(unusual, None);
        }
    }
}
