//! Search results, and their independence of the index's history.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Document, Hit, Index, LiveIndex};
use crate::catalog::impersonation::KnownServers;
use crate::catalog::{
    Catalog, ListLimits, Provenance, Reach, ServerTools, ToolRules, exposed::exposed_name,
};
use crate::json::SharedJson;
use crate::names::ServerName;

mod words;

/// A server: name, instructions, and tools with descriptions.
type Server = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Fixture in which every query of the tests has an answer.
const SERVERS: &[Server] = &[
    (
        "github",
        "Manages repositories, issues and pull requests",
        &[
            ("createPullRequest", "Open a new pull request"),
            ("get-issue", "Read one issue with its comments"),
            ("list_issues", "List the issues of a repository"),
            ("delete_branch", "Delete a branch"),
            ("search_code", "Search the code of all repositories"),
        ],
    ),
    (
        "tracker",
        "",
        &[
            ("get-issue", "Read one issue of the tracker"),
            ("close_issue", "Close an issue"),
        ],
    ),
    (
        "files",
        "",
        &[
            ("read_file", "Read the contents of a file"),
            ("write_file", "Create a file or overwrite it"),
            ("list_directory", "List what is in a directory"),
            (
                "remove_directory",
                "Delete a directory and everything in it",
            ),
        ],
    ),
    (
        "office",
        "",
        &[
            ("excel_read_sheet", "Read values from a sheet"),
            ("excel_write_to_sheet", "Write values to a sheet"),
            ("create_presentation", "Begin a presentation"),
            ("resize_image", "Make an image smaller"),
        ],
    ),
    (
        "clock",
        "",
        &[("get_current_time", "Tell the current time in a zone")],
    ),
    (
        "calculator",
        "",
        &[("calculate", "Evaluate an arithmetic expression")],
    ),
    (
        "sky",
        "Knows the sky over every city",
        &[("get_weather", "Tell the weather of a city for some days")],
    ),
    (
        "trains",
        "",
        &[
            ("get-tickets", "查询火车余票信息"),
            ("get-stations", "查询车站"),
        ],
    ),
    ("post", "", &[("send_mail", "Send a mail to somebody")]),
    ("maps", "", &[("generate_mind_map", "Draw ideas as a map")]),
];

fn document(server: &str, tool: &str, description: &str) -> Document<'static> {
    Document::new(exposed_name(server, tool), tool.into()).described(description.to_owned())
}

fn world() -> Index {
    let mut index = Index::new();
    for (server, instructions, tools) in SERVERS {
        let tools = tools
            .iter()
            .map(|(tool, description)| document(server, tool, description));
        index.replace(&(*server).into(), instructions, tools);
    }
    index
}

fn names(hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| hit.tool.to_string()).collect()
}

#[track_caller]
fn check_first(query: &str, expected: &str) {
    let hits = world().search(query, 5);
    let first = hits.first().map(|hit| hit.tool.to_string());
    assert_eq!(first.as_deref(), Some(expected), "{query}: {hits:?}");
}

#[test]
fn words_find_identifiers_in_every_spelling() {
    check_first("create pull request", "github/createPullRequest");
    check_first("creating pull requests", "github/createPullRequest");
    check_first("close the issue", "tracker/close_issue");
    check_first("mindmap", "maps/generate_mind_map");
    check_first("weather", "sky/get_weather");
}

#[test]
fn a_tool_that_is_named_comes_first() {
    check_first("mcp__tracker__get-issue", "tracker/get-issue");
    check_first("tracker/get-issue", "tracker/get-issue");
    check_first("tracker.get-issue", "tracker/get-issue");
    check_first("CALCULATE", "calculator/calculate");
    check_first(
        "I want the weather of every city, but with close_issue",
        "tracker/close_issue",
    );
    let both = world().search("get-issue", 5);
    assert_eq!(
        names(&both)[..2],
        ["github/get-issue", "tracker/get-issue"],
        "{both:?}"
    );
}

