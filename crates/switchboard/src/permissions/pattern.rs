//! Matches the tool patterns of rules.
//!
//! Matches patterns such as `mcp__server__get_*` against the catalog's names. If a pattern is ambiguous, allow rules
//! are interpreted narrowly and ask or deny rules generously: nothing is allowed by accident, and no spelling evades a
//! deny.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use super::glob::{Case, Glob};
use super::subject::Subject;
use crate::catalog::exposed::{PREFIX, SEPARATOR};

/// The interpretation of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Literal, for allow rules.
    Narrow,
    /// Every plausible meaning, for ask and deny rules and for hooks.
    Generous,
}

/// The tools that a rule covers.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Tools whose name matches.
    Pattern(Box<Pattern>),
    /// One tool of one server, by its own name.
    Tool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// Tools covered by any of these.
    AnyOf(Vec<Target>),
    /// All tools.
    Everything,
}

impl Target {
    /// Whether the rule covers this tool.
    pub(super) fn covers(
        &self,
        names: &Names<'_>,
        servers: &BTreeSet<String>,
        reading: Reading,
    ) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.covers(names, servers, reading),
            Self::Tool { server, tool } => {
                names.subject.server == Some(server.as_str()) && names.subject.tool == tool
            }
            Self::AnyOf(targets) => targets
                .iter()
                .any(|target| target.covers(names, servers, reading)),
            Self::Everything => true,
        }
    }
}

/// All names of one tool, computed once for all patterns.
#[derive(Debug)]
pub(super) struct Names<'a> {
    subject: &'a Subject<'a>,
    of_server: Option<ServerNames<'a>>,
}

#[derive(Debug)]
struct ServerNames<'a> {
    /// The server's and the tool's own names, NFC-normalized.
    server: String,
    tool: String,
    /// The exposed name without shortening or escaping.
    plain: String,
    /// The two parts of the exposed name.
    exposed: (&'a str, &'a str),
}

impl<'a> Names<'a> {
    pub(super) fn new(subject: &'a Subject<'a>) -> Self {
        let of_server = |server: &str| {
            let server: String = server.nfc().collect();
            let tool: String = subject.tool.nfc().collect();
            ServerNames {
                plain: format!("{PREFIX}{server}{SEPARATOR}{tool}"),
                server,
                tool,
                exposed: subject.exposed_parts().unwrap_or_default(),
            }
        };
        Self {
            subject,
            of_server: subject.server.map(of_server),
        }
    }
}

/// The target of a hook's pattern; `None` if it is invalid. Alternatives are separated by `|`, as in other agents.
pub(crate) fn hook_target(pattern: &str) -> Option<Target> {
    let target = |text: &str| match text {
        "" | "*" => Some(Target::Everything),
        text => Pattern::new(text).map(|pattern| Target::Pattern(Box::new(pattern))),
    };
    let targets: Option<Vec<Target>> = pattern.split('|').map(str::trim).map(target).collect();
    targets.map(Target::AnyOf)
}

/// A glob over exposed names, with every way to split it into server and tool.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    whole: Glob,
    /// The ways to split it into server and tool, shortest server first; empty without the prefix.
    splits: Vec<Split>,
    /// Whether the prefix is spelled literally.
    is_plain: bool,
}

#[derive(Debug, Clone)]
struct Split {
    server: Glob,
    /// The server's name, if it has no wildcards.
    literal: Option<String>,
    /// The tools; `None` covers all of them.
    tool: Option<Glob>,
}

impl Pattern {
    /// Compiles a pattern; `None` if it is not a valid glob.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text: String = text.nfc().collect();
        let whole = Glob::new(&text)?;
        let mut splits = Vec::new();
        let (prefix, rest) = text.split_at_checked(PREFIX.len()).unwrap_or_default();
        if prefix.eq_ignore_ascii_case(PREFIX) {
            let ends = rest.as_bytes().windows(SEPARATOR.len()).enumerate();
            for (at, _) in ends.filter(|(_, part)| *part == SEPARATOR.as_bytes()) {
                let (server, tool) = (rest.get(..at), rest.get(at + SEPARATOR.len()..));
                splits.extend(Split::new(server.unwrap_or_default(), tool));
            }
            splits.extend(Split::new(rest, None));
        }
        Some(Self {
            whole,
            splits,
            is_plain: prefix == PREFIX,
        })
    }

    fn covers(&self, names: &Names<'_>, servers: &BTreeSet<String>, reading: Reading) -> bool {
        let exposed = names.subject.exposed;
        match (reading, &names.of_server) {
            (Reading::Narrow, Some(of_server)) if self.is_plain => {
                self.covers_narrowly(exposed, of_server, servers)
            }
            (Reading::Narrow, _) => self.whole.matches(exposed, Case::Exact),
            (Reading::Generous, Some(of_server)) => self.covers_generously(exposed, of_server),
            (Reading::Generous, None) => self.whole.matches(exposed, Case::Ignored),
        }
    }

    fn covers_narrowly(
        &self,
        exposed: &str,
        names: &ServerNames<'_>,
        servers: &BTreeSet<String>,
    ) -> bool {
        let tool_fits = |split: &Split| {
            let fits = |glob: &Glob| {
                glob.matches(&names.tool, Case::Exact) || glob.matches(names.exposed.1, Case::Exact)
            };
            split.tool.as_ref().is_none_or(fits)
        };
        let is_known = |split: &&Split| {
            let known = |name: &str| name == names.server || servers.contains(name);
            split.literal.as_deref().is_some_and(known)
        };
        // A literal server name binds the rule to that server, so that other servers cannot match it. The longest name
        // wins; but a name that may denote a single tool does not cover a whole server.
        let mut known: Vec<&Split> = self.splits.iter().filter(is_known).collect();
        if known.len() > 1 && known.last().is_some_and(|split| split.tool.is_none()) {
            known.pop();
        }
        if let Some(bound) = known.last() {
            return bound.literal.as_deref() == Some(&names.server) && tool_fits(bound);
        }
        let server_fits = |split: &Split| {
            split.server.matches(&names.server, Case::Exact)
                || split.server.matches(names.exposed.0, Case::Exact)
        };
        let has_tool_part = self.splits.iter().any(|split| split.tool.is_some());
        self.splits
            .iter()
            .any(|split| server_fits(split) && tool_fits(split))
            || (!has_tool_part && self.whole.matches(exposed, Case::Exact))
    }

    fn covers_generously(&self, exposed: &str, names: &ServerNames<'_>) -> bool {
        let case = Case::Ignored;
        let split_fits = |split: &Split| {
            let server_fits = split.server.matches(&names.server, case)
                || split.server.matches(names.exposed.0, case);
            // A tool part that matches the empty string covers all tools.
            let tool_fits = |glob: &Glob| {
                glob.matches(&names.tool, case)
                    || glob.matches("", case)
                    || glob.matches(names.exposed.1, case)
            };
            server_fits && split.tool.as_ref().is_none_or(tool_fits)
        };
        self.whole.matches(exposed, case)
            || self.splits.iter().any(split_fits)
            || self.whole.matches(&names.plain, case)
    }
}

impl Split {
    fn new(server: &str, tool: Option<&str>) -> Option<Self> {
        let server = Glob::new(server).filter(|_| !server.is_empty())?;
        let tool = match tool {
            Some(tool) => Some(Glob::new(tool)?),
            None => None,
        };
        Some(Self {
            literal: server.literal(),
            server,
            tool,
        })
    }
}
