//! Words of a query that tools spell differently, or do not contain.

use super::{Document, Index, check_first, names};

/// An index of one server, `desk`, with tools that have only a name.
fn desk<const COUNT: usize>(tools: [&'static str; COUNT]) -> Index {
    let mut index = Index::new();
    let tools = tools.map(|name| Document::new(name.into(), name.into()));
    index.replace(&"desk".into(), "", tools);
    index
}

fn first(index: &Index, query: &str) -> Option<String> {
    names(&index.search(query, 3)).into_iter().next()
}

#[test]
fn typing_mistakes_and_half_words_are_forgiven() {
    check_first("wether forecast", "sky/get_weather");
    check_first("crate pull reqest", "github/createPullRequest");
    check_first("presentaton", "office/create_presentation");
    check_first("presen", "office/create_presentation");
    // Corrected to a word that no tool has, then found through a synonym.
    check_first("fodler", "files/list_directory");
}

#[test]
fn words_that_mean_the_same_are_found() {
    check_first("erase a folder", "files/remove_directory");
    check_first("shrink this picture", "office/resize_image");
    check_first("email my mother", "post/send_mail");
    check_first("railway ticket", "trains/get-tickets");
    check_first("火车票", "trains/get-tickets");
    check_first("车站", "trains/get-stations");
}

#[test]
fn other_forms_of_a_word_are_found() {
    let index = desk([
        "multiply",
        "backup_disk",
        "list_relations",
        "create_note",
        "search_pages",
    ]);
    let first = |query: &str| first(&index, query);
    for (query, expected) in [
        ("the multiplication of 3 and 4", "desk/multiply"),
        ("back up my disk", "desk/backup_disk"),
        ("relationships between tables", "desk/list_relations"),
        ("look up the capital of France", "desk/search_pages"),
        ("find out who wrote it", "desk/search_pages"),
    ] {
        assert_eq!(first(query).as_deref(), Some(expected), "{query}");
    }
    // A name is not a typo, and parts of a name are not words of the query.
    assert_eq!(first("the weather in New York"), None);
    assert_eq!(first("songs of Multiplx"), None);
    assert_eq!(first("multiplx 3 by 4").as_deref(), Some("desk/multiply"));
}

#[test]
fn a_word_that_no_tool_contains_finds_words_near_in_meaning() {
    let index = desk(["deliver_food", "solve_puzzle", "tune_cello"]);
    let check = |query: &str, expected: Option<&str>| {
        assert_eq!(first(&index, query).as_deref(), expected, "{query}");
    };
    check("I would love a pizza", Some("desk/deliver_food"));
    check("my violin is broken", Some("desk/tune_cello"));
    // Names have no meaning of their own.
    check("ask Pizza", None);
    // If a tool contains the word, words near to it do not count.
    let index = desk(["bake_pizza", "deliver_food"]);
    assert_eq!(
        names(&index.search("I would love a pizza", 3)),
        ["desk/bake_pizza"]
    );
}

#[test]
fn a_common_word_is_not_a_typo() {
    let index = desk(["tune_piano", "send_latter"]);
    assert_eq!(
        first(&index, "tune my pianno").as_deref(),
        Some("desk/tune_piano")
    );
    assert_eq!(first(&index, "who wrote these long letters"), None);
}

#[test]
fn common_words_count_less_than_rare_ones() {
    let index = desk(["ask_world", "draw_sonnet"]);
    let found = names(&index.search("a sonnet of the world", 3));
    assert_eq!(found, ["desk/draw_sonnet", "desk/ask_world"]);
}

#[test]
fn a_tool_with_many_words_does_not_win_by_them() {
    let mut index = Index::new();
    let schema = r#"{"properties": {"format": {}, "margin": {}, "paper": {}, "color": {}, "pages": {}, "printer": {}}}"#;
    let tool = |name: &'static str| Document::new(name.into(), name.into());
    let tools = [tool("big_export").with_schema(schema), tool("tiny_export")];
    index.replace(&"desk".into(), "", tools);
    let found = names(&index.search("export", 3));
    assert_eq!(found, ["desk/tiny_export", "desk/big_export"]);
}
