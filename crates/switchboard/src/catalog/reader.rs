//! Parser for raw `tools/list` pages: builds the tools of one server page by page.
//!
//! One pass over the bytes finds every field and scans the schemas; only names are copied. The same pass collects the
//! rest of the page, so that the fetcher need not parse megabytes for a cursor. Independent of the source of the pages.

use std::borrow::Cow;

use serde_json::value::RawValue;
use switchboard_protocol::cursor::{Contents, Cursor, Malformed};
use switchboard_protocol::param_headers::ParamHeaders;
use switchboard_protocol::types::tool::{ListToolsResult, Tool};
use switchboard_protocol::types::{DecodeError, decode};
use switchboard_protocol::{TOO_DEEP, trusted};

use super::exposed::name_into;
use super::impersonation::{self, TitleUse};
use super::rules::ToolRules;
use super::schema::{self, Examined, ScanResult};
use super::server::{ListLimits, Provenance, Reach, ServerTools, SetAsideReason};
use super::suspicion;
use super::text::Tokens;
use super::tool::{self, CatalogTool, Hints, Span};
use crate::json::SharedJson;
use crate::names::{ExposedName, ServerName, ToolRef, WireName};

pub(crate) struct ToolReader<'r> {
    server: &'r ServerName,
    rules: &'r ToolRules,
    reach: Reach,
    provenance: Provenance,
    limits: ListLimits,
    built: ServerTools,
    pages: usize,
    /// Whether the built tools must be searched for tag characters.
    may_have_tags: bool,
    /// Reused buffer for exposed names.
    exposed: String,
}

impl<'r> ToolReader<'r> {
    pub(crate) fn new(
        server: &'r ServerName,
        rules: &'r ToolRules,
        reach: Reach,
        provenance: Provenance,
        limits: ListLimits,
    ) -> Self {
        Self {
            server,
            rules,
            reach,
            provenance,
            limits,
            built: ServerTools::default(),
            pages: 0,
            may_have_tags: false,
            exposed: String::new(),
        }
    }

    /// Parses the next page, the raw result of one `tools/list`.
    ///
    /// Returns the page without its tools, which contains its cursor; `None` if it is unusual or too long.
    pub(crate) fn page(&mut self, page: &SharedJson) -> Option<SharedJson> {
        self.pages += 1;
        let (tools, aside) = (self.built.tools.len(), self.built.aside.len());
        if let Ok(Some(rest)) = self.list(page) {
            return rest.into_json();
        }
        self.built.tools.truncate(tools);
        self.built.aside.truncate(aside);
        if let Err(error) = self.odd_page(page) {
            let reason = SetAsideReason::Unreadable(format!("page {}: {error}", self.pages));
            self.built.set_aside(None, reason, self.limits);
        }
        None
    }

    /// Returns all tools, sorted by name.
    pub(crate) fn finish(self) -> ServerTools {
        let mut built = self.built;
        built.description_limit = self.rules.description_limit();
        // Stable sort: of two tools with one name the first stays first.
        built
            .tools
            .sort_by(|left, right| left.reference.tool.cmp(&right.reference.tool));
        let mut duplicates = Vec::new();
        built.tools.dedup_by(|later, earlier| {
            let is_duplicate = later.reference.tool == earlier.reference.tool;
            if is_duplicate {
                duplicates.push(later.reference.tool.as_str().to_owned());
            }
            is_duplicate
        });
        for name in duplicates {
            built.set_aside(Some(name), SetAsideReason::Duplicate, self.limits);
        }
        built.tools.shrink_to_fit();
        if self.may_have_tags {
            built.set_aside_where(|tool| {
                suspicion::has_tags(tool).then_some(SetAsideReason::TagCharacters)
            });
        }
        built
    }

    /// Parses a page with exactly one list of tools; returns the rest of the page, or `None` for any other page.
    fn list(&mut self, page: &SharedJson) -> Result<Option<Rest>, Malformed> {
        let mut cursor = Cursor::new(page.as_str());
        let mut rest = Rest::default();
        let mut lists = 0;
        cursor.enter(b'{')?;
        loop {
            let start = cursor.position();
            let Some(key) = cursor.next_key()? else {
                break;
            };
            if !key.is("tools") {
                cursor.skip()?;
                rest.add(cursor.since(start).ok_or(Malformed)?);
                continue;
            }
            lists += 1;
            cursor.enter(b'[')?;
            while cursor.next_item()? {
                let start = cursor.position();
                if let Ok(head) = Head::read(&mut cursor) {
                    self.item(page, &head);
                } else {
                    cursor.rewind(start);
                    let item = cursor.value()?;
                    self.unreadable(item);
                }
            }
        }
        Ok((lists == 1).then_some(rest))
    }

