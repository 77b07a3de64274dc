//! Impersonation checks: names and titles that imitate built-in tools or other servers.
//!
//! Names are compared by how they *read*, after folding confusable characters.
//!
//! | subject | refused when |
//! |---|---|
//! | a server | its name reads like a built-in (`Bash`, `b-a-s-h`, `Rеad` with a Cyrillic е) |
//! | | it starts like an exposed name (`mcp__github`) |
//! | | it reads like the name of another server of higher precedence (`GitHub`, `git-hub` beside `git_hub`) |
//! | a tool | its name reads like a built-in and is not simply the word in lower case |
//! | | its title reads like a built-in whose word is not also its name |
//! | | its name or title is that of another server's tool (`mcp__github__create_issue`, if a server `github` exists) |
//!
//! A tool named `read` is legitimate: it is exposed as `mcp__fs__read`, and short verbs are common tool names. Its
//! title `Read` is just not used. `Read` as a *name* is the built-in's own spelling and refused. A gateway behind
//! another gateway may offer `mcp__x__y` unless a server `x` exists here.

use std::collections::HashMap;
use std::fmt;

use switchboard_config::confusable::{
    built_in, has_tool_prefix, server_key, tool_claim, without_runs,
};
use switchboard_config::text::{is_invisible, visible};

use super::exposed::SEPARATOR;
use crate::names::ServerName;

pub(crate) use switchboard_config::confusable::BUILT_INS;

/// Reason for refusing a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Impersonation {
    /// Confusable with a built-in tool.
    #[error("{what} \"{}\" reads like the built-in tool {built_in}", visible(.shown))]
    BuiltIn {
        /// Whether the name or the title is confusable.
        what: NameOrTitle,
        /// Text as written, truncated.
        shown: String,
        /// Name of the built-in tool.
        built_in: &'static str,
    },
    /// The server's name starts like an exposed tool name.
    #[error("its name begins with \"mcp__\", as the names of tools do")]
    Prefix,
    /// The server's name is confusable with another server's.
    #[error("its name reads like that of the server {other}")]
    Server {
        /// Name of the other server.
        other: ServerName,
    },
    /// The tool claims to belong to another server.
    #[error("{what} presents it as a tool of the server {other}")]
    OthersTool {
        /// Whether the name or the title makes the claim.
        what: NameOrTitle,
        /// Name of the other server.
        other: ServerName,
    },
}

/// Which text of a server or tool is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameOrTitle {
    /// The identifier.
    Name,
    /// The display title.
    Title,
}

impl fmt::Display for NameOrTitle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "its name",
            Self::Title => "its title",
        })
    }
}

/// Whether a tool's title may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TitleUse {
    Shown,
    Withheld,
}

/// Configured servers by their folded names.
#[derive(Debug, Clone, Default)]
pub struct KnownServers {
    by_fold: HashMap<String, ServerName>,
}

