//! How many tool definitions a client can take, by its name.
//!
//! `--search auto` replaces the definitions with search if they come to a tenth of the client's context window, at 2.5
//! characters a token, or if they are more than the client passes on to its model.

/// Share of the context window that definitions may take, in percent.
const PERCENT: u64 = 10;
/// Context window of a client that is not in the table, in tokens.
const USUAL_WINDOW: u64 = 200_000;

/// What a client can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientBudget {
    /// Tokens of definitions from which search is the better choice.
    tokens: u64,
    /// Most tools that the client passes on; `None`: no limit is known.
    tools: Option<usize>,
}

/// Clients that differ from the rest: the beginning of the name in `clientInfo`, in lowercase; the context window in
/// tokens; the limit of tools.
const CLIENTS: &[(&str, u64, Option<usize>)] = &[
    ("cursor", USUAL_WINDOW, Some(40)),
    ("windsurf", USUAL_WINDOW, Some(100)),
    ("visual studio code", 128_000, Some(128)),
    ("codex", 272_000, None),
    ("gemini", 1_000_000, None),
];

impl ClientBudget {
    /// The budget of the client with this name; `None` if it did not say its name.
    pub(super) fn of(client: Option<&str>) -> Self {
        let name = client.unwrap_or_default().to_lowercase();
        let known = CLIENTS.iter().find(|(start, ..)| name.starts_with(start));
        let (window, tools) =
            known.map_or((USUAL_WINDOW, None), |(_, window, tools)| (*window, *tools));
        Self {
            tokens: window * PERCENT / 100,
            tools,
        }
    }

    /// A budget that the user has set.
    pub(super) fn of_tokens(tokens: u64) -> Self {
        Self {
            tokens,
            tools: None,
        }
    }

    /// Whether this number of tools, or of tokens in their definitions, exceeds the budget.
    pub(super) fn is_exceeded(self, tools: usize, tokens: u64) -> bool {
        tokens >= self.tokens.max(1) || self.tools.is_some_and(|most| tools > most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_depends_on_the_window_and_the_tool_limit_of_the_client() {
        let check = |client: Option<&str>, tools: usize, tokens: u64, expected: bool| {
            let budget = ClientBudget::of(client);
            let found = budget.is_exceeded(tools, tokens);
            assert_eq!(found, expected, "{client:?} {tools} {tokens}");
        };
        check(None, 300, 19_999, false);
        check(None, 1, 20_000, true);
        check(Some("claude-code"), 300, 19_999, false);
        check(Some("cursor-vscode"), 40, 5_000, false);
        check(Some("Cursor"), 41, 5_000, true);
        check(Some("Visual Studio Code"), 128, 12_799, false);
        check(Some("Visual Studio Code"), 129, 100, true);
        check(Some("gemini-cli-mcp-client"), 500, 99_999, false);
        check(Some("codex-mcp-client"), 500, 27_200, true);
        check(Some("anything"), 0, 0, false);
        assert!(ClientBudget::of_tokens(50).is_exceeded(1, 50));
        assert!(!ClientBudget::of_tokens(50).is_exceeded(1_000, 49));
    }
}
