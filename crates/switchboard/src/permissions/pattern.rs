//! Which tools a rule is about.
//!
//! Owns the reading of `mcp__server__get_*` and its kin against the registry's names. Where a pattern can be read in
//! more than one way, a rule that allows is read narrowly and one that asks or denies generously: what was meant is
//! never allowed by accident, and never let through by a spelling.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use super::glob::{Case, Glob};
use super::subject::Subject;
use crate::catalog::exposed::{PREFIX, SEPARATOR};

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Exactly what it says, for rules that allow.
    Narrow,
    /// Whatever it could be meant to say, for rules that ask or deny and for hooks.
    Generous,
}

/// Which tools a rule is about.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Those whose name fits.
    Pattern(Box<Pattern>),
    /// One tool of one server, by its own name.
    Tool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// Those of any of these.
    AnyOf(Vec<Target>),
    /// All of them.
    Everything,
}

impl Target {
    /// Whether the rule is about this tool.
    pub(super) fn covers(
        &self,
        subject: &Subject<'_>,
        servers: &BTreeSet<String>,
        reading: Reading,
    ) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.covers(subject, servers, reading),
            Self::Tool { server, tool } => {
                subject.server == Some(server.as_str()) && subject.tool == tool
            }
            Self::AnyOf(targets) => targets
                .iter()
                .any(|target| target.covers(subject, servers, reading)),
            Self::Everything => true,
        }
    }
}

/// The tools a hook's pattern is about; `None` if it is none. Alternatives are written with `|`, as other agents do.
pub(crate) fn hook_target(pattern: &str) -> Option<Target> {
    let target = |text: &str| match text {
        "" | "*" => Some(Target::Everything),
        text => Pattern::new(text).map(|pattern| Target::Pattern(Box::new(pattern))),
    };
    let targets: Option<Vec<Target>> = pattern.split('|').map(str::trim).map(target).collect();
    targets.map(Target::AnyOf)
}

/// A glob over exposed names, with everything it can mean for a server and its tools.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    whole: Glob,
    /// The ways to tell a server's part from a tool's, the shortest server first; empty without the prefix.
    splits: Vec<Split>,
}

#[derive(Debug, Clone)]
struct Split {
    server: Glob,
    /// The server's name, where it is spelled out.
    literal: Option<String>,
    /// The tools; all of them if there is none.
    tool: Option<Glob>,
}

impl Pattern {
    /// Compiles a pattern; `None` for one that is no glob.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text: String = text.nfc().collect();
        let whole = Glob::new(&text)?;
        let mut splits = Vec::new();
        if let Some(rest) = text.strip_prefix(PREFIX) {
            let mut from = 0;
            while let Some(at) = rest
                .get(from..)
                .and_then(|rest| rest.find(SEPARATOR))
                .map(|at| at + from)
            {
                let (server, tool) = (rest.get(..at), rest.get(at + SEPARATOR.len()..));
                splits.extend(Split::new(server.unwrap_or_default(), tool));
                from = at + 1;
            }
            splits.extend(Split::new(rest, None));
        }
        Some(Self { whole, splits })
    }

    fn covers(&self, subject: &Subject<'_>, servers: &BTreeSet<String>, reading: Reading) -> bool {
        let Some(server) = subject.server else {
            let case = match reading {
                Reading::Narrow => Case::Exact,
                Reading::Generous => Case::Ignored,
            };
            return self.whole.matches(subject.exposed, case);
        };
        let server: String = server.nfc().collect();
        let tool: String = subject.tool.nfc().collect();
        match reading {
            Reading::Narrow => self.covers_narrowly(subject, &server, &tool, servers),
            Reading::Generous => self.covers_generously(subject, &server, &tool),
        }
    }

    fn covers_narrowly(
        &self,
        subject: &Subject<'_>,
        server: &str,
        tool: &str,
        servers: &BTreeSet<String>,
    ) -> bool {
        let parts = subject.exposed_parts();
        let tool_fits = |split: &Split| {
            let fits = |glob: &Glob| {
                glob.matches(tool, Case::Exact)
                    || parts.is_some_and(|(_, exposed)| glob.matches(exposed, Case::Exact))
            };
            split.tool.as_ref().is_none_or(fits)
        };
        let is_known = |split: &&Split| {
            let known = |name: &str| name == server || servers.contains(name);
            split.literal.as_deref().is_some_and(known)
        };
        // A server that is spelled out binds the rule to it: no other server's names can make it theirs. Of several, the
        // longest counts; but a name that can be that of one tool is not taken for a whole server.
        let mut named: Vec<&Split> = self.splits.iter().filter(is_known).collect();
        if named.len() > 1 && named.last().is_some_and(|split| split.tool.is_none()) {
            named.pop();
        }
        if let Some(bound) = named.last() {
            return bound.literal.as_deref() == Some(server) && tool_fits(bound);
        }
        let server_fits = |split: &Split| {
            split.server.matches(server, Case::Exact)
                || parts.is_some_and(|(exposed, _)| split.server.matches(exposed, Case::Exact))
        };
        let has_tool_part = self.splits.iter().any(|split| split.tool.is_some());
        self.splits
            .iter()
            .any(|split| server_fits(split) && tool_fits(split))
            || (!has_tool_part && self.whole.matches(subject.exposed, Case::Exact))
    }

    fn covers_generously(&self, subject: &Subject<'_>, server: &str, tool: &str) -> bool {
        let case = Case::Ignored;
        let parts = subject.exposed_parts();
        let split_fits = |split: &Split| {
            let server_fits = split.server.matches(server, case)
                || parts.is_some_and(|(exposed, _)| split.server.matches(exposed, case));
            // Whoever writes nothing for the tool means all of them, or nothing at all.
            let tool_fits = |glob: &Glob| {
                glob.matches(tool, case)
                    || glob.matches("", case)
                    || parts.is_some_and(|(_, exposed)| glob.matches(exposed, case))
            };
            server_fits && split.tool.as_ref().is_none_or(tool_fits)
        };
        self.whole.matches(subject.exposed, case)
            || self.splits.iter().any(split_fits)
            || self
                .whole
                .matches(&format!("{PREFIX}{server}{SEPARATOR}{tool}"), case)
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
