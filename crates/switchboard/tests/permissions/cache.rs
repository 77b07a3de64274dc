//! Tests of the cache of compiled rules, which is keyed by the exposed name of a tool.

use switchboard::permissions::{Policy, Subject};

use crate::machine::user_engine;

#[test]
fn tools_that_share_an_exposed_name_keep_their_own_rules() {
    let text = "
[mcp_servers.a]
command = 'a'
tools = { x = { permission = 'allow' }, y = { permission = 'deny' } }
[mcp_servers.b]
command = 'b'
tools = { x = { permission = 'ask' } }
";
    let tools = [("a", "x", "allow"), ("a", "y", "deny"), ("b", "x", "ask")];
    for first in tools {
        for second in tools {
            let engine = user_engine(text, Policy::typed());
            let decide = |(server, tool, _)| {
                let subject = Subject {
                    exposed: "mcp__shared",
                    server: Some(server),
                    tool,
                    annotations: None,
                };
                engine.decide(&subject, None).permission.name()
            };
            assert_eq!(decide(first), first.2, "{first:?}");
            assert_eq!(decide(second), second.2, "{second:?} after {first:?}");
        }
    }
}
