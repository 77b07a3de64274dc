//! Approvals in imported entries: never imported, always reported with the equivalent rule.

use super::super::dialects::says_nothing;
use super::{Draft, EntryReader, at, member, text};
use crate::entry::Field;
use crate::tree::{Member, Node, Span, Value};

impl EntryReader<'_, '_, '_> {
    /// Codex states per tool whether calls need consent. Stricter modes are imported, as they need no approval.
    pub(super) fn tool_approvals(&mut self, key: &str, node: &Node<'_>, draft: &mut Draft) {
        let mut tools = Vec::new();
        for tool in self.reader.table(key, node).unwrap_or_default() {
            let path = format!("{key}.{}", tool.key);
            for setting in self.reader.table(&path, &tool.value).unwrap_or_default() {
                match (setting.key.as_ref(), setting.value.as_str()) {
                    // Asking before every call is stricter than asking before writes.
                    ("approval_mode", Some("prompt" | "writes")) => {
                        let ask = member(
                            "permission",
                            setting.key_span,
                            text("ask", setting.value.span),
                        );
                        let table = at(tool.value.span, Value::Table(vec![ask]));
                        tools.push(member(tool.key.to_string(), tool.key_span, table));
                    }
                    ("approval_mode", Some("auto")) | ("output_token_limit", _) => {}
                    ("approval_mode", Some("approve")) => {
                        let rule = rule(self.server, Some(&tool.key));
                        self.approval_note(
                            &format!("{path}.approval_mode"),
                            setting.key_span,
                            &rule,
                        );
                    }
                    ("approval_mode", _) => {
                        let modes = &["auto", "prompt", "writes", "approve"];
                        self.reader.word(
                            &format!("{path}.approval_mode"),
                            &setting.value,
                            modes,
                            |_| None::<()>,
                        );
                    }
                    _ => self.reader.unknown_key(setting, ["approval_mode"]),
                }
            }
        }
        if !tools.is_empty() {
            draft.put(Field::Tools, at(node.span, Value::Table(tools)));
        }
    }

    /// Reports an approval, unless it is empty.
    pub(super) fn approval(&mut self, key: &str, member: &Member<'_>) {
        if says_nothing(&member.value) {
            return;
        }
        let tools: Vec<&str> = member
            .value
            .as_array()
            .unwrap_or_default()
            .iter()
            .filter_map(Node::as_str)
            .collect();
        let rules = match tools.as_slice() {
            [] | ["*"] => rule(self.server, None),
            tools => {
                let few = tools
                    .iter()
                    .take(3)
                    .map(|tool| rule(self.server, Some(tool)));
                let more = (tools.len() > 3).then(|| format!("{} more", tools.len() - 3));
                few.chain(more).collect::<Vec<_>>().join(" and ")
            }
        };
        self.approval_note(key, member.key_span, &rules);
    }

    fn approval_note(&mut self, key: &str, span: Span, rules: &str) {
        let message = format!("`{key}` is ignored: an imported entry cannot approve its own calls");
        let hint = format!(
            "if you want that, add [[permissions.rules]] with {rules} to your user configuration"
        );
        self.reader.warning("approval-ignored", span, message, hint);
    }
}

fn rule(server: &str, tool: Option<&str>) -> String {
    format!(
        "tool = \"mcp__{server}__{}\", action = \"allow\"",
        tool.unwrap_or("*")
    )
}
