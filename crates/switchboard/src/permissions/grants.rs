//! Broader grants offered with a prompt, and those given.
//!
//! Each offer states exactly which calls it covers, and covers no others. A session grant and the file rule for the
//! same offer cover the same calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use switchboard_config::sort;

use serde_json::value::RawValue;
use switchboard_config::edit::{NewCondition, NewRule};
use switchboard_config::policy::{ArgumentCondition, ArgumentTest};
use switchboard_config::{shell, words};
use switchboard_protocol::cursor::Cursor;

use super::condition::Condition;
use super::consent::{ConsentView, sanitized};
use super::exact::Exact;
use super::path::Base;
use super::pattern::Reading;
use super::rule::Grounds;
use super::subject::Subject;

/// Longer conditions are not written to a file, in bytes.
const LONGEST_RULE: usize = 4096;
/// The maximum length of a value in the text of an offer.
const SHOWN: usize = 60;
/// The built-in shell tool, and those that work on one file.
const SHELL: &str = "Bash";
const ONE_FILE: [&str; 3] = ["Read", "Write", "Edit"];
const CHANGING: [&str; 2] = ["Write", "Edit"];
const FILE: &str = "file_path";

/// A broader grant than a single call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The covered calls, in exact sanitized words: "this command line".
    pub words: String,
    /// A short name for forms: `call`, `prefix`, `file`, `folder`, `tool`.
    pub name: &'static str,
    /// The equivalent file rule. `None` if no rule would avoid the prompt, or if it would contain a secret.
    pub rule: Option<NewRule>,
    condition: Option<NewCondition>,
}

/// The calls that a grant covers.
#[derive(Debug)]
struct Covered {
    conditions: Vec<Condition>,
    exact: Option<Exact>,
}

/// A grant of this session, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSummary {
    /// Stays the same while the session lasts.
    pub number: u64,
    /// The exposed name of the tool.
    pub tool: String,
    /// The covered calls, sanitized.
    pub words: String,
}

#[derive(Debug)]
struct Grant {
    number: u64,
    /// The client that gave it; `None` if there is only one.
    client: Option<u64>,
    words: String,
    /// The grounds of the prompt. A grant does not apply to the prompt of another rule.
    asked: Arc<Grounds>,
    covered: Covered,
    /// Whether an equivalent rule is in a file, so that the grant ends when the files are reloaded.
    until_reload: bool,
}

/// Grants by tool.
#[derive(Debug, Default)]
pub(super) struct Grants {
    by_tool: Mutex<HashMap<Box<str>, Vec<Grant>>>,
    /// Number of grants given so far.
    given: AtomicU64,
}

impl Grants {
    pub(super) fn add(
        &self,
        client: Option<u64>,
        tool: &str,
        asked: Arc<Grounds>,
        offer: &Offer,
        base: &Base,
        until_reload: bool,
    ) {
        let grant = Grant {
            number: self.given.fetch_add(1, Ordering::Relaxed) + 1,
            client,
            words: offer.described(),
            asked,
            covered: offer.covered(base),
            until_reload,
        };
        let mut grants = self.lock();
        grants.entry(tool.into()).or_default().push(grant);
    }

    /// Whether a call of the tool with these arguments is granted to the client.
    pub(super) fn has(
        &self,
        client: Option<u64>,
        tool: &str,
        asked: &Grounds,
        arguments: Option<&RawValue>,
        base: &Base,
    ) -> bool {
        let grants = self.lock();
        let mut grants = grants.get(tool).into_iter().flatten();
        grants.any(|grant| {
            grant.client == client && *grant.asked == *asked && grant.covered.holds(arguments, base)
        })
    }

    /// All grants, oldest first.
    pub(super) fn list(&self) -> Vec<GrantSummary> {
        let grants = self.lock();
        let grants = grants.iter().flat_map(|(tool, grants)| {
            grants.iter().map(|grant| GrantSummary {
                number: grant.number,
                tool: tool.to_string(),
                words: grant.words.clone(),
            })
        });
        let mut grants: Vec<GrantSummary> = grants.collect();
        sort::by_key(&mut grants, |grant| grant.number);
        grants
    }