#[test]
fn a_server_that_is_named_is_favoured() {
    for server in ["github", "tracker"] {
        let hits = world().search(&format!("{server} issues"), 2);
        let servers: Vec<&str> = hits.iter().map(|hit| hit.tool.server.as_str()).collect();
        assert_eq!(servers, [server; 2], "{hits:?}");
    }
}

#[test]
fn selected_tools_are_those_and_no_others() {
    let hits = world().search(
        "select:mcp__clock__get_current_time, files/read_file,nobody",
        5,
    );
    assert_eq!(names(&hits), ["clock/get_current_time", "files/read_file"]);
    assert_eq!(world().search("select:get-issue,get-issue", 1).len(), 1);
    assert_eq!(world().search("select:", 5), []);
}

#[test]
fn words_lead_to_tools_and_a_file_to_the_tool_that_writes_it() {
    let check = |query: &str, expected: &[&str]| {
        let found = names(&world().search(query, 10));
        for tool in expected {
            assert!(found.iter().any(|name| name == tool), "{query}: {found:?}");
        }
    };
    check(
        "How will the weather be tomorrow?",
        &["sky/get_weather", "clock/get_current_time"],
    );
    check(
        "What percentage of trains is late?",
        &["calculator/calculate"],
    );
    check(
        "Put the weather into /home/me/weather.md",
        &["sky/get_weather", "files/write_file"],
    );
    check(
        "Read /home/me/a.xlsx and close every issue in it",
        &["office/excel_read_sheet", "tracker/close_issue"],
    );
    // It does not displace matching tools, and can be disabled.
    let query = "Put the weather into /home/me/weather.md";
    assert_eq!(names(&world().search(query, 1)), ["sky/get_weather"]);
    let mut index = Index::new();
    let query = "Put the weather into /home/me/weather.webm";
    let tools = ["save_video", "weather_map", "weather_radar", "weather_wind"];
    let tools = tools.map(|name| Document::new(name.into(), name.into()));
    index.replace(&"desk".into(), "", tools);
    let last = |index: &Index| names(&index.search(query, 3)).pop();
    assert_eq!(last(&index).as_deref(), Some("desk/save_video"));
    assert_eq!(
        last(&index.without_file_writers()).as_deref(),
        Some("desk/weather_wind")
    );
}

#[test]
fn questions_about_nothing_find_nothing() {
    for query in ["", "   ", "what is the", "?!", "🎉", "zzzzqqqq"] {
        assert_eq!(world().search(query, 10), [], "{query}");
    }
    assert_eq!(world().search("weather", 0), []);
    assert_eq!(Index::new().search("weather", 10), []);
}

#[test]
fn scores_never_rise_and_the_limit_holds() {
    let index = world();
    for query in [
        "read the issue of a repository tomorrow",
        "get",
        "file",
        "list directory",
    ] {
        for limit in [1, 2, 3, 7, 100, usize::MAX] {
            let hits = index.search(query, limit);
            assert!(hits.len() <= limit);
            assert!(
                hits.is_sorted_by(|left, right| left.score >= right.score),
                "{query}: {hits:?}"
            );
            let mut tools = names(&hits);
            tools.sort_unstable();
            tools.dedup();
            assert_eq!(tools.len(), hits.len(), "{query}");
        }
    }
}

#[test]
fn equal_tools_come_in_the_order_of_their_names() {
    let mut index = Index::new();
    for server in ["c", "a", "b"] {
        let tools = ["two", "one"].map(|tool| document(server, tool, "paints a fence"));
        index.replace(&server.into(), "", tools);
    }
    let hits = index.search("paint the fence", 3);
    assert_eq!(names(&hits), ["a/one", "a/two", "b/one"]);
}

