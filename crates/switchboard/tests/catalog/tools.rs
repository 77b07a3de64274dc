//! Tests of one server's list: tools offered, tools set aside with the reason, and descriptions for the model.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json, value::RawValue};
use switchboard::catalog::{Provenance, Tokens};
use switchboard::internal::catalog::text::CUT_MARK;
use switchboard::internal::catalog::{ListLimits, Reach, ServerCatalog, ServerTools, ToolRules};
use switchboard::{ServerName, SharedJson};
use switchboard_config::entry::{ServerEntry, ToolEntry};
use switchboard_protocol::types::{decode, tool::ListToolsResult};

use super::{aside, names, server_tools, with_rules};

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

#[test]
fn tools_come_by_name_from_all_pages_and_bad_ones_are_set_aside_alone() {
    let tools = server_tools(
        "s",
        &[
            json!({"tools": [tool("zebra"), 7, {"description": "no name"}, tool("ant")], "nextCursor": "2"}),
            json!({"tools": [{"name": 5}, {"name": ""}, tool("mole"), tool("ant"), null]}),
            json!({"nothing": true}),
            json!({"tools": tool("lone")}),
            json!({"tools": {}}),
            json!([1]),
        ],
    );
    assert_eq!(names(&tools), ["ant", "lone", "mole", "zebra"]);
    assert_eq!(
        aside(&tools),
        [
            "expected an object, found a number",
            "missing field `name`",
            "5: name: expected a string, found a number",
            "\"\": its name is empty",
            "expected an object, found null",
            "page 3: missing field `tools`",
            "page 6: expected an object, found an array",
            "ant: the server already lists a tool of the same name",
        ]
    );
}

#[test]
fn the_first_of_two_tools_with_one_name_stays() {
    let page = json!({"tools": [
        {"name": "a", "description": "first"}, {"name": "a", "description": "second"},
    ]});
    let tools = server_tools("s", &[page]);
    let only = tools.get("a").expect("a tool");
    assert_eq!(only.description().as_deref(), Some("first"));
}

#[track_caller]
fn check_rules(entry: &ServerEntry, offered: &[&str], set_aside: &[&str]) {
    let page = json!({"tools": [
        tool("create_issue"), tool("delete_issue"), tool("delete_repo"), tool("weird[*"), tool("list"),
    ]});
    let tools = with_rules("s", &[page], &ToolRules::of(entry), Reach::Other);
    assert_eq!(names(&tools), offered);
    assert_eq!(aside(&tools), set_aside);
}

#[test]
fn the_users_rules_choose_by_name_and_by_pattern() {
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    check_rules(
        &ServerEntry::default(),
        &[
            "create_issue",
            "delete_issue",
            "delete_repo",
            "list",
            "weird[*",
        ],
        &[],
    );
    check_rules(
        &ServerEntry {
            enabled_tools: texts(&["*_issue", "weird[*"]),
            disabled_tools: texts(&["delete_*"]),
            ..ServerEntry::default()
        },
        &["create_issue", "weird[*"],
        &[
            "delete_issue: disabled by disabled_tools",
            "delete_repo: not among enabled_tools",
            "list: not among enabled_tools",
        ],
    );
    let hidden = ToolEntry {
        hidden: Some(true),
        ..ToolEntry::default()
    };
    check_rules(
        &ServerEntry {
            tools: vec![
                ("list".to_owned(), hidden),
                ("other".to_owned(), ToolEntry::default()),
            ],
            ..ServerEntry::default()
        },
        &["create_issue", "delete_issue", "delete_repo", "weird[*"],
        &["list: hidden by the configuration"],
    );
}

#[test]
fn limits_hold_and_what_is_beyond_them_is_told() {
    let listed: Vec<Value> = (0..10).map(|index| tool(&format!("t{index}"))).collect();
    let pages = [SharedJson::from(&json!({"tools": listed}))];
    let limits = ListLimits {
        max_tools: 4,
        max_aside: 2,
    };
    let server = ServerName::from("s");
    let tools = ServerTools::from_pages(
        &server,
        &pages,
        &ToolRules::default(),
        Reach::Other,
        Provenance::Live,
        limits,
    );
    assert_eq!(names(&tools), ["t0", "t1", "t2", "t3"]);
    assert_eq!(
        aside(&tools),
        [
            "t4: the server lists more than 4 tools",
            "t5: the server lists more than 4 tools"
        ]
    );
    assert_eq!(tools.aside_untold(), 4);
}

