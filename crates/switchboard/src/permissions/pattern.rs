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

/// All names of one tool, put together once for all the patterns they are compared with.
#[derive(Debug)]
pub(super) struct Names<'a> {
    subject: &'a Subject<'a>,
    of_server: Option<ServerNames<'a>>,
}

#[derive(Debug)]
struct ServerNames<'a> {
    /// The server's and the tool's own names, in the one form that equal characters have.
    server: String,
    tool: String,
    /// What the exposed name would be if it could say everything plainly.
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
    /// Whether the prefix is written as names have it.
    is_plain: bool,
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
        // A server that is spelled out binds the rule to it: no other server's names can make it theirs. Of several, the
        // longest counts; but a name that can be that of one tool is not taken for a whole server.
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
            // Whoever writes nothing for the tool means all of them, or nothing at all.
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
