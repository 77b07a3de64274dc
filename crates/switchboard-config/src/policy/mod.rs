//! Policy tables of a file: server allow and deny lists, permission rules, hooks and profiles.
//!
//! Parses all of them, and matches servers against the lists. The host enforces rules and hooks, the gateway
//! profiles.

mod claude;
mod hooks;
mod lists;
mod profiles;
mod rules;

use globset::{GlobBuilder, GlobMatcher};

use crate::tree::Node;

pub(crate) use hooks::{HOOK_KEYS, hooks};
pub use hooks::{HookEntry, HookEvent};
pub use lists::{AllowList, ServerLists, ServerPattern};
pub(crate) use lists::{SECURITY_KEYS, server_lists};
pub(crate) use profiles::{PROFILE_KEYS, idle_patterns, profiles};
pub use profiles::{ProfileEntry, SearchWhen};
pub use rules::{ArgumentCondition, ArgumentTest, RuleEntry};
pub(crate) use rules::{RULE_KEYS, rules};

fn glob(pattern: &str) -> Option<GlobMatcher> {
    GlobBuilder::new(pattern)
        .case_insensitive(true)
        .build()
        .ok()
        .map(|glob| glob.compile_matcher())
}

/// Treats a single table as a list of one, as HCL writes a single block.
fn one_or_many<'n, 'a>(node: &'n Node<'a>) -> &'n [Node<'a>] {
    node.as_array().unwrap_or(std::slice::from_ref(node))
}
