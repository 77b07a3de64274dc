//! Rules that apply to the calls of some clients, in addition to the rules of all.
//!
//! A profile of the gateway has them. They only ever make a decision stricter: they are decided separately, and the
//! stricter of the two decisions counts.

use serde_json::value::RawValue;
use switchboard_config::files::Folders;
use switchboard_config::policy::RuleEntry;
use switchboard_config::resolve::Config;

use super::engine::{Decision, Engine};
use super::policy::Policy;
use super::rule::{Rule, RuleProblem};
use super::subject::Subject;

/// Rules that can only restrict.
#[derive(Debug)]
#[doc(hidden)]
pub struct Restrictions(Engine);

impl Restrictions {
    /// Compiles rules; `None` if there are none.
    #[doc(hidden)]
    pub fn new(rules: &[RuleEntry], config: &Config, folders: &Folders) -> Option<Self> {
        if rules.is_empty() {
            return None;
        }
        let engine = Engine::without_rules(Policy::gateway());
        Some(Self(engine.with_rules(rules, config, folders)))
    }

    /// The rules.
    #[doc(hidden)]
    pub fn rules(&self) -> &[Rule] {
        self.0.rules()
    }

    /// The problems of its rules.
    #[doc(hidden)]
    pub fn problems(&self) -> impl Iterator<Item = &RuleProblem> {
        self.0.problems()
    }

    /// The stricter of a decision and its own one.
    pub(super) fn restrict(
        &self,
        decision: Decision,
        subject: &Subject<'_>,
        arguments: Option<&RawValue>,
    ) -> Decision {
        match self.0.decide_by_rules_alone(subject, arguments) {
            Some(own) if own.permission > decision.permission => own,
            _ => decision,
        }
    }
}
