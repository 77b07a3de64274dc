//! Property test: an entry written in any format reads back equal.

#[path = "common/arbitrary.rs"]
mod arbitrary;

use proptest::prelude::*;
use switchboard_config::edit::{Edit, apply};
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::format::Format;
use switchboard_config::resolve::{Config, Inputs};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(entry in arbitrary::any_entry(), name in "[a-zA-Z0-9 ._\"'-]{0,8}[a-z]") {
        let others = [
            ("mcp.toml", Format::Toml, "mcp_servers", "# mine\n[mcp_servers.other]\ncommand = 'x' # why\n"),
            ("mcp.json", Format::Json, "mcpServers", "{\n  // mine\n  \"mcpServers\": { \"other\": { \"command\": \"x\" } }\n}\n"),
            ("mcp.hcl", Format::Hcl, "mcp_servers", "# mine\nmcp_servers \"other\" {\n  command = \"x\" # why\n}\n"),
        ];
        for (file, format, container, text) in others {
            for before in ["", text] {
                let edit = Edit::Set { path: &[container, &name], value: entry.to_node() };
                let after = apply(before, format, &edit).unwrap();
                let folders = Folders { config: "/c".into(), ..Folders::default() };
                let files = InMemory::default().file(format!("/c/{file}"), after.as_str());
                let config = Config::load(&Inputs { folders, ..Inputs::default() }, &files);
                prop_assert_eq!(&config.server(&name).unwrap().entry, &entry, "{}", after);
                prop_assert_eq!(config.server("other").is_some(), !before.is_empty());
            }
        }
    }
}
