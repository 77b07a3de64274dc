//! Explains a decision: the deciding rule, and all other rules that cover the tool.

use serde_json::value::RawValue;

use super::engine::{Decision, Engine};
use super::pattern::Names;
use super::rule::{Because, Rule};
use super::subject::Subject;

/// A decision with all rules involved.
#[derive(Debug)]
pub struct Explanation<'e> {
    /// The decision and its grounds.
    pub decision: Decision,
    /// The deciding rule; `None` if no rule decided.
    pub rule: Option<&'e Rule>,
    /// All other rules that cover the tool.
    pub losers: Vec<Loser<'e>>,
}

/// A rule that covers the tool but did not decide.
#[derive(Debug)]
pub struct Loser<'e> {
    /// The rule.
    pub rule: &'e Rule,
    /// The reason it did not decide.
    pub loss: Loss,
}

/// The reason a rule did not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Its conditions do not hold for these arguments.
    Conditions,
    /// A stricter rule or check applies.
    Stricter,
    /// It has the same action as the deciding rule.
    Same,
}

impl Loss {
    /// The reason in words.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Conditions => "its conditions do not hold",
            Self::Stricter => "a stricter rule or check applies",
            Self::Same => "it has the same action",
        }
    }
}

impl Engine {
    /// Decides about a call and explains the decision.
    #[doc(hidden)]
    pub fn explain(&self, subject: &Subject<'_>, arguments: Option<&RawValue>) -> Explanation<'_> {
        let decision = self.decide(subject, arguments);
        let is_deciding = |rule: &Rule| {
            matches!(decision.grounds.because, Because::Rule { .. })
                && std::ptr::eq(&raw const *rule.grounds, &raw const *decision.grounds)
        };
        let base = self.own_files.base_of(subject.server);
        let names = Names::new(subject);
        let about = || self.rules.iter().filter(|rule| self.covers(rule, &names));
        let losers = about().filter(|rule| !is_deciding(rule)).map(|rule| {
            let loss = if !rule.holds(arguments, base) {
                Loss::Conditions
            } else if rule.action < decision.permission {
                Loss::Stricter
            } else {
                Loss::Same
            };
            Loser { rule, loss }
        });
        let losers = losers.collect();
        let rule = about().find(|rule| is_deciding(rule));
        Explanation {
            decision,
            rule,
            losers,
        }
    }
}
