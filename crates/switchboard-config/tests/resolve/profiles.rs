//! Tests of profiles: formats, scopes, trust and findings.

use switchboard_config::policy::{ProfileEntry, SearchWhen};

use crate::machine::*;

const REVIEW: &str = r#"
[profiles.review]
servers = ["s", "git*"]
tools = ["s/get_*", "list"]
disabled_tools = ["s/get_secret"]
rename = { "s/get_issue" = "issue" }
search = "off"
search_budget = 5000
instructions = "Read only."
[[profiles.review.permissions.rules]]
tool = "mcp__s__*"
action = "ask"
"#;

const REVIEW_JSON: &str = r#"{"profiles": {"review": {
    "servers": ["s", "git*"], "tools": ["s/get_*", "list"], "disabledTools": ["s/get_secret"],
    "rename": {"s/get_issue": "issue"}, "search": "off", "searchBudget": 5000, "instructions": "Read only.",
    "permissions": {"rules": [{"tool": "mcp__s__*", "action": "ask"}]}
}}, "mcpServers": {"s": {"command": "a"}, "github": {"command": "b"}}}"#;

const REVIEW_HCL: &str = r#"
profiles "review" {
  servers        = ["s", "git*"]
  tools          = ["s/get_*", "list"]
  disabled_tools = ["s/get_secret"]
  rename         = { "s/get_issue" = "issue" }
  search         = "off"
  search_budget  = 5000
  instructions   = "Read only."
  permissions {
    rules {
      tool   = "mcp__s__*"
      action = "ask"
    }
  }
}
mcp_servers "s" {
  command = "a"
}
mcp_servers "github" {
  command = "b"
}
"#;

fn review(text: &str) -> String {
    toml("s", "a") + &toml("github", "b") + text
}

/// A profile without the places where it is written.
fn shown(profile: &ProfileEntry) -> String {
    let rules = profile.rules.iter();
    let rules: Vec<_> = rules
        .map(|rule| format!("{} {}", rule.action, rule.tool))
        .collect();
    format!(
        "{} {:?} {:?} {:?} {:?} {rules:?} {:?} {:?} {:?} {:?}",
        profile.name,
        profile.servers,
        profile.tools,
        profile.disabled_tools,
        profile.rename,
        profile.search.map(SearchWhen::name),
        profile.search_budget,
        profile.instructions,
        profile.faults
    )
}

#[test]
fn every_format_has_the_same_profiles() {
    let expected = r#"review Some(["s", "git*"]) Some(["s/get_*", "list"]) ["s/get_secret"] [("s/get_issue", "issue")] ["ask mcp__s__*"] Some("off") Some(5000) Some("Read only.") []"#;
    let folder = "/h/.config/switchboard";
    for (file, text) in [
        (USER.to_owned(), review(REVIEW)),
        (format!("{folder}/mcp.json"), REVIEW_JSON.to_owned()),
        (format!("{folder}/mcp.hcl"), REVIEW_HCL.to_owned()),
    ] {
        let config = Machine::new().file(&file, &text).load();
        assert_eq!(config.diagnostics, [], "{file}");
        let profiles: Vec<_> = config.profiles.iter().map(shown).collect();
        assert_eq!(profiles, [expected], "{file}");
    }
}

