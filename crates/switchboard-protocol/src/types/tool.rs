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
    /// Something a server can do.
    pub struct Tool<'a> {
        required {
            /// The name calls use.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Its name for people.
            title("title"): Cow<'a, str>,
            /// What it does, for the model.
            description("description"): Cow<'a, str>,
            /// A JSON Schema for the arguments. Every revision requires it, and servers still send `null`: without
            /// one a tool takes any arguments.
            input_schema("inputSchema"): RawObject<'a>,
            /// A JSON Schema for `structuredContent`.
            output_schema("outputSchema"): RawObject<'a>,
            /// How it behaves, by the server's word.
            annotations("annotations"): Box<ToolAnnotations<'a>>,
            /// How it may be run.
            execution("execution"): ToolExecution<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Pictures to show beside it.
            icons("icons"): List<'a, Icon<'a>>,
        }
    }
}

wire_struct! {
    /// Hints about a tool. They come from the server and prove nothing.
    pub struct ToolAnnotations<'a> {
        optional {
            /// A name for people, after `Tool::title`.
            title("title"): Cow<'a, str>,
            /// It changes nothing. Not so, if absent.
            read_only_hint("readOnlyHint"): bool,
            /// It may destroy something. It may, if absent.
            destructive_hint("destructiveHint"): bool,
            /// Calling it twice does no more than once. Not so, if absent.
            idempotent_hint("idempotentHint"): bool,
            /// It reaches beyond a closed world. It does, if absent.
            open_world_hint("openWorldHint"): bool,
        }
    }
}

wire_struct! {
    /// How a tool may be run.
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
        /// Never, and so if nothing is said.
        Forbidden = "forbidden",
        /// As the client likes.
        Optional = "optional",
        /// Always.
        Required = "required",
    }
}

wire_struct! {
    /// What `tools/list` answers.
    pub struct ListToolsResult<'a> {
        required {
            /// The tools of this page.
            tools("tools"): List<'a, Tool<'a>>,
        }
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// How long the page may be kept, in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// For whom it may be kept.
            cache_scope("cacheScope"): CacheScope<'a>,
            /// Where the next page starts. An empty one is a cursor too; one that was there before leads in circles.
            next_cursor("nextCursor"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `tools/call` asks.
    pub struct CallToolRequestParams<'a> {
        required {
            /// The tool.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Its arguments.
            arguments("arguments"): RawObject<'a>,
            /// The wish to run it as a task (2025-11-25).
            task("task"): TaskMetadata<'a>,
            /// What the server asked to get back with the answers.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Answers to what the server asked, by its keys.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

wire_struct! {
    /// What `tools/call` answers.
    pub struct CallToolResult<'a> {
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// The answer as data, which any JSON value may be.
            structured_content("structuredContent"): Raw<'a>,
            /// Whether the tool failed. The content then says why, for the model.
            is_error("isError"): bool,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// The answer as blocks. Every revision requires it, and servers leave it out beside
            /// `structuredContent`.
            content("content"): List<'a, ContentBlock<'a>>,
        }
    }
}

impl CallToolResult<'_> {
    /// Whether the tool says that it failed, be it with a string or a number: a failure must not pass for success.
    pub fn is_error(&self) -> bool {
        self.is_error.unwrap_or_else(|| {
            let written = self.extra.get("isError").map(Raw::get);
            matches!(written, Some("\"true\"" | "\"True\"" | "1"))
        })
    }

    /// Whether the tool says that it failed, where that shows without decoding the content.
    ///
    /// `None` for a result with anything unusual about it, be it a question, a task or a mistake: only decoding can
    /// tell what that is. `Some` is what [`is_error`](Self::is_error) of the decoded result would be.
    pub fn error_flag_at_a_glance(result: &RawValue) -> Option<bool> {
        Self::error_flag_of_one_text(result.get().as_bytes()).or_else(|| Self::error_flag(result))
    }

    /// As [a glance](Self::error_flag_at_a_glance) tells it of a result that is one text and nothing else, spelled as most
    /// servers spell it. The bytes must be JSON.
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

    /// As a glance tells it of a result with any members.
    fn error_flag(result: &RawValue) -> Option<bool> {
        let limits = Limits::DEFAULT;
        let mut reader = Reader::new(result, &limits);
        reader.begin_object().ok()?;
        let (mut content, mut result_type, mut is_error) = (None, None, None);
        let mut members = 0;
        while let Some(key) = reader.next_key().ok()? {
            let slot = match key.name().as_ref() {
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
        // An entry takes two bytes at least, so a shorter list cannot have too many.
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
    fn a_glance_tells_what_decoding_would_and_leaves_the_rest_to_it() {
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
