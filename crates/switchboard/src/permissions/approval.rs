//! The question to a person, and the answer.

use std::fmt;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;
use switchboard_config::edit::NewRule;

use super::consent::Preview;
use super::grants::Offer;
use super::rule::Because;
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

    /// Asks about one call. Nothing may be approved that was not shown: see [`ConsentView`](super::ConsentView).
    /// Dropping the future takes the question back.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, PromptAnswer>;

    /// Writes a rule to the file of a place, as an answer wants; an error says why it was not.
    fn remember<'a>(
        &'a self,
        rule: &'a NewRule,
        place: GrantPlace,
    ) -> BoxFuture<'a, Result<(), String>> {
        let _ = (rule, place);
        ready(Err("this program keeps no rules".to_owned())).boxed()
    }
}

/// Shows beforehand what a call will do. Given by the tool.
#[doc(hidden)]
pub trait Previewer: fmt::Debug + Send + Sync {
    /// What a call with these arguments will do; `None` if the arguments say it all.
    fn preview<'a>(&'a self, arguments: &'a RawValue) -> BoxFuture<'a, Option<Preview>>;
}

/// What a person is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The tool.
    pub subject: Subject<'a>,
    /// The arguments, as they will be sent. They may hold secrets, and characters that fool a terminal.
    pub arguments: Option<&'a RawValue>,
    /// What the call will do, where its tool can say so beforehand.
    pub preview: Option<&'a Preview>,
    /// Why it is asked.
    pub because: &'a Because,
    /// What a hook had to say about it.
    pub remark: Option<&'a str>,
    /// What can be allowed besides this one call, the narrowest first.
    pub offers: &'a [Offer],
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptAnswer {
    /// Yes, this once.
    Once,
    /// Yes, and what an offer says is not to be asked about again.
    Grant {
        /// Which of the question's offers.
        offer: usize,
        /// Where, and for how long.
        place: GrantPlace,
    },
    /// No.
    No,
    /// The question could not be put as a whole, so nobody was asked, and this is why.
    Unshown(String),
}

/// Where a grant holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GrantPlace {
    /// As long as the program runs.
    Session,
    /// In this project, by a rule in its local file.
    Project,
    /// In all projects, by a rule in the user's file.
    User,
}