#[test]
fn the_highest_scope_has_the_whole_profile() {
    let machine = Machine::new()
        .file(ENTERPRISE, "mode = \"merge\"\n[profiles.a]\nservers = []\n")
        .file(PROJECT, "[profiles.a]\n[profiles.b]\nsearch = \"on\"\n")
        .file(USER, "[profiles.b]\nservers = []\n[profiles.c]\n")
        .trusted();
    let config = machine.load();
    let found: Vec<_> = config
        .profiles
        .iter()
        .map(|profile| {
            let scope = profile.origin.scope();
            (
                profile.name.as_str(),
                scope.name(),
                profile.servers.is_some(),
            )
        })
        .collect();
    let expected = [
        ("a", "enterprise", true),
        ("b", "project", false),
        ("c", "user", false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_profile_of_a_project_has_no_effect_until_it_is_trusted() {
    let machine = Machine::new()
        .file(PROJECT, "[profiles.ci]\n")
        .file(USER, "[profiles.ci]\nservers = []\n");
    let config = machine.load();
    assert_eq!(config.profile("ci").unwrap().origin.scope().name(), "user");
    let questions: Vec<_> = config
        .questions
        .iter()
        .map(|each| each.subject.to_string())
        .collect();
    assert_eq!(questions, [".mcp.toml#profiles"]);
    let config = machine.approve().load();
    assert_eq!(
        config.profile("ci").unwrap().origin.scope().name(),
        "project"
    );
}

#[test]
fn findings_name_the_profile_and_the_nearest_key() {
    let check = |profile: &str, expected: &str, is_usable: bool| {
        let text = review(&format!("[profiles.p]\n{profile}\n"));
        let config = Machine::new().file(USER, &text).load();
        let found: Vec<String> = config
            .diagnostics
            .iter()
            .map(|finding| {
                format!(
                    "{}; {}",
                    finding.message,
                    finding.hint.as_deref().unwrap_or("")
                )
            })
            .collect();
        assert_eq!(found, [expected], "{profile}");
        assert_eq!(
            config.profile("p").unwrap().faults.is_empty(),
            is_usable,
            "{profile}"
        );
    };
    check(
        "server = []",
        "unknown key `server`; did you mean `servers`?",
        true,
    );
    check(
        "servers = ['githb']",
        "\"githb\" in `profiles.p.servers` matches no server; did you mean \"github\"?",
        true,
    );
    check(
        "rename = { 'githb/x' = 'y' }",
        "\"githb/x\" in `profiles.p.rename` is not a tool of a configured server; did you mean \"github\"?",
        true,
    );
    check(
        "rename = { x = 'y' }",
        "`profiles.p.rename` names the tool \"x\" without its server; write the server and the tool's own name, such as \"github/create_issue\"",
        false,
    );
    check(
        "rename = { 's/x' = 'Bash' }",
        "`profiles.p.rename` cannot rename s/x to \"Bash\": it could be mistaken for a built-in tool; choose another name",
        false,
    );
    check(
        "rename = { 's/x' = 'mcp__github__y' }",
        "`profiles.p.rename` cannot rename s/x to \"mcp__github__y\": names with the prefix mcp__ belong to the tools of servers; choose a name without the prefix",
        false,
    );
    check(
        "rename = { 's/x' = 'y', 's/z' = 'y' }",
        "s/x and s/z have the same name \"y\"; choose different names; until then both get a suffix",
        true,
    );
    check(
        "search = 'sometimes'",
        "`profiles.p.search` cannot be \"sometimes\"; write one of auto, on, off",
        false,
    );
    check(
        "tools = ['[']",
        "`profiles.p.tools` has the invalid pattern \"[\"; write a glob such as \"github\" or \"github/create_*\"",
        false,
    );
    check(
        "[[profiles.p.permissions.rules]]\ntool = '*'\naction = 'allow'",
        "the rule \"*\" allows, but a profile can only restrict; use action = \"ask\" or \"deny\"; rules that allow belong in [[permissions.rules]]",
        true,
    );
}

#[test]
fn a_name_must_fit_an_address() {
    for (name, is_usable) in [
        ("a-b_c.1", true),
        ("'a b'", false),
        ("'../x'", false),
        ("'.a'", false),
    ] {
        let config = Machine::new()
            .file(USER, &format!("[profiles.{name}]\n"))
            .load();
        let profile = config.profiles.first().unwrap();
        assert_eq!(profile.faults.is_empty(), is_usable, "{name}");
    }
}

#[test]
fn a_file_with_a_syntax_error_has_no_usable_profile() {
    let text = "[profiles.a]\nservers = [\"x\"\n[profiles.b]\n";
    let config = Machine::new().file(USER, text).load();
    assert!(
        config
            .profiles
            .iter()
            .all(|profile| !profile.faults.is_empty())
    );
}
