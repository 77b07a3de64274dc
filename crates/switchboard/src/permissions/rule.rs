//! Rules as they are compiled, and the grounds of a decision.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;
use switchboard_config::entry::Permission;
use switchboard_config::policy::{ArgumentTest, RuleEntry};
use switchboard_config::source::Origin;

use super::condition::Condition;
use super::exact::Exact;
use super::path::Base;
use super::pattern::{Pattern, Reading, Target};

/// One rule, compiled.
#[derive(Debug)]
pub struct Rule {
    /// The tools it is about, as written.
    pub tool: String,
    /// What it says of them.
    pub action: Permission,
    /// Its conditions, for people.
    pub conditions: Vec<String>,
    /// Where it stands.
    pub origin: Origin,
    pub(super) target: Target,
    pub(super) tests: Vec<Condition>,
    /// What the arguments must be, where the rule says all of them.
    exact: Option<Exact>,
    pub(super) grounds: Arc<Grounds>,
}

/// Something that is wrong with a rule or a hook. It is in force all the same, as strictly as it can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleProblem {
    /// What is wrong: a lowercase fragment.
    pub message: String,
    /// Where it stands.
    pub origin: Origin,
}

/// What a decision rests on.
#[derive(Debug)]
pub struct Grounds {
    /// What was decided.
    pub permission: Permission,
    /// Why.
    pub because: Because,
    /// The file and line of the rule, once somebody has asked: the audit log does for every call.
    source: OnceLock<Option<String>>,
}

impl Grounds {
    /// Grounds for a decision.
    pub fn new(permission: Permission, because: Because) -> Self {
        Self {
            permission,
            because,
            source: OnceLock::new(),
        }
    }

    /// The file and line of the rule or hook that decided or asked.
    pub fn source(&self) -> Option<&str> {
        let source = self.source.get_or_init(|| {
            let origin = self.because.origin()?;
            Some(format!(
                "{}:{}",
                origin.path().display(),
                origin.position().line
            ))
        });
        source.as_deref()
    }
}

impl PartialEq for Grounds {
    fn eq(&self, other: &Self) -> bool {
        self.permission == other.permission && self.because == other.because
    }
}

/// Why a call is allowed, asked about or denied.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum Because {
    /// A rule says so.
    Rule {
        /// The tools it is about, as written.
        tool: String,
        /// Where it stands.
        origin: Origin,
    },
    /// Its server is trusted to say that it changes nothing.
    ReadOnly,
    /// Its server says that it may destroy something.
    Destructive,
    /// No rule is about it.
    Default,
    /// It is a command, and this system has no sandbox that would keep it from Switchboard's own files.
    NoSandbox,
    /// It would read a file outside the workspace.
    Outside,
    /// It would read a place where secrets are kept.
    Secret {
        /// The argument, as written.
        argument: String,
    },
    /// It would read Switchboard's own configuration, state or keys.
    OwnSecret {
        /// The argument, as written.
        argument: String,
    },
    /// It would change one of Switchboard's own files.
    OwnFile {
        /// The argument, as written.
        argument: String,
    },
    /// A person was asked.
    Person {
        /// Whether the answer holds for the session.
        session: bool,
        /// What asked.
        asked: Arc<Grounds>,
    },
    /// A person was asked and did not answer.
    NoAnswer,
    /// Nobody could be asked.
    Unattended {
        /// What asked.
        asked: Arc<Grounds>,
    },
    /// A hook said so.
    Hook {
        /// Where it stands; `None` for one that is part of the program.
        origin: Option<Origin>,
    },
}

impl Rule {
    /// A rule of a file.
    pub(super) fn new(entry: &RuleEntry, base: &Base) -> (Self, Vec<RuleProblem>) {
        let mut problems = Vec::new();
        let mut problem = |message: String| {
            problems.push(RuleProblem {
                message,
                origin: entry.origin.clone(),
            });
        };
        let target = if let Some(pattern) = Pattern::new(&entry.tool) {
            Target::Pattern(Box::new(pattern))
        } else {
            // A pattern that nobody understands allows nothing and holds everything off.
            problem(format!("the pattern \"{}\" cannot be used", entry.tool));
            match entry.action {
                Permission::Allow => Target::AnyOf(Vec::new()),
                Permission::Ask | Permission::Deny => Target::Everything,
            }
        };
        let mut tests = Vec::new();
        for condition in &entry.arguments {
            let (test, message) = Condition::new(condition, base);
            tests.push(test);
            if let Some(message) = message {
                problem(format!("{message}, in the rule for \"{}\"", entry.tool));
            }
        }
        let shown = entry.arguments.iter().map(|condition| {
            let test = match condition.test {
                ArgumentTest::Command => "begins with",
                test => test.name(),
            };
            format!("{} {test} {:?}", condition.argument, condition.value)
        });
        let exact = entry.exact_arguments.as_deref();
        let shown = shown.chain(exact.map(|object| format!("arguments equal {object}")));
        let rule = Self {
            tool: entry.tool.clone(),
            action: entry.action,
            conditions: shown.collect(),
            exact: exact.map(Exact::new),
            origin: entry.origin.clone(),
            grounds: grounds(&entry.tool, entry.action, &entry.origin),
            target,
            tests,
        };
        (rule, problems)
    }