#[test]
fn selected_namesakes_come_in_the_order_of_their_servers() {
    let select = |servers: [&str; 3], query: &str, limit: usize| {
        let mut index = Index::new();
        for server in servers {
            let tools = ["read", "Read", "other"].map(|tool| document(server, tool, "reads"));
            index.replace(&server.into(), "", tools);
        }
        // Freed slots are reused in arbitrary order.
        index.replace(
            &servers[0].into(),
            "",
            [document(servers[0], "read", "reads")],
        );
        names(&index.search(query, limit))
    };
    for servers in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
        let found = select(servers, "select:read", 20);
        let all = ["a", "b", "c"].iter().flat_map(|server| {
            let one = servers[0] == *server;
            let names: &[&str] = if one { &["read"] } else { &["Read", "read"] };
            names.iter().map(move |tool| format!("{server}/{tool}"))
        });
        assert_eq!(found, all.collect::<Vec<_>>(), "{servers:?}");
        assert_eq!(select(servers, "select:b/other,read", 2).len(), 2);
        assert_eq!(
            select(servers, "select:c/read,read", 1)[0].to_lowercase(),
            "c/read"
        );
    }
}

#[test]
fn hostile_tools_cost_little_and_break_nothing() {
    let mut index = world();
    let long = "weather ".repeat(200_000);
    let blob = "x".repeat(1_000_000);
    let tools = [
        document("evil", "stuffed", &long),
        document("evil", "blob", &blob),
        document("evil", "", ""),
        document("evil", "🎉🎉", "\u{202e}\u{0}\u{1b}[31m"),
        document("evil", &"n_".repeat(10_000), "天气".repeat(50_000).as_str()),
        document("evil", "stuffed", "a second one of that name"),
    ];
    index.replace(&"evil".into(), &long, tools);
    assert_eq!(index.len(), world().len() + 6);
    let hits = index.search("get weather", 3);
    assert_eq!(names(&hits)[0], "sky/get_weather", "{hits:?}");
    index.remove(&"evil".into());
    assert_eq!(
        index.search("get weather", 3),
        world().search("get weather", 3)
    );
}

#[test]
fn hostile_questions_are_cut() {
    let index = world();
    let words: Vec<String> = (0..100_000)
        .map(|number| format!("weath{number}"))
        .collect();
    for query in [
        "weather ".repeat(200_000),
        "a".repeat(1_000_000),
        words.join(" "),
        "/a/b.c".repeat(200_000),
        "select:x,".to_owned() + &"x,".repeat(500_000),
        "..//..//".repeat(100_000),
        "天气".repeat(300_000),
    ] {
        let hits = index.search(&query, 10);
        assert!(hits.len() <= 10);
    }
}

/// Builds a server's tools as the host does.
fn listed(server: &ServerName, tools: &[(&str, &str)]) -> Arc<ServerTools> {
    let tools: Vec<serde_json::Value> = tools
        .iter()
        .map(|(name, description)| {
            serde_json::json!({"name": name, "description": description, "inputSchema": {
                "type": "object", "properties": {"postcode": {"description": "of the village"}}
            }})
        })
        .collect();
    let page = SharedJson::from(&serde_json::json!({ "tools": tools }));
    Arc::new(ServerTools::from_pages(
        server,
        &[page],
        &ToolRules::default(),
        Reach::Other,
        Provenance::Live,
        ListLimits::default(),
    ))
}

#[test]
fn the_index_follows_the_catalogue() {
    type Offer<'a> = (&'a ServerName, &'a Arc<ServerTools>, Option<&'a Arc<str>>);
    let (sky, post): (ServerName, ServerName) = ("sky".into(), "post".into());
    let (known, _) = KnownServers::admit([&sky, &post]);
    let catalog = |offers: &[Offer<'_>]| {
        let offers = offers.iter().map(|(name, tools, instructions)| {
            ((*name).clone(), Arc::clone(tools), instructions.cloned())
        });
        Catalog::assemble(&known, offers)
    };
    let weather = listed(&sky, &[("get_weather", "Tell the weather")]);
    let letters = listed(&post, &[("send_letter", "Send a letter")]);
    let mut index = Index::new();
    index.update(&catalog(&[(&sky, &weather, None), (&post, &letters, None)]));
    assert_eq!(index.len(), 2);
    assert_eq!(names(&index.search("weather", 5)), ["sky/get_weather"]);
    assert_eq!(index.search("postcode village", 5).len(), 2);

    let instructions: Arc<str> = "Ask for astronomy".into();
    let stars = listed(&sky, &[("find_star", "Find a star")]);
    index.update(&catalog(&[
        (&sky, &stars, Some(&instructions)),
        (&post, &letters, None),
    ]));
    assert_eq!(index.search("weather", 5), []);
    assert_eq!(
        names(&index.search("stars of astronomy", 5)),
        ["sky/find_star"]
    );

    index.update(&catalog(&[(&post, &letters, None)]));
    assert_eq!(
        (index.len(), names(&index.search("letter", 5))),
        (1, vec!["post/send_letter".to_owned()])
    );
    index.update(&Catalog::default());
    assert!(index.is_empty());
}