#[test]
fn an_invalid_header_annotation_costs_the_tool_where_headers_are_sent() {
    let annotated = |header: &str| json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": header}}});
    let page = json!({"tools": [
        {"name": "good", "inputSchema": annotated("Region")},
        {"name": "bad", "inputSchema": annotated("not a token")},
    ]});
    let rules = ToolRules::default();
    let elsewhere = with_rules("s", std::slice::from_ref(&page), &rules, Reach::Other);
    assert_eq!(names(&elsewhere), ["bad", "good"]);
    let tools = with_rules("s", &[page], &rules, Reach::StatelessHttp);
    assert_eq!(names(&tools), ["good"]);
    assert_eq!(
        aside(&tools),
        ["bad: x-mcp-header at `/properties/a`: `not a token` is not a valid header name"]
    );
    assert!(
        !tools
            .get("good")
            .expect("a tool")
            .param_headers()
            .is_empty()
    );
}

#[test]
fn a_model_is_told_what_is_missing_and_never_too_much() {
    let long = "ü".repeat(5_000);
    let page = json!({"tools": [
        {"name": "bare"},
        {"name": "blank", "description": " \n", "inputSchema": null},
        {"name": "long", "description": long, "inputSchema": {"type": "object"}},
        {"name": "sly", "description": "Reads.\u{1b}[2J\u{202e}\u{2060}", "inputSchema": {"type": "object"}},
        {"name": "quoted", "description": "says \"hi\"\n", "inputSchema": {"type": "object"}},
    ]});
    let tools = server_tools("s", &[page]);
    let view = |name: &str| tools.get(name).expect("a tool").model_view();
    assert_eq!(view("bare").description, "MCP tool bare from s");
    assert_eq!(
        view("bare").input_schema.get(),
        r#"{"type":"object","properties":{}}"#
    );
    assert_eq!(view("blank").description, "MCP tool blank from s");
    assert_eq!(
        view("blank").input_schema.get(),
        r#"{"type":"object","properties":{}}"#
    );
    let shown = view("long").description;
    assert_eq!(shown.chars().count(), 2_048);
    assert!(shown.ends_with(CUT_MARK), "{shown}");
    assert_eq!(
        tools.get("long").expect("a tool").description().as_deref(),
        Some(long.as_str())
    );
    assert_eq!(
        view("sly").description,
        "Reads.\\u{1b}[2J\\u{202e}\\u{2060}"
    );
    assert_eq!(view("quoted").description, "says \"hi\"\n");
    assert_eq!(view("quoted").name, "mcp__s__quoted");
}

#[test]
fn the_cost_of_a_tool_is_that_of_what_the_model_is_told() {
    let page = json!({"tools": [
        {"name": "plain", "description": "Does it.", "inputSchema": {"type": "object"}},
        {"name": "bare"},
        {"name": "escaped", "description": "a\n\"b\" ü\u{202e}", "inputSchema": {"type": "object", "title": "漢字"}},
        {"name": "repaired", "inputSchema": {"properties": {"a": {"type": "str"}}}},
        {"name": "delete", "description": "\u{7f}", "inputSchema": {"type": "object"}},
        {"name": "long", "description": "ü".repeat(9_000)},
    ]});
    let tools = server_tools("s", &[page]);
    for tool in tools.tools() {
        let view = tool.model_view();
        let told = [view.name, &view.description, view.input_schema.get()].concat();
        assert_eq!(tool.tokens(), Tokens::of(&told), "{}", view.name);
    }
}

