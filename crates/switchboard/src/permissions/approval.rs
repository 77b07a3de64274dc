//! The question to a person, and what was answered before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;

use super::rule::{Because, Grounds};
use super::subject::Subject;

/// Asks a person. Given by the front end; without one, nobody is there.
pub trait Approver: Send + Sync + 'static {
    /// Whether there is somebody to ask.
    fn is_there(&self) -> bool {
        true
    }

    /// Whether a question has to wait until the one before is answered: two on one terminal could not be told apart.
    fn asks_one_at_a_time(&self) -> bool {
        true
    }

    /// Asks about one call. Dropping the future takes the question back.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer>;

    /// Writes a rule that allows a tool from now on, as [`Answer::Always`] wants; an error says why it was not.
    fn remember<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Result<(), String>> {
        let _ = tool;
        ready(Err("this program keeps no rules".to_owned())).boxed()
    }
}

/// What a person is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The tool.
    pub subject: Subject<'a>,
    /// The arguments, as they will be sent. They may hold secrets, and characters that fool a terminal.
    pub arguments: Option<&'a RawValue>,
    /// Why it is asked.
    pub because: &'a Because,
    /// What a hook had to say about it.
    pub remark: Option<&'a str>,
    /// Whether a rule would spare the question from now on. Where a rule asks, another cannot overrule it.
    pub can_remember: bool,
}

/// What a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this once.
    Once,
    /// Yes, and not to be asked again as long as the program runs.
    Session,
    /// Yes, and a rule is to be written.
    Always,
    /// No.
    No,
}

/// What was allowed for the session: by tool, and by what asked. A grant for one rule's question answers no other's.
#[derive(Debug, Default)]
pub(super) struct Grants(Mutex<HashMap<Box<str>, Vec<Arc<Grounds>>>>);

impl Grants {
    pub(super) fn add(&self, tool: &str, asked: Arc<Grounds>) {
        let mut grants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = grants.entry(tool.into()).or_default();
        if !granted.contains(&asked) {
            granted.push(asked);
        }
    }

    pub(super) fn has(&self, tool: &str, asked: &Grounds) -> bool {
        let grants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = grants.get(tool);
        granted.is_some_and(|granted| granted.iter().any(|grounds| **grounds == *asked))
    }
}