    /// Drops one grant; `false` if the number is unknown.
    pub(super) fn revoke(&self, number: u64) -> bool {
        let mut is_found = false;
        for granted in self.lock().values_mut() {
            granted.retain(|grant| {
                is_found |= grant.number == number;
                grant.number != number
            });
        }
        is_found
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Vec<Grant>>> {
        self.by_tool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops grants that have a rule in a file, since the files have been reloaded.
    pub(super) fn reloaded(&self) {
        let mut grants = self.lock();
        for granted in grants.values_mut() {
            granted.retain(|grant| !grant.until_reload);
        }
    }
}

impl Covered {
    fn holds(&self, arguments: Option<&RawValue>, base: &Base) -> bool {
        let mut conditions = self.conditions.iter();
        self.exact
            .as_ref()
            .is_none_or(|exact| exact.holds(arguments, false))
            && conditions.all(|condition| condition.holds(arguments, base, Reading::Narrow))
    }
}

impl Offer {
    /// The offers for a call. `writable` means that a rule would avoid the prompt.
    pub(super) fn of(
        subject: &Subject<'_>,
        arguments: Option<&RawValue>,
        base: &Base,
        writable: bool,
    ) -> Vec<Self> {
        let view = ConsentView::new(subject.tool, subject.server, arguments);
        let draft = Draft {
            tool: subject.exposed,
            is_writable: writable,
            is_masked: view.is_masked(),
        };
        let mut offers = Vec::new();
        let argument = |name: &str| only_text(arguments, name);
        match (subject.server, subject.tool) {
            (None, SHELL) => {
                let Some(line) = argument("command") else {
                    return offers;
                };
                let exact = NewCondition::Equals {
                    argument: "command".to_owned(),
                    value: line.clone(),
                };
                offers.push(draft.offer("call", "this command line".to_owned(), Some(exact)));
                if let Some(prefix) = shell::offered_prefix(&line) {
                    let prefix = words::join(prefix);
                    let shown = format!("`{prefix} …`, with any further arguments");
                    let condition = NewCondition::Command(prefix);
                    offers.push(draft.offer("prefix", shown, Some(condition)));
                }
            }
            (None, tool) if ONE_FILE.contains(&tool) => {
                let path = argument(FILE).and_then(|path| base.resolve(&path));
                let path = path.map(|path| path.written);
                let Some(path) = path.as_deref().and_then(std::path::Path::to_str) else {
                    return offers;
                };
                let under = |folder: String| NewCondition::Under {
                    argument: FILE.to_owned(),
                    folder,
                };
                let shown = format!("{tool} of {}", short(path));
                offers.push(draft.offer("file", shown, Some(under(path.to_owned()))));
                let is_inside = std::path::Path::new(path).starts_with(&base.folder);
                if is_inside
                    && CHANGING.contains(&tool)
                    && let Some(folder) = base.folder.to_str()
                {
                    let shown = format!("{tool} of any file in {}", short(folder));
                    offers.push(draft.offer("folder", shown, Some(under(folder.to_owned()))));
                }
            }
            _ => {
                let exact = Exact::of(arguments);
                if let Some(text) = exact.text() {
                    let shown = "this tool with these arguments".to_owned();
                    let condition = NewCondition::ExactArguments(text);
                    offers.push(draft.offer("call", shown, Some(condition)));
                }
                let shown = match &view.server {
                    Some(server) => {
                        format!("{} of {server}, with any arguments", short(&view.tool))
                    }
                    None => format!("{}, with any arguments", short(&view.tool)),
                };
                offers.push(draft.offer("tool", shown, None));
            }
        }
        offers
    }

    /// The covered calls, with the value that the prompt showed beside the offer unless it may hold a secret.
    fn described(&self) -> String {
        let value = match &self.condition {
            Some(NewCondition::Equals { value, .. }) => Some(value),
            Some(NewCondition::ExactArguments(text)) => Some(text),
            _ => None,
        };
        match value.filter(|_| self.rule.is_some()) {
            Some(value) => format!("{}: {}", self.words, short(value)),
            None => self.words.clone(),
        }
    }

    fn covered(&self, base: &Base) -> Covered {
        let on = |argument: &str, test, value: &str| ArgumentCondition {
            argument: argument.to_owned(),
            test,
            value: value.to_owned(),
        };
        let condition = match &self.condition {
            Some(NewCondition::Equals { argument, value }) => {
                Some(on(argument, ArgumentTest::Equals, value))
            }
            Some(NewCondition::Command(prefix)) => {
                Some(on("command", ArgumentTest::Command, prefix))
            }
            Some(NewCondition::Under { argument, folder }) => {
                Some(on(argument, ArgumentTest::Under, folder))
            }
            Some(NewCondition::ExactArguments(_)) | None => None,
        };
        let exact = match &self.condition {
            Some(NewCondition::ExactArguments(text)) => Some(Exact::new(text)),
            _ => None,
        };
        Covered {
            conditions: condition
                .iter()
                .map(|condition| Condition::new(condition, base).0)
                .collect(),
            exact,
        }
    }
}

/// The data shared by all offers of a call.
struct Draft<'a> {
    tool: &'a str,
    is_writable: bool,
    is_masked: bool,
}

impl Draft<'_> {
    fn offer(&self, name: &'static str, words: String, condition: Option<NewCondition>) -> Offer {
        let (has_values, length) = match &condition {
            Some(NewCondition::Equals { value, .. }) => (true, value.len()),
            Some(NewCondition::ExactArguments(text)) => (true, text.len()),
            _ => (false, 0),
        };
        // A reference in a path would be expanded when the rule is read.
        let is_plain = match &condition {
            Some(NewCondition::Under { folder, .. }) => !folder.contains("${"),
            _ => true,
        };
        // Do not write secrets to a file.
        let holds_secret = has_values && self.is_masked;
        let is_written = self.is_writable && !holds_secret && is_plain && length <= LONGEST_RULE;
        Offer {
            words,
            name,
            rule: is_written.then(|| NewRule::allow(self.tool, condition.clone())),
            condition,
        }
    }
}

/// The string value of an argument that occurs exactly once.
fn only_text(arguments: Option<&RawValue>, name: &str) -> Option<String> {
    let mut cursor = Cursor::new(arguments?.get());
    cursor.enter(b'{').ok()?;
    let mut found = None;
    while let Some(key) = cursor.next_key().ok()? {
        let value = cursor.value().ok()?;
        if !key.is(name) {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some(Cursor::new(value).string().ok()?.decode().into_owned());
    }
    found
}

/// Shortens a text for an offer: sanitized, on one line, with its beginning and end.
fn short(text: &str) -> String {
    let text = sanitized(text).text.replace('\n', "⏎");
    let count = text.chars().count();
    if count <= SHOWN {
        return text;
    }
    let head: String = text.chars().take(SHOWN / 3).collect();
    let tail: String = text.chars().skip(count - SHOWN * 2 / 3).collect();
    format!("{head}…{tail}")
}
