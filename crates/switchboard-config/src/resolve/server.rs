//! What resolving comes to: servers with a status, and entries that lost with a reason.

use std::fmt;
use std::sync::Arc;

use crate::entry::{Field, ServerEntry, Transport};
use crate::scope::Scope;
use crate::source::Origin;
use crate::tree::Span;
use crate::trust::Question;

/// A server in force, or the best there is for its name.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Where its entry stands.
    pub origin: Origin,
    /// The entry as written.
    pub entry: ServerEntry,
    /// Whether it may be connected, and if not, why.
    pub status: Status,
    pub(super) expanded: Option<Box<ServerEntry>>,
    pub(super) spans: Vec<(Field, Span)>,
    /// Its place in the order in which entries are read: files of a scope, then entries of a file.
    pub(super) place: usize,
}

impl Server {
    /// The scope it comes from.
    pub fn scope(&self) -> Scope {
        self.origin.scope()
    }

    /// The entry with every reference replaced. Only meaningful when the server is [`Status::Ready`].
    pub fn effective(&self) -> &ServerEntry {
        self.expanded.as_deref().unwrap_or(&self.entry)
    }

    /// How it is reached.
    pub fn transport(&self) -> Option<Transport> {
        self.effective().effective_transport()
    }

    /// Where a field stands, or the entry when it was not stated.
    pub(super) fn origin_of(&self, field: Field) -> Origin {
        self.fields()
            .find(|(stated, _)| *stated == field)
            .map_or_else(|| self.origin.clone(), |(_, origin)| origin)
    }

    /// Where each field that was stated stands.
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

/// Whether a server may be connected.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// It may.
    Ready,
    /// It is switched off.
    Disabled,
    /// Its entry is wrong; the diagnostics say how.
    Faulty(Vec<String>),
    /// Its project is not trusted.
    Untrusted(Arc<Question>),
    /// A server list keeps it out.
    Blocked {
        /// Why, in words.
        reason: String,
        /// The list.
        origin: Origin,
    },
    /// A server of a higher scope points to the same endpoint and is used in its place.
    Shadowed {
        /// The other server's name.
        by: String,
        /// Where the other server's entry stands.
        origin: Origin,
    },
    /// Its name can be mistaken for that of another server, which comes first.
    Refused {
        /// The other server's name.
        by: String,
        /// Where the other server's entry stands.
        origin: Origin,
        /// A name that can be used instead.
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

    /// Why it may not be connected, for people.
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

/// An entry that lost.
#[derive(Debug, Clone)]
pub struct Shadowed {
    /// Its name.
    pub name: String,
    /// Where it stands.
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
    /// A server of a higher scope points to the same endpoint.
    SameEndpoint {
        /// The other server's name.
        name: String,
        /// Where it stands.
        origin: Origin,
    },
    /// It is not trusted, and another entry has the name.
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
                formatter.write_str("not trusted, so it replaces nothing")
            }
        }
    }
}
