//! Result types of resolving: servers with a status, and losing entries with a reason.

use std::fmt;
use std::sync::Arc;

use crate::entry::{Field, ServerEntry, Transport};
use crate::scope::Scope;
use crate::source::Origin;
use crate::tree::Span;
use crate::trust::Question;

/// The winning entry of a server name, usable or not.
#[derive(Debug, Clone)]
pub struct Server {
    /// Unique in the configuration.
    pub name: String,
    /// Position of the entry.
    pub origin: Origin,
    /// The entry as written.
    pub entry: ServerEntry,
    /// Whether it may connect, and the reason if not.
    pub status: Status,
    pub(super) expanded: Option<Box<ServerEntry>>,
    pub(super) spans: Vec<(Field, Span)>,
    /// Index in reading order: files of a scope, then entries of a file.
    pub(super) place: usize,
}

impl Server {
    /// Scope of the entry.
    pub fn scope(&self) -> Scope {
        self.origin.scope()
    }

    /// The expanded entry. Only meaningful if the status is [`Status::Ready`].
    pub fn effective(&self) -> &ServerEntry {
        self.expanded.as_deref().unwrap_or(&self.entry)
    }

    /// Trusts what the server declares about its tools, unless the entry says otherwise: for an entry that the
    /// program's author wrote.
    pub fn trust_annotations_by_default(&mut self) {
        let stated = [Some(&mut self.entry), self.expanded.as_deref_mut()];
        for entry in stated.into_iter().flatten() {
            entry.trust_annotations.get_or_insert(true);
        }
    }

    /// `None` if the entry states neither a program nor a URL.
    pub fn transport(&self) -> Option<Transport> {
        self.effective().effective_transport()
    }

    /// Position of a field, or of the entry if the field is absent.
    pub(super) fn origin_of(&self, field: Field) -> Origin {
        self.fields()
            .find(|(stated, _)| *stated == field)
            .map_or_else(|| self.origin.clone(), |(_, origin)| origin)
    }

    /// Positions of all stated fields.
    pub fn fields(&self) -> impl Iterator<Item = (Field, Origin)> {
        self.spans.iter().map(|(field, span)| {
            (
                *field,
                Origin {
                    file: self.origin.file.clone(),
                    span: *span,
                },
            )
        })
    }
}

/// Whether a server may connect.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// It may connect.
    Ready,
    /// Its entry disables it.
    Disabled,
    /// Its entry has errors, which are also in the diagnostics.
    Faulty(Vec<String>),
    /// It waits for the user's trust.
    Untrusted(Arc<Question>),
    /// A server list rejects it.
    Blocked {
        /// For the user.
        reason: String,
        /// Position of the list or pattern.
        origin: Origin,
    },
    /// A server of a higher scope has the same endpoint and is used instead.
    Shadowed {
        /// Name of the other server.
        by: String,
        /// Position of its entry.
        origin: Origin,
    },
    /// Its name is confusable with that of another server, which takes precedence.
    Refused {
        /// Name of the other server.
        by: String,
        /// Position of its entry.
        origin: Origin,
        /// Suggested name.
        instead: String,
    },
}

impl Status {
    /// One word for tables and scripts.
    pub fn word(&self) -> &'static str {
        match self {
            Status::Ready => "ready",
            Status::Disabled => "disabled",
            Status::Faulty(_) => "invalid",
            Status::Untrusted(_) => "untrusted",
            Status::Blocked { .. } => "blocked",
            Status::Shadowed { .. } => "shadowed",
            Status::Refused { .. } => "refused",
        }
    }

    /// Why it may not connect, for the user; `None` if it may.
    pub fn reason(&self) -> Option<String> {
        match self {
            Status::Ready => None,
            Status::Disabled => Some("disabled in its entry".to_owned()),
            Status::Faulty(reasons) => Some(reasons.join("; ")),
            Status::Untrusted(question) => Some(question.reason()),
            Status::Blocked { reason, .. } => Some(reason.clone()),
            Status::Shadowed { by, origin } => Some(format!(
                "shadowed by `{by}` ({} scope, {origin}), which points to the same endpoint",
                origin.scope()
            )),
            Status::Refused { by, origin, .. } => Some(format!(
                "its name can be mistaken for `{by}` ({} scope, {origin})",
                origin.scope()
            )),
        }
    }
}

/// A losing entry.
#[derive(Debug, Clone)]
pub struct Shadowed {
    /// Name of the server.
    pub name: String,
    /// Position of the entry.
    pub origin: Origin,
    /// The entry as written.
    pub entry: ServerEntry,
    /// Why it lost.
    pub reason: ShadowReason,
}

/// Why an entry lost.
#[derive(Debug, Clone, PartialEq)]
pub enum ShadowReason {
    /// A higher file has an entry of the same name.
    SameName(Origin),
    /// A server of a higher scope has the same endpoint.
    SameEndpoint {
        /// Name of the other server.
        name: String,
        /// Position of its entry.
        origin: Origin,
    },
    /// It is not trusted, and another entry has the same name.
    Untrusted(Arc<Question>),
}

impl fmt::Display for ShadowReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShadowReason::SameName(origin) => write!(
                formatter,
                "{} scope has the same name, at {origin}",
                origin.scope()
            ),
            ShadowReason::SameEndpoint { name, origin } => {
                write!(
                    formatter,
                    "same endpoint as `{name}` of {} scope, at {origin}",
                    origin.scope()
                )
            }
            ShadowReason::Untrusted(_) => {
                formatter.write_str("not trusted, so it does not override other entries")
            }
        }
    }
}