    /// Parses a page with no list of tools, or with two, through the protocol's lenient decoder.
    fn odd_page(&mut self, page: &SharedJson) -> Result<(), DecodeError> {
        decode::<ListToolsResult<'_>>(page.raw())?;
        // Of two lists the last counts; a single tool may lack its brackets; an empty object is an empty list.
        let listed = tool::field(page.as_str(), "tools").map_or("[]", RawValue::get);
        let mut cursor = Cursor::new(listed);
        let mut read = || {
            if cursor.peek() == b'{' {
                let head = Head::read(&mut cursor)?;
                if head.name.is_some() {
                    self.item(page, &head);
                }
                return Ok(());
            }
            cursor.enter(b'[')?;
            while cursor.next_item()? {
                let item = cursor.value()?;
                match Head::read(&mut Cursor::new(item)) {
                    Ok(head) => self.item(page, &head),
                    Err(Malformed) => self.unreadable(item),
                }
            }
            Ok::<_, Malformed>(())
        };
        // Cannot fail: the decoder has accepted the page.
        let _ = read();
        Ok(())
    }

    fn item(&mut self, page: &SharedJson, head: &Head<'_>) {
        let Some(name) = head
            .name
            .map(Contents::decode)
            .filter(|name| !name.is_empty())
        else {
            if head.is_too_deep {
                return self
                    .built
                    .set_aside(None, SetAsideReason::TooDeep, self.limits);
            }
            return self.unreadable(head.text);
        };
        match self.tool(page, head, &name) {
            Ok(tool) => {
                self.may_have_tags |= !head.is_simple && suspicion::may_have_tags(head.text);
                self.built.tools.push(tool);
            }
            Err(reason) => self
                .built
                .set_aside(Some(name.into_owned()), reason, self.limits),
        }
    }

    fn tool(
        &mut self,
        page: &SharedJson,
        head: &Head<'_>,
        name: &str,
    ) -> Result<CatalogTool, SetAsideReason> {
        if let Some(reason) = self.rules.refuse(name) {
            return Err(reason);
        }
        if head.is_too_deep {
            return Err(SetAsideReason::TooDeep);
        }
        if self.built.tools.len() >= self.limits.max_tools {
            let limit = self.limits.max_tools;
            return Err(SetAsideReason::TooMany { limit });
        }
        let title = head.title.map(Contents::decode);
        let title_use = impersonation::judge_tool(name, title.as_deref())?;
        let definition = trusted(head.text).and_then(|value| page.part(value));
        let definition = definition.ok_or_else(|| unreadable_reason(head.text))?;
        let reference = ToolRef {
            server: self.server.clone(),
            tool: WireName::from(name),
        };
        let schema = self.schema(head)?;
        name_into(&mut self.exposed, self.server.as_str(), name);
        let exposed = ExposedName::from(self.exposed.as_str());
        let limit = self.rules.description_limit();
        let described = match head.description.filter(|contents| !is_blank(*contents)) {
            Some(description) if head.is_simple => description.escaped.len().min(limit.get()),
            Some(description) => tool::model_characters(description, limit),
            None => tool::missing_description(&reference, limit).chars().count(),
        };
        let schema_characters = match (&schema, head.input_schema) {
            (Some(repaired), _) => repaired.schema.as_str().chars().count(),
            (None, Some((schema, _))) if head.is_simple => schema.len(),
            (None, Some((schema, _))) => schema.chars().count(),
            (None, None) => schema::EMPTY.len(),
        };
        let cost = Tokens::of_characters(exposed.as_str().len() + described + schema_characters);
        Ok(CatalogTool {
            description: head.description.map_or(Span::default(), |description| {
                quoted_span(head.text, description)
            }),
            input_schema: head.input_schema.map_or(Span::default(), |(schema, _)| {
                Span::within(head.text, schema)
            }),
            may_claim: impersonation::may_claim(name)
                || title.as_deref().is_some_and(impersonation::may_claim),
            title_withheld: title_use == TitleUse::Withheld,
            reference,
            exposed,
            definition,
            repaired: schema.map(Box::new),
            prepared: std::sync::OnceLock::new(),
            tokens: u32::try_from(cost.0).unwrap_or(u32::MAX),
            description_limit: limit,
            hints: head.annotations.map(Hints::read).unwrap_or_default(),
            provenance: self.provenance,
            trusts_annotations: self.rules.trusts_annotations(),
        })
    }