#[test]
fn what_a_host_keeps_is_of_the_catalogue_at_hand() {
    let sky: ServerName = "sky".into();
    let (known, _) = KnownServers::admit([&sky]);
    let tools = listed(&sky, &[("get_weather", "Tell the weather")]);
    let full = Arc::new(Catalog::assemble(&known, [(sky, tools, None)]));
    let empty = Arc::new(Catalog::default());
    let live = LiveIndex::default();
    for _ in 0..2 {
        assert_eq!(
            names(&live.search(&full, "weather", 5)),
            ["sky/get_weather"]
        );
        assert_eq!(live.search(&full, "weather", 5).len(), 1);
        assert_eq!(live.search(&empty, "weather", 5), []);
    }
}

/// A change to an index.
#[derive(Debug, Clone)]
enum Change {
    Replace(u8, Vec<(String, String)>),
    Remove(u8),
    Pack,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let word = prop::sample::select(vec![
        "read",
        "file",
        "delete",
        "folder",
        "weather",
        "issue",
        "天气",
        "time",
        "current",
        "calculate",
        "write",
        "picture",
        "get",
        "mail",
        "map",
        "pull",
    ]);
    let text = prop::collection::vec(word, 0..6);
    let name = text.clone().prop_map(|words| words.join("_"));
    let tool = (name, text.prop_map(|words| words.join(" ")));
    let tools = prop::collection::btree_map(tool.clone().prop_map(|tool| tool.0), tool, 0..5);
    let tools = tools.prop_map(|tools| {
        tools
            .into_iter()
            .map(|(name, (_, description))| (name, description))
            .collect::<Vec<_>>()
    });
    let change = prop_oneof![
        6 => (0..6_u8, tools).prop_map(|(server, tools)| Change::Replace(server, tools)),
        2 => (0..6_u8).prop_map(Change::Remove),
        1 => Just(Change::Pack),
    ];
    prop::collection::vec(change, 1..24)
}

fn replace(index: &mut Index, server: u8, tools: &[(String, String)]) {
    let name = format!("server{server}");
    let tools = tools
        .iter()
        .map(|(tool, description)| document(&name, tool, description));
    index.replace(&name.as_str().into(), "manages mail and files", tools);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn an_index_that_was_updated_is_one_that_was_built_fresh(changes in changes()) {
        let mut updated = Index::new();
        let mut state = std::collections::BTreeMap::new();
        for change in changes {
            match change {
                Change::Replace(server, tools) => {
                    replace(&mut updated, server, &tools);
                    state.insert(server, tools);
                }
                Change::Remove(server) => {
                    updated.remove(&format!("server{server}").into());
                    state.remove(&server);
                }
                Change::Pack => updated.pack(),
            }
        }
        let mut fresh = Index::new();
        for (server, tools) in &state {
            replace(&mut fresh, *server, tools);
        }
        prop_assert_eq!(updated.len(), fresh.len());
        for query in [
            "read the file", "erase a directory", "wether", "weath", "what will the weather be tomorrow?",
            "save it to /a/b.md", "mail server3", "天气", "select:server2/read_file,read", "get_file", "pic of a map",
        ] {
            prop_assert_eq!(updated.search(query, 7), fresh.search(query, 7), "{}", query);
        }
    }
}