impl KnownServers {
    /// Admits names in order of precedence (highest scope first); returns the refused ones as well.
    pub fn admit<'a>(
        names: impl IntoIterator<Item = &'a ServerName>,
    ) -> (Self, Vec<(ServerName, Impersonation)>) {
        let mut known = Self::default();
        let mut refused = Vec::new();
        for name in names {
            if let Err(impersonation) = known.add(name) {
                refused.push((name.clone(), impersonation));
            }
        }
        (known, refused)
    }

    /// Admits a name unless it is confusable. Adding the same name again succeeds.
    pub fn add(&mut self, name: &ServerName) -> Result<(), Impersonation> {
        let folded = self.judge(name)?;
        self.by_fold.insert(folded, name.clone());
        Ok(())
    }

    /// Whether a name could be admitted.
    pub(crate) fn is_free(&self, name: &ServerName) -> bool {
        self.judge(name).is_ok()
    }

    /// Returns the folded name if it may be admitted.
    fn judge(&self, name: &ServerName) -> Result<String, Impersonation> {
        let text = name.as_str();
        if let Some(built_in) = built_in(text) {
            return Err(built_in_impersonation(NameOrTitle::Name, text, built_in));
        }
        if has_tool_prefix(text) {
            return Err(Impersonation::Prefix);
        }
        let folded = server_key(text);
        match self.by_fold.get(&folded) {
            Some(other) if other != name => Err(Impersonation::Server {
                other: other.clone(),
            }),
            _ => Ok(folded),
        }
    }

    /// Releases the name of a server that was removed or disabled.
    pub(crate) fn remove(&mut self, name: &ServerName) {
        if self.is_admitted(name) {
            self.by_fold.remove(&server_key(name.as_str()));
        }
    }

    /// Whether the name is admitted for this server.
    pub(crate) fn is_admitted(&self, name: &ServerName) -> bool {
        self.by_fold.get(&server_key(name.as_str())) == Some(name)
    }

    /// Returns the other server whose tool `text` claims to be, for a tool of `own`.
    pub(super) fn claimed(&self, own: &ServerName, text: &str) -> Option<&ServerName> {
        let rest = tool_claim(text)?;
        rest.match_indices(SEPARATOR).find_map(|(at, _)| {
            let other = self.by_fold.get(&without_runs(&rest[..at]))?;
            (other != own).then_some(other)
        })
    }
}

/// Checks the name and title of a tool, without regard to other servers.
pub(super) fn judge_tool(name: &str, title: Option<&str>) -> Result<TitleUse, Impersonation> {
    let named = built_in(name);
    if let Some(built_in) = named
        && !is_ordinary_word(name, built_in)
    {
        return Err(built_in_impersonation(NameOrTitle::Name, name, built_in));
    }
    match title.and_then(|title| Some((title, built_in(title)?))) {
        None => Ok(TitleUse::Shown),
        Some((_, built_in)) if named == Some(built_in) => Ok(TitleUse::Withheld),
        Some((title, built_in)) => Err(built_in_impersonation(NameOrTitle::Title, title, built_in)),
    }
}

/// Cheap pre-check: whether a text could claim another server's tool, so that [`KnownServers::claimed`] is needed.
pub(super) fn may_claim(text: &str) -> bool {
    // The form `mcp__` needs two separators near the start, which few names have.
    if text.is_ascii() {
        let start = text.bytes().skip(1).take(8);
        return start.filter(|byte| !byte.is_ascii_alphanumeric()).count() >= 2;
    }
    // One compatibility character can expand to two separators.
    text.chars()
        .filter(|character| !is_invisible(*character))
        .skip(1)
        .take(8)
        .any(|character| !character.is_alphanumeric())
}

/// Accepts `read`, but not `Read`, `re_ad`, or a word that only this program uses.
fn is_ordinary_word(name: &str, built_in: &str) -> bool {
    let one_word = !built_in
        .bytes()
        .skip(1)
        .any(|byte| byte.is_ascii_uppercase());
    one_word && name == built_in.to_ascii_lowercase()
}