    fn schema(&self, head: &Head<'_>) -> Result<Option<schema::Repaired>, SetAsideReason> {
        let Some((text, verdict)) = head.input_schema else {
            return Ok(None);
        };
        if verdict == ScanResult::Clean {
            return Ok(None);
        }
        if self.reach == Reach::StatelessHttp
            && let Some(schema) = trusted(text)
        {
            ParamHeaders::from_schema(schema)?;
        }
        if verdict == ScanResult::Mirrored {
            return Ok(None);
        }
        match schema::repair_doubtful(text) {
            Examined::Fine => Ok(None),
            Examined::Repaired(repaired) => Ok(Some(repaired)),
            Examined::Refused(finding) => Err(SetAsideReason::Schema(finding)),
        }
    }

    /// Sets an item aside that is not a tool, with the error of the protocol's decoder.
    fn unreadable(&mut self, item: &str) {
        let name = trusted(item)
            .filter(|item| item.get().starts_with('{'))
            .and_then(|item| tool::field(item.get(), "name"))
            .map(|name| name.get().chars().take(80).collect());
        self.built
            .set_aside(name, unreadable_reason(item), self.limits);
    }
}

/// Members of a page other than its list of tools.
#[derive(Default)]
struct Rest {
    members: String,
    is_long: bool,
}

impl Rest {
    /// Maximum size of a copied rest.
    const MAX_BYTES: usize = 16 * 1024;

    /// Adds a raw member, with its leading separator.
    fn add(&mut self, written: &str) {
        let member = written.trim_start_matches([',', ' ', '\n', '\r', '\t']);
        self.is_long |= self.members.len() + member.len() > Self::MAX_BYTES;
        if !self.is_long {
            self.members
                .push(if self.members.is_empty() { '{' } else { ',' });
            self.members.push_str(member);
        }
    }

    /// Returns the page without its tools; `None` if it is too long.
    fn into_json(mut self) -> Option<SharedJson> {
        if self.is_long {
            return None;
        }
        if self.members.is_empty() {
            self.members.push('{');
        }
        self.members.push('}');
        trusted(&self.members).map(SharedJson::from)
    }
}

/// Raw fields of a tool.
#[derive(Default)]
struct Head<'a> {
    text: &'a str,
    /// Whether [`tool::is_simple`] holds for the text, which allows shortcuts.
    is_simple: bool,
    name: Option<Contents<'a>>,
    title: Option<Contents<'a>>,
    description: Option<Contents<'a>>,
    input_schema: Option<(&'a str, ScanResult)>,
    annotations: Option<&'a str>,
    /// Whether it is the placeholder for a tool that was nested too deeply.
    is_too_deep: bool,
}

impl<'a> Head<'a> {
    /// Parses a tool and moves past it. Of a duplicate field the last counts, as in common parsers.
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let mut head = Self::default();
        cursor.peek();
        let start = cursor.position();
        cursor.enter(b'{')?;
        while let Some(key) = cursor.next_key()? {
            let key = if key.has_escapes {
                key.decode()
            } else {
                Cow::Borrowed(key.escaped)
            };
            match &*key {
                "name" => head.name = optional_string(cursor)?,
                "title" => head.title = optional_string(cursor)?,
                "description" => head.description = optional_string(cursor)?,
                "inputSchema" => {
                    cursor.peek();
                    let from = cursor.position();
                    let verdict = schema::scan(cursor)?;
                    head.input_schema = cursor
                        .since(from)
                        .filter(|text| *text != "null")
                        .map(|text| (text, verdict));
                }
                "annotations" => {
                    let annotations = cursor.value()?;
                    head.annotations = Some(annotations).filter(|text| text.starts_with('{'));
                }
                TOO_DEEP => {
                    head.is_too_deep = true;
                    cursor.skip()?;
                }
                _ => cursor.skip()?,
            }
        }
        head.text = cursor.since(start).ok_or(Malformed)?;
        head.is_simple = tool::is_simple(head.text);
        if head.title.is_none()
            && let Some(annotations) = head.annotations
        {
            head.title = annotated_title(annotations);
        }
        Ok(head)
    }
}

