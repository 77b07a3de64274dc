//! Why a call is allowed, asked about or denied: the deciding rule, and every other that is about the tool.

use serde_json::value::RawValue;

use super::engine::{Decision, Engine};
use super::pattern::Names;
use super::rule::{Because, Rule};
use super::subject::Subject;

/// A decision with everything that took part in it.
#[derive(Debug)]
pub struct Explanation<'e> {
    /// What was decided, and why.
    pub decision: Decision,
    /// The rule that decided, if it was one.
    pub rule: Option<&'e Rule>,
    /// Every other rule about the tool.
    pub losers: Vec<Loser<'e>>,
}

/// A rule about the tool that did not decide.
#[derive(Debug)]
pub struct Loser<'e> {
    /// The rule.
    pub rule: &'e Rule,
    /// Why it did not.
    pub loss: Loss,
}

/// Why a rule did not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Its conditions do not hold for these arguments.
    Conditions,
    /// Something stricter holds.
    Stricter,
    /// It says the same.
    Same,
}

impl Loss {
    /// Why, in words.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Conditions => "its conditions do not hold",
            Self::Stricter => "something stricter holds",
            Self::Same => "it says the same",
        }
    }
}

impl Engine {
    /// Decides about a call and tells why.
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