fn built_in_impersonation(what: NameOrTitle, text: &str, built_in: &'static str) -> Impersonation {
    Impersonation::BuiltIn {
        what,
        shown: text.chars().take(40).collect(),
        built_in,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tool(name: &str, title: Option<&str>, expected: &str) {
        let verdict = match judge_tool(name, title) {
            Ok(TitleUse::Shown) => "fine".to_owned(),
            Ok(TitleUse::Withheld) => "without its title".to_owned(),
            Err(impersonation) => impersonation.to_string(),
        };
        assert_eq!(verdict, expected, "{name} {title:?}");
    }

    #[test]
    fn tools_that_read_like_built_ins_are_refused_and_ordinary_words_are_not() {
        for name in [
            "read",
            "write",
            "edit",
            "bash",
            "glob",
            "grep",
            "agent",
            "read_file",
            "bash_exec",
            "Reader",
            "search",
            "mcp_tools",
            "breadth",
            "読む",
            "läser",
        ] {
            check_tool(name, None, "fine");
        }
        for (name, built_in) in [
            ("Bash", "Bash"),
            ("BASH", "Bash"),
            ("B-a_s h", "Bash"),
            ("G1ob", "Glob"),
            ("GIob", "Glob"),
            ("Rеad", "Read"),
            ("ｒｅａｄ", "Read"),
            ("Wrìte", "Write"),
            ("𝐄𝐝𝐢𝐭", "Edit"),
            ("list_mcp_resources", "ListMcpResources"),
            ("listmcpresources", "ListMcpResources"),
            ("rncp-search", "McpSearch"),
            ("McpSearch", "McpSearch"),
        ] {
            let expected = format!("its name \"{name}\" reads like the built-in tool {built_in}");
            check_tool(name, None, &expected);
        }
        check_tool(
            "re\u{200b}ad",
            None,
            "its name \"re\\u{200b}ad\" reads like the built-in tool Read",
        );
        let padded = format!("Bash{}", "\u{200b}".repeat(10_000));
        assert!(judge_tool(&padded, None).is_err());
    }

    #[test]
    fn a_title_may_not_be_a_built_ins_unless_the_name_is_the_same_word() {
        check_tool("run", Some("Run a command"), "fine");
        check_tool("read", Some("Read"), "without its title");
        check_tool(
            "run",
            Some("Bash"),
            "its title \"Bash\" reads like the built-in tool Bash",
        );
        check_tool(
            "read",
            Some("Write"),
            "its title \"Write\" reads like the built-in tool Write",
        );
    }

    #[track_caller]
    fn check_servers(names: &[&str], expected: &[&str]) {
        let names: Vec<ServerName> = names.iter().map(|name| ServerName::from(*name)).collect();
        let (_, refused) = KnownServers::admit(&names);
        let refused: Vec<String> = refused
            .into_iter()
            .map(|(name, impersonation)| format!("{name}: {impersonation}"))
            .collect();
        assert_eq!(refused, expected);
    }

    #[test]
    fn servers_may_not_read_like_built_ins_or_like_one_another() {
        check_servers(
            &[
                "github",
                "git",
                "hub",
                "github2",
                "filesystem",
                "mcp",
                "mcp_x",
            ],
            &[],
        );
        check_servers(
            &["bash", "Аgent", "mcp__github", "МСР__x"],
            &[
                "bash: its name \"bash\" reads like the built-in tool Bash",
                "Аgent: its name \"Аgent\" reads like the built-in tool Agent",
                "mcp__github: its name begins with \"mcp__\", as the names of tools do",
                "МСР__x: its name begins with \"mcp__\", as the names of tools do",
            ],
        );
        check_servers(
            &[
                "github", "GitHub", "gіthub", "my-db", "my_db", "github", "github_", "my--db",
            ],
            &[
                "GitHub: its name reads like that of the server github",
                "gіthub: its name reads like that of the server github",
                "my_db: its name reads like that of the server my-db",
                "github_: its name reads like that of the server github",
                "my--db: its name reads like that of the server my-db",
            ],
        );
    }

    #[test]
    fn a_name_that_belongs_to_another_server_is_noticed() {
        let names = [
            ServerName::from("github"),
            ServerName::from("evil"),
            ServerName::from("a__b"),
        ];
        let (known, _) = KnownServers::admit(&names);
        let evil = ServerName::from("evil");
        for (text, expected) in [
            ("mcp__github__create_issue", Some("github")),
            ("MCP__GitHub__create_issue", Some("github")),
            ("mсp__gіthub__create_issue", Some("github")),
            ("mcp--github--create", Some("github")),
            ("mcp__a__b__c", Some("a__b")),
            ("mcp__evil__x", None),
            ("mcp__other__x", None),
            ("mcp__github", None),
            ("create_issue", None),
        ] {
            let claimed = known.claimed(&evil, text).map(ServerName::as_str);
            assert_eq!(claimed, expected, "{text}");
            assert!(claimed.is_none() || may_claim(text), "{text}");
        }
        assert!(!may_claim("create_issue"));
    }
}