fn optional_string<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Contents<'a>>, Malformed> {
    if cursor.peek() == b'"' {
        return cursor.string().map(Some);
    }
    cursor.skip()?;
    Ok(None)
}

fn annotated_title(annotations: &str) -> Option<Contents<'_>> {
    memchr::memmem::find(annotations.as_bytes(), b"title")?;
    let title = tool::field(annotations, "title")?;
    Cursor::new(title.get()).string().ok()
}

/// Span of a string including its quotation marks.
fn quoted_span(whole: &str, contents: Contents<'_>) -> Span {
    Span::within(whole, contents.escaped).widened()
}

fn is_blank(contents: Contents<'_>) -> bool {
    if contents.has_escapes {
        contents.decode().trim().is_empty()
    } else {
        contents.escaped.trim().is_empty()
    }
}

fn unreadable_reason(item: &str) -> SetAsideReason {
    let decoded = trusted(item).map(decode::<Tool<'_>>);
    SetAsideReason::Unreadable(match decoded {
        Some(Err(error)) => error.to_string(),
        Some(Ok(_)) => "its name is empty".to_owned(),
        None => "it cannot be read".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use switchboard_protocol::types::cache::Cacheable as _;
    use switchboard_protocol::types::lifecycle::PageHead;

    use super::*;

    /// Returns the page without its tools.
    fn rest(page: &str) -> Option<SharedJson> {
        let server = ServerName::from("s");
        let rules = ToolRules::default();
        let limits = ListLimits::default();
        let mut reader = ToolReader::new(&server, &rules, Reach::Other, Provenance::Live, limits);
        reader.page(&trusted(page).map(SharedJson::from)?)
    }

    #[test]
    fn what_is_not_the_list_is_left_as_it_is_written() {
        let check = |page: &str, expected: Option<&str>| {
            assert_eq!(
                rest(page).as_ref().map(SharedJson::as_str),
                expected,
                "{page}"
            );
        };
        check(r#"{"tools":[]}"#, Some("{}"));
        check(
            r#"{"a": [1, {"tools": []}] , "tools":[{"name":"t"},5],"nextCursor" : "]}\"" }"#,
            Some(r#"{"a": [1, {"tools": []}],"nextCursor" : "]}\""}"#),
        );
        check(r#"{"\u0074ools":[],"ttlMs":0}"#, Some(r#"{"ttlMs":0}"#));
        check(r#"{"nextCursor":"x"}"#, None);
        check(r#"{"tools":[],"tools":[]}"#, None);
        check(r#"{"tools":{"name":"t"},"nextCursor":"x"}"#, None);
        check("[]", None);
        let long = format!(
            r#"{{"_meta":"{}","tools":[]}}"#,
            "x".repeat(Rest::MAX_BYTES)
        );
        check(&long, None);
    }

    proptest! {
        #[test]
        fn a_page_says_the_same_without_its_tools(
            members in prop::collection::vec(prop::sample::select(vec![
                r#""nextCursor":"a,\"b\"""#,
                r#" "nextCursor" : "c""#,
                r#""next\u0043ursor":null"#,
                r#""nextCursor":5"#,
                r#""ttlMs":60000"#,
                r#""ttlMs":-1"#,
                r#""cacheScope":"public""#,
                r#""_meta":{"nextCursor":"no","tools":[]}"#,
                r#""resultType":"complete""#,
            ]), 0..5),
            place in any::<prop::sample::Index>(),
        ) {
            let mut members = members;
            members.insert(place.index(members.len() + 1), r#""tools":[{"name":"t","nextCursor":"no"}]"#);
            let page = format!("{{{}}}", members.join(" , "));
            let rest = rest(&page).expect("a page with one list");
            let says = |page: &str| {
                let head: Result<PageHead<'_>, _> = decode(trusted(page).expect("JSON"));
                head.map(|head| (head.cache_hint(), head.next_cursor.map(Cow::into_owned)))
                    .map_err(|error| error.to_string())
            };
            prop_assert_eq!(says(rest.as_str()), says(&page));
        }
    }
}
