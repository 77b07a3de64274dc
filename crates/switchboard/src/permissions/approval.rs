//! The consent prompt and its answer.

use std::fmt;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;
use switchboard_config::edit::NewRule;

use super::consent::Preview;
use super::grants::Offer;
use super::rule::Because;
use super::subject::Subject;

/// Prompts the user. Implemented by the front end; without one, no prompt is available.
pub trait Approver: Send + Sync + 'static {
    /// Whether a user is available.
    fn is_there(&self) -> bool {
        true
    }

    /// Whether prompts must be shown one at a time, as on a terminal.
    fn asks_one_at_a_time(&self) -> bool {
        true
    }

    /// Number of the client whose call is considered in this task, if there are several. What one client grants does not
    /// apply to the others.
    #[doc(hidden)]
    fn client(&self) -> Option<u64> {
        None
    }

    /// Prompts about one call. Only what was shown may be approved: see [`ConsentView`](super::ConsentView). Dropping
    /// the future withdraws the prompt.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, PromptAnswer>;

    /// Writes a granted rule to the file of a place. The error is the reason it was not written.
    fn remember<'a>(
        &'a self,
        rule: &'a NewRule,
        place: GrantPlace,
    ) -> BoxFuture<'a, Result<(), String>> {
        let _ = (rule, place);
        ready(Err("this program does not store rules".to_owned())).boxed()
    }
}

/// Previews the effect of a call. Implemented by the tool.
#[doc(hidden)]
pub trait Previewer: fmt::Debug + Send + Sync {
    /// The effect of a call with these arguments; `None` if the arguments are sufficient.
    fn preview<'a>(&'a self, arguments: &'a RawValue) -> BoxFuture<'a, Option<Preview>>;
}

/// The content of a consent prompt.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The tool.
    pub subject: Subject<'a>,
    /// The arguments, as they will be sent. May hold secrets and characters that spoof terminal output.
    pub arguments: Option<&'a RawValue>,
    /// The effect of the call, if its tool can preview it.
    pub preview: Option<&'a Preview>,
    /// The reason for the prompt.
    pub because: &'a Because,
    /// The message of a hook.
    pub remark: Option<&'a str>,
    /// Broader grants on offer, the narrowest first.
    pub offers: &'a [Offer],
}

/// The user's answer to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptAnswer {
    /// Allow this call.
    Once,
    /// Allow this call, and grant an offer.
    Grant {
        /// The index of the offer in the question.
        offer: usize,
        /// The scope of the grant.
        place: GrantPlace,
    },
    /// Deny this call.
    No,
    /// Deny this call, and tell the model this reason.
    NoBecause(String),
    /// Consider these arguments instead, as JSON. They are checked like those of a new call, and prompted for again
    /// unless a rule allows them.
    Edited(String),
    /// Consider the call again: a grant for another call, given meanwhile, may cover it.
    Again,
    /// The prompt could not be shown in full, for this reason, so the user was not asked.
    Unshown(String),
}

/// The scope of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GrantPlace {
    /// Until the program exits.
    Session,
    /// In this project, by a rule in its local file.
    Project,
    /// In all projects, by a rule in the user's file.
    User,
}
