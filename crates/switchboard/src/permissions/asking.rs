//! Asking a person, or going by the policy where there is none.

use std::sync::Arc;

use switchboard_config::entry::Permission;

use super::approval::{GrantPlace, PromptAnswer, Question};
use super::engine::Engine;
use super::gate::{PermissionGate, Wanted, granted};
use super::grants::Offer;
use super::rule::{Because, Grounds};
use crate::audit::What;
use crate::person;

/// Why a call may be made, or may not.
pub(super) type Consent = Result<Arc<Grounds>, (Arc<Grounds>, Option<String>)>;

impl PermissionGate {
    /// Asks a person, or goes by the policy where there is none. An error has what the model is told besides.
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
                Permission::Allow => Ok(grounds),
                _ => Err((grounds, None)),
            };
        };
        // However long this takes, it is not the call that takes it.
        let asking = async {
            let turn = if approver.asks_one_at_a_time() {
                Some(self.asking.acquire().await)
            } else {
                None
            };
            // Somebody may have granted it while this one waited for its turn.
            let base = engine.own_files.base_of(wanted.subject.server);
            if self.grants.has(tool, &asked, wanted.arguments, base) {
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
                            tracing::warn!(error, tool, "a rule could not be written");
                            // What was to be kept in a file, where it can be seen and deleted, is not kept elsewhere.
                            session = false;
                            false
                        }
                    },
                };
                if session {
                    self.grants
                        .add(tool, Arc::clone(&asked), offer, base, written);
                }
            }
            drop(turn);
            Some((answer, session))
        };
        let Some((answer, session)) = person::thinking(asking).await else {
            return Ok(granted(true, asked));
        };
        match answer {
            PromptAnswer::Once | PromptAnswer::Grant { .. } => Ok(granted(session, asked)),
            PromptAnswer::No => {
                let because = Because::Person {
                    session: false,
                    asked,
                };
                Err((Arc::new(Grounds::new(Permission::Deny, because)), None))
            }
            PromptAnswer::Unshown(reason) => {
                let grounds = Grounds::new(Permission::Deny, Because::NoAnswer);
                Err((Arc::new(grounds), Some(reason)))
            }
        }
    }
}
