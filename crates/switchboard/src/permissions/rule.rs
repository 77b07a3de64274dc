//! Compiled permission rules, and the grounds of a decision.

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

/// A compiled rule.
#[derive(Debug)]
pub struct Rule {
    /// The tool pattern, as written.
    pub tool: String,
    /// The action for matching calls.
    pub action: Permission,
    /// Its conditions, formatted for display.
    pub conditions: Vec<String>,
    /// The file and position it comes from.
    pub origin: Origin,
    pub(super) target: Target,
    pub(super) tests: Vec<Condition>,
    /// The exact arguments, if the rule requires all of them.
    exact: Option<Exact>,
    pub(super) grounds: Arc<Grounds>,
}

/// A problem with a rule or a hook. It is in force all the same, in its strictest interpretation.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleProblem {
    /// The problem: a lowercase fragment.
    pub message: String,
    /// The file and position of the rule or hook.
    pub origin: Origin,
}

/// The basis of a decision.
#[derive(Debug)]
pub struct Grounds {
    /// The decision.
    pub permission: Permission,
    /// The reason.
    pub because: Because,
    /// The file and line of the rule, computed on first use: the audit log needs it for every call.
    source: OnceLock<Option<String>>,
}

impl Grounds {
    /// Creates the grounds for a decision.
    pub fn new(permission: Permission, because: Because) -> Self {
        Self {
            permission,
            because,
            source: OnceLock::new(),
        }
    }

    /// The file and line of the rule or hook that decided or required a prompt.
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

/// The reason a call is allowed, prompted for or denied.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum Because {
    /// A rule matches.
    Rule {
        /// The tool pattern, as written.
        tool: String,
        /// The file and position of the rule.
        origin: Origin,
    },
    /// Its trusted server declares it read-only.
    ReadOnly,
    /// Its server declares it destructive.
    Destructive,
    /// No rule matches.
    Default,
    /// It is a command, and this system has no sandbox to protect Switchboard's own files.
    NoSandbox,
    /// It would read a file outside the workspace.
    Outside,
    /// It would read a path that holds secrets.
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
    /// A user answered a prompt.
    Person {
        /// Whether the answer applies to the whole session.
        session: bool,
        /// The grounds for the prompt.
        asked: Arc<Grounds>,
    },
    /// A user was prompted and did not answer.
    NoAnswer,
    /// No prompt was available.
    Unattended {
        /// The grounds for the prompt.
        asked: Arc<Grounds>,
    },
    /// The profile of the client does not include the tool.
    #[doc(hidden)]
    Profile {
        /// The name of the profile.
        name: String,
    },
    /// A hook decided.
    Hook {
        /// The file and position of the hook; `None` for a built-in one.
        origin: Option<Origin>,
    },
}

impl Rule {
    /// Compiles a rule of a file.
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
            // A rule with an invalid pattern allows nothing; if it asks or denies, it covers every tool.
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

    /// The rule in a server's entry for one of its tools.
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

    /// Whether it applies to every call of the tools it covers.
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
    /// The reason in one word, for scripts and the audit log.
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
            Self::Profile { .. } => "profile",
            Self::Hook { .. } => "hook",
        }
    }

    /// The file and position of the rule or hook that decided or required a prompt.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Rule { origin, .. } => Some(origin),
            Self::Hook { origin } => origin.as_ref(),
            Self::Person { asked, .. } | Self::Unattended { asked } => asked.because.origin(),
            _ => None,
        }
    }

    /// The pattern of the rule that decided or required a prompt.
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
            Self::ReadOnly => formatter.write_str("its server declares it read-only"),
            Self::Destructive => {
                formatter.write_str("its server declares it destructive")
            }
            Self::Default => formatter.write_str("no rule matches"),
            Self::NoSandbox => formatter.write_str(
                "no sandbox keeps commands from Switchboard's own files on this system, and no rule allows it",
            ),
            Self::Outside => {
                formatter.write_str("it reads outside the workspace, and no rule allows it")
            }
            Self::Secret { .. } => formatter.write_str(
                "the path holds secrets; only a user rule that names it can allow this",
            ),
            Self::OwnSecret { .. } => formatter
                .write_str("no tool may read Switchboard's configuration, state or keys"),
            Self::OwnFile { .. } => formatter
                .write_str("no tool may change Switchboard's own files, and an argument names one"),
            Self::Person { asked, .. } => {
                write!(
                    formatter,
                    "the user was asked, because: {}",
                    asked.because
                )
            }
            Self::NoAnswer => formatter.write_str("the prompt was not answered"),
            Self::Unattended { asked } => write!(
                formatter,
                "it needs approval, and no prompt is available: {}",
                asked.because
            ),
            Self::Profile { name } => {
                write!(formatter, "the profile \"{name}\" does not include it")
            }
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
