//! Prompts the user for consent, or applies the policy if no prompt is available.

use std::sync::Arc;

use switchboard_config::entry::Permission;

use super::approval::{GrantPlace, PromptAnswer, Question};
use super::engine::Engine;
use super::gate::{PermissionGate, Wanted, granted};
use super::grants::Offer;
use super::rule::{Because, Grounds};
use crate::audit::What;
use crate::person;

/// The outcome of a prompt.
pub(super) enum Consent {
    Given(Arc<Grounds>),
    /// With a message for the model.
    Refused(Arc<Grounds>, Option<String>),
    /// The user wants the call with these arguments, as JSON.
    Edited(String),
    /// The call is to be considered again.
    Again,
}

impl PermissionGate {
    /// Prompts the user, or applies the policy if no prompt is available.
    pub(super) async fn consent(
        &self,
        engine: &Engine,
        wanted: &Wanted<'_>,
        asked: Arc<Grounds>,
        remark: Option<&str>,
    ) -> Consent {
        let tool = wanted.subject.exposed;
        let Some(approver) = self
            .approver
            .as_ref()
            .filter(|approver| approver.is_there())
        else {
            let permission = engine.policy().unattended;
            let grounds = Arc::new(Grounds::new(permission, Because::Unattended { asked }));
            return match permission {
                Permission::Allow => Consent::Given(grounds),
                _ => Consent::Refused(grounds, None),
            };
        };
        // Time spent waiting for the user does not count as call time.
        let asking = async {
            let turn = if approver.asks_one_at_a_time() {
                Some(self.asking.acquire().await)
            } else {
                None
            };
            // The user may have granted this call while it waited for its turn.
            let base = engine.own_files.base_of(wanted.subject.server);
            let client = approver.client();
            let has = self
                .grants
                .has(client, tool, &asked, wanted.arguments, base);
            if has {
                return None;
            }
            let is_default = matches!(
                asked.because,
                Because::Default | Because::Destructive | Because::NoSandbox
            );
            let offers = Offer::of(&wanted.subject, wanted.arguments, base, is_default);
            let preview = match (wanted.previewer, wanted.arguments) {
                (Some(previewer), Some(arguments)) => previewer.preview(arguments).await,
                _ => None,
            };
            let question = Question {
                subject: wanted.subject,
                arguments: wanted.arguments,
                preview: preview.as_ref(),
                because: &asked.because,
                remark,
                offers: &offers,
            };
            let answer = approver.ask(question).await;
            let mut session = false;
            if let PromptAnswer::Grant { offer, place } = answer
                && let Some(offer) = offers.get(offer)
            {
                session = true;
                let rule = offer.rule.as_ref().filter(|_| place != GrantPlace::Session);
                let written = match rule {
                    None => false,
                    Some(rule) => match approver.remember(rule, place).await {
                        Ok(()) => {
                            self.record(What::Change {
                                event: "allow",
                                about: tool.to_owned(),
                            });
                            true
                        }
                        Err(error) => {
                            tracing::warn!(error, tool, "cannot write a rule");
                            // A grant meant for a file, where it is visible and can be deleted, does not fall back to
                            // the session.
                            session = false;
                            false
                        }
                    },
                };
                if session {
                    self.grants
                        .add(client, tool, Arc::clone(&asked), offer, base, written);
                }
            }
            drop(turn);
            Some((answer, session))
        };
        let Some((answer, session)) = person::thinking(asking).await else {
            return Consent::Given(granted(true, asked));
        };
        match answer {
            PromptAnswer::Once | PromptAnswer::Grant { .. } => {
                Consent::Given(granted(session, asked))
            }
            PromptAnswer::No => Consent::Refused(denied(asked), None),
            PromptAnswer::NoBecause(reason) => {
                let reason = format!("the user said no: {reason}");
                Consent::Refused(denied(asked), Some(reason))
            }
            PromptAnswer::Edited(arguments) => Consent::Edited(arguments),
            PromptAnswer::Again => Consent::Again,
            PromptAnswer::Unshown(reason) => {
                let grounds = Grounds::new(Permission::Deny, Because::NoAnswer);
                Consent::Refused(Arc::new(grounds), Some(reason))
            }
        }
    }
}

fn denied(asked: Arc<Grounds>) -> Arc<Grounds> {
    let because = Because::Person {
        session: false,
        asked,
    };
    Arc::new(Grounds::new(Permission::Deny, because))
}
