//! `preflight`: exit codes and reasons for scripts.

use serde_json::json;

use crate::support::TestContext;

#[test]
fn the_exit_code_says_whether_tools_can_be_called() {
    let context = TestContext::new();
    let run = context.line("preflight workspace/grep mcp__workspace__glob --json");
    let found: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let row =
        |tool: &str| json!({"tool": tool, "server": "workspace", "state": "ready", "reason": null});
    assert_eq!(
        found,
        json!([row("workspace/grep"), row("mcp__workspace__glob")])
    );
    assert_eq!(run.code, 0);

    let run = context.line("preflight workspace/grep workspace/gerp");
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(run.stdout.contains("unknown"), "{}", run.stdout);
    assert!(run.stdout.contains("did you mean"), "{}", run.stdout);

    assert_eq!(
        context.line("mcp add broken -- /nonexistent-program").code,
        0
    );
    let run = context.line("preflight broken/x --json");
    let found: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found[0]["state"], "blocked", "{found}");
    assert!(found[0]["reason"].is_string(), "{found}");
    assert_eq!(run.code, 5);
}
