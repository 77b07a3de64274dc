//! Servers and tools that are missing show the same words in every command, in a chat and in `serve`.

use serde_json::json;
use switchboard_test::model::Turn;

use crate::chat::Machine;
use crate::serve;
use crate::servers::{configure, log};
use crate::support::TestContext;
use crate::terminal::{Terminal, ends_with_prompt};

/// One server per reason to be missing, and one that works but hides some of its tools.
fn with_every_reason(context: &TestContext) {
    configure(
        context,
        &[
            ("good", ";disabled_tools = [\"hidden\", \"die\"]"),
            ("broken", "exit"),
            ("off", ";enabled = false"),
        ],
    );
    let more = "[mcp_servers.token]\nurl = \"https://mcp.example.com/\"\nbearer_token_env_var = \"NO_SUCH_TOKEN\"\n\
                [mcp_servers.denied]\ncommand = \"npx\"\n[security]\nmcp_server_denylist = [\"denied\"]\n";
    context.write("config/mcp.toml", context.read("config/mcp.toml") + more);
    context.write(
        "project/.mcp.toml",
        "[mcp_servers.new]\ncommand = \"npx\"\n",
    );
}

/// Each server's state, and a part of the reason.
const REASONS: &[(&str, &str, &str)] = &[
    ("broken", "failed", "the process exited with status 2"),
    ("denied", "blocked", "denied by \"denied\""),
    ("good", "connected", "1 set aside, 2 hidden by its entry"),
    ("new", "untrusted", "not approved yet"),
    ("off", "disabled", ""),
    ("token", "invalid", "`NO_SUCH_TOKEN` is not set"),
];

#[test]
fn the_list_in_a_chat_has_the_states_and_reasons_of_mcp_list() {
    let machine = Machine::new(Vec::new());
    with_every_reason(&machine.context);
    let list = machine.context.line("mcp list").stdout;
    let mut terminal = Terminal::start(&machine, &["chat"], 160, &[]);
    terminal.sees_prompt();
    // Connects all servers.
    terminal.press("/tools\r");
    terminal.sees("mcp__good__echo");
    terminal.sees_prompt();
    terminal.press("/mcp list\r");
    // Wait for the answer: the typed text is on the screen earlier.
    let heading = "NAME    STATE";
    terminal.until("the list", |screen| {
        let listed = screen.rsplit_once(heading);
        listed.is_some_and(|(_, listed)| ends_with_prompt(listed))
    });
    let screen = terminal.screen();
    let (_, listed) = screen.rsplit_once(heading).unwrap();
    for (shown, place) in [(&*list, "mcp list"), (listed, "/mcp")] {
        for (name, state, reason) in REASONS {
            let mut rows = shown.lines();
            let row = rows.find(|line| line.split_whitespace().next() == Some(name));
            let row = row.unwrap_or_else(|| panic!("{place} does not have {name}\n{shown}"));
            assert!(row.contains(state), "{place}: {row}");
            assert!(
                shown.contains(reason),
                "{place} does not say {reason}\n{shown}"
            );
        }
    }
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn serve_says_on_standard_error_which_servers_are_left_out_and_why() {
    let machine = serve::Machine::new(vec![Turn::text("Hello.")]);
    with_every_reason(&machine.context);
    let mut served = machine.serve(&[]);
    served.greet();
    let answer = served.call("switchboard", &json!({"prompt": "hello"}));
    assert_eq!(answer["response"], "Hello.", "{answer}");
    let notes = served.notes_until("broken");
    for (name, state, reason) in REASONS {
        let is_missed = !matches!(*state, "connected" | "disabled");
        let said = notes
            .lines()
            .any(|line| line.contains(name) && line.contains(reason));
        assert_eq!(said, is_missed, "{name}\n{notes}");
    }
    assert_eq!(served.leave(), Some(0));
}

#[test]
fn tools_that_wait_for_an_approval_are_counted_alike_everywhere() {
    let machine = Machine::new(Vec::new());
    let context = &machine.context;
    configure(
        context,
        &[("shop", ";disabled_tools = [\"hidden\", \"die\"]")],
    );
    assert_eq!(context.line("call shop/echo text=hello").code, 0);
    let changed = json!({"tools": [{"name": "echo", "description": "Another.", "inputSchema": {"type": "object"}}]});
    let file = format!("{}.changes", log(context, "shop").display());
    std::fs::write(file, changed.to_string()).unwrap();
    // One has no name, and one has changed.
    let rest = "2 set aside, 2 hidden by its entry";
    for (line, said) in [
        ("tools", format!("6 tools ({rest})")),
        ("doctor", format!("6 tools ({rest})")),
        ("mcp list", format!("6 ({rest})")),
        ("status --connect", format!("6 ({rest})")),
    ] {
        let run = context.line(line);
        assert!(run.stdout.contains(&said), "{line}: {said}\n{}", run.all());
    }
    let mut terminal = Terminal::start(&machine, &["chat"], 160, &[]);
    terminal.sees_prompt();
    terminal.press("/mcp reconnect shop\r");
    terminal.sees(&format!("shop is connected: 6 tools ({rest})"));
    terminal.sees_prompt();
    terminal.press("/mcp list\r");
    terminal.until("the count", |screen| {
        screen.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&["shop", "connected", "6"]) && line.contains(rest)
        })
    });
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}