#[test]
fn titles_and_schemas_and_other_fields_are_there_when_asked_for() {
    let page = json!({"tools": [
        {"name": "a", "title": "Own \"title\"", "annotations": {"title": "other"},
         "outputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
        {"name": "b", "annotations": {"title": "From annotations"}, "outputSchema": "wrong"},
        {"name": "read", "title": "Read"},
    ]});
    let tools = server_tools("s", &[page]);
    let get = |name: &str| tools.get(name).expect("a tool");
    assert_eq!(get("a").title().as_deref(), Some("Own \"title\""));
    assert_eq!(get("b").title().as_deref(), Some("From annotations"));
    assert_eq!(get("read").title(), None);
    assert_eq!(
        get("a").output_schema().map(RawValue::get),
        Some(r#"{"type":"object"}"#)
    );
    assert_eq!(get("b").output_schema().map(RawValue::get), None);
    let execution = get("a").field("execution").map(RawValue::get);
    assert_eq!(execution, Some(r#"{"taskSupport":"optional"}"#));
}

#[test]
fn tools_in_disguise_are_refused() {
    let page = json!({"tools": [
        {"name": "Bash"}, {"name": "run", "title": "Bash"}, {"name": "rеad"}, {"name": "read"},
        {"name": "sly", "annotations": {"title": "McpSearch"}},
    ]});
    let tools = server_tools("s", &[page]);
    assert_eq!(names(&tools), ["read"]);
    assert_eq!(
        aside(&tools),
        [
            "Bash: its name \"Bash\" reads like the built-in tool Bash",
            "run: its title \"Bash\" reads like the built-in tool Bash",
            "rеad: its name \"rеad\" reads like the built-in tool Read",
            "sly: its title \"McpSearch\" reads like the built-in tool McpSearch",
        ]
    );
}

#[test]
fn hints_from_disk_decide_nothing() {
    let lists = ServerCatalog {
        tools: vec![SharedJson::from(&json!({"tools": [
            {"name": "get", "annotations": {"readOnlyHint": true, "destructiveHint": "no"}},
            {"name": "set"},
        ]}))],
        prompts: vec![SharedJson::from(&json!({"prompts": []}))],
        resources: Vec::new(),
        templates: vec![SharedJson::from(
            &json!({"resourceTemplates": [{"x": 1.50}]}),
        )],
        instructions: Some("Ask first.\n".to_owned()),
    };
    let read = ServerCatalog::from_bytes(&Bytes::from(lists.to_bytes())).expect("readable");
    assert_eq!(read, lists);

    let server = ServerName::from("s");
    let build = |pages: &[SharedJson], provenance| {
        ServerTools::from_pages(
            &server,
            pages,
            &ToolRules::default().trusting_annotations(),
            Reach::Other,
            provenance,
            ListLimits::default(),
        )
    };
    let persisted = build(&read.tools, Provenance::Persisted);
    let live = build(&lists.tools, Provenance::Live);
    let get =
        |tools: &ServerTools, name: &str| tools.get(name).expect("a tool").trusted_annotations();
    assert_eq!(get(&persisted, "get"), None);
    assert_eq!(
        persisted.get("get").expect("a tool").hints().read_only,
        Some(true)
    );
    let facts = |name: &str| {
        let live = get(&live, name).expect("live");
        [
            live.is_read_only(),
            live.is_destructive(),
            live.is_idempotent(),
            live.is_open_world(),
        ]
    };
    assert_eq!(facts("get"), [true, false, true, true]);
    assert_eq!(facts("set"), [false, true, false, true]);
}

#[test]
fn what_was_not_persisted_by_this_version_is_nothing() {
    let good = ServerCatalog::default().to_bytes();
    let other_version = String::from_utf8(good.clone())
        .expect("JSON")
        .replace("\"version\":1", "\"version\":2");
    for bytes in [
        &b""[..],
        b"null",
        b"{}",
        b"\xff\xfe",
        &good[..good.len() - 1],
        other_version.as_bytes(),
    ] {
        assert_eq!(
            ServerCatalog::from_bytes(&Bytes::copy_from_slice(bytes)),
            None
        );
    }
    assert_eq!(
        ServerCatalog::from_bytes(&Bytes::from(good)),
        Some(ServerCatalog::default())
    );
}

/// A list entry of any quality.
fn any_item() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        "[a-e]{1,2}".prop_map(Value::from),
        Just(json!("x\n\"y\"")),
        Just(json!("")),
        Just(json!(7)),
        Just(json!(null)),
    ];
    let field = prop_oneof![
        Just(json!("text \u{e9} \\ \"")),
        Just(json!(null)),
        Just(json!(["]", "}", {"name": "inner"}])),
        Just(json!({"name": "inner", "title": 5, "type": "object"})),
        Just(json!(-1.5e3)),
    ];
    let keys = prop::sample::select(vec![
        "title",
        "description",
        "inputSchema",
        "annotations",
        "icons",
        "_meta",
    ]);
    prop_oneof![
        4 => (prop::option::of(name), prop::collection::vec((keys, field), 0..4)).prop_map(|(name, fields)| {
            let mut item: serde_json::Map<String, Value> =
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            item.extend(name.map(|name| ("name".to_owned(), name)));
            Value::Object(item)
        }),
        1 => prop_oneof![Just(json!(null)), Just(json!([])), Just(json!("tool")), Just(json!(5))],
    ]
}

proptest! {
    #[test]
    fn the_same_tools_are_found_as_by_the_protocols_decoder(items in prop::collection::vec(any_item(), 0..12)) {
        let page = json!({"tools": items});
        let shared = SharedJson::from(&page);
        let decoded: ListToolsResult<'_> = decode(shared.raw()).expect("a list");
        let mut expected: Vec<&str> = decoded.tools.iter().map(|tool| &*tool.name).filter(|name| !name.is_empty()).collect();
        expected.sort_unstable();
        expected.dedup();
        let tools = server_tools("s", std::slice::from_ref(&page));
        prop_assert_eq!(names(&tools), expected);
        prop_assert_eq!(tools.tools().len() + tools.aside().len(), items.len());
        for tool in tools.tools() {
            let typed = decoded.tools.iter().find(|typed| typed.name == tool.reference().tool.as_str()).expect("decoded");
            prop_assert_eq!(tool.description(), typed.description.clone());
        }
    }
}

/// Quoted text with all characters that affect its sanitization.
fn any_written_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "Reads. ",
        "b40",
        "é",
        "漢字",
        "\u{7f}",
        "\u{202e}",
        "\u{e0041}",
        r"\n",
        r"\\u",
        r"\u0041",
        r"\udb40\udc41",
        r"\uDb40\udc41",
    ]);
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_a_tool_costs_and_whether_it_has_tags_does_not_depend_on_how_it_is_written(
        description in any_written_text(),
        title in any_written_text(),
    ) {
        let page = format!(
            r#"{{"tools": [{{"name": "t", "description": "{description}", "inputSchema": {{"type": "object", "title": "{title}"}}}}]}}"#
        );
        let written = RawValue::from_string(page).expect("JSON");
        let page: Value = serde_json::from_str(written.get()).expect("JSON");
        let is_tag = |character: char| ('\u{e0000}'..='\u{e007f}').contains(&character);
        let has_tags = |text: &Value| text.as_str().expect("a text").contains(is_tag);
        let tool = &page["tools"][0];
        let is_poisoned = has_tags(&tool["description"]) || has_tags(&tool["inputSchema"]["title"]);

        let tools = ServerTools::from_pages(
            &ServerName::from("s"),
            &[SharedJson::from(written)],
            &ToolRules::default(),
            Reach::Other,
            Provenance::Live,
            ListLimits::default(),
        );
        prop_assert_eq!(tools.tools().is_empty(), is_poisoned);
        for tool in tools.tools() {
            let view = tool.model_view();
            let told = [view.name, &view.description, view.input_schema.get()].concat();
            prop_assert_eq!(tool.tokens(), Tokens::of(&told));
        }
    }
}

#[test]
fn of_two_lists_in_one_page_the_last_counts() {
    let text = r#"{"tools": [{"name": "a"}], "tools": [{"name": "b"}, 5]}"#;
    let page = RawValue::from_string(text.to_owned()).expect("JSON");
    let tools = ServerTools::from_pages(
        &ServerName::from("s"),
        &[SharedJson::from(page)],
        &ToolRules::default(),
        Reach::Other,
        Provenance::Live,
        ListLimits::default(),
    );
    assert_eq!(names(&tools), ["b"]);
    assert_eq!(aside(&tools), ["expected an object, found a number"]);
}