    /// What a server's entry says of one of its tools.
    pub(super) fn of_tool(server: &str, tool: &str, action: Permission, origin: Origin) -> Self {
        let shown = format!("{server}/{tool}");
        Self {
            action,
            conditions: Vec::new(),
            target: Target::Tool {
                server: server.to_owned(),
                tool: tool.to_owned(),
            },
            tests: Vec::new(),
            exact: None,
            grounds: grounds(&shown, action, &origin),
            tool: shown,
            origin,
        }
    }

    pub(super) fn reading(&self) -> Reading {
        match self.action {
            Permission::Allow => Reading::Narrow,
            Permission::Ask | Permission::Deny => Reading::Generous,
        }
    }

    /// Whether it is about all calls of the tools it covers.
    pub(super) fn is_unconditional(&self) -> bool {
        self.tests.is_empty() && self.exact.is_none()
    }

    /// Whether its conditions hold for a call of a tool it covers.
    pub(super) fn holds(&self, arguments: Option<&RawValue>, base: &Base) -> bool {
        let is_exact = |exact: &Exact| exact.holds(arguments, self.reading() == Reading::Generous);
        self.exact.as_ref().is_none_or(is_exact)
            && self
                .tests
                .iter()
                .all(|test| test.holds(arguments, base, self.reading()))
    }
}

impl Because {
    /// A word for scripts and for the audit.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Rule { .. } => "rule",
            Self::ReadOnly => "read-only",
            Self::Destructive => "destructive",
            Self::Default => "default",
            Self::NoSandbox => "no-sandbox",
            Self::Outside => "outside",
            Self::Secret { .. } => "secret",
            Self::OwnSecret { .. } => "own-secret",
            Self::OwnFile { .. } => "own-file",
            Self::Person { .. } => "person",
            Self::NoAnswer => "no-answer",
            Self::Unattended { .. } => "unattended",
            Self::Hook { .. } => "hook",
        }
    }

    /// Where the rule or the hook stands, also where it only made somebody ask.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Rule { origin, .. } => Some(origin),
            Self::Hook { origin } => origin.as_ref(),
            Self::Person { asked, .. } | Self::Unattended { asked } => asked.because.origin(),
            _ => None,
        }
    }

    /// The pattern of the rule, also where it only made somebody ask.
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::Rule { tool, .. } => Some(tool),
            Self::Person { asked, .. } | Self::Unattended { asked } => asked.because.rule(),
            _ => None,
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { tool, origin } => write!(formatter, "the rule \"{tool}\" at {origin}"),
            Self::ReadOnly => formatter.write_str("it changes nothing, by its server's word"),
            Self::Destructive => {
                formatter.write_str("it may destroy something, by its server's word")
            }
            Self::Default => formatter.write_str("no rule matches"),
            Self::NoSandbox => formatter.write_str(
                "no sandbox keeps commands from Switchboard's own files on this system, and no rule allows it",
            ),
            Self::Outside => {
                formatter.write_str("it reads outside the workspace, and no rule allows it")
            }
            Self::Secret { .. } => formatter.write_str(
                "secrets are kept there; only a rule of yours that names the path can allow it",
            ),
            Self::OwnSecret { .. } => formatter
                .write_str("no tool may read Switchboard's configuration, state or keys"),
            Self::OwnFile { .. } => formatter
                .write_str("no tool may change Switchboard's own files, and an argument names one"),
            Self::Person { asked, .. } => {
                write!(
                    formatter,
                    "a person was asked because of this: {}",
                    asked.because
                )
            }
            Self::NoAnswer => formatter.write_str("the question was not answered"),
            Self::Unattended { asked } => write!(
                formatter,
                "it needs consent, and there is nobody to ask: {}",
                asked.because
            ),
            Self::Hook {
                origin: Some(origin),
            } => write!(formatter, "the hook at {origin}"),
            Self::Hook { origin: None } => formatter.write_str("a hook"),
        }
    }
}

fn grounds(tool: &str, action: Permission, origin: &Origin) -> Arc<Grounds> {
    let because = Because::Rule {
        tool: tool.to_owned(),
        origin: origin.clone(),
    };
    Arc::new(Grounds::new(action, because))
}
