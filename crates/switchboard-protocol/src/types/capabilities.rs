//! What clients and servers say they can do.
//!
//! A capability that is there at all is on, whatever its object holds. Sloppy peers send `true` instead of an
//! object, and languages that do not tell an empty list from an empty map send `[]`. Either says enough: what has no
//! settings of its own is a [`Raw`], and for the rest ask the `offers_…` methods rather than the fields.

use super::wire::{Extra, Map, Raw, RawObject};
use crate::macros::wire_struct;

wire_struct! {
    /// What a client can do.
    pub struct ClientCapabilities<'a> {
        optional {
            /// Telling folders.
            roots("roots"): RootsCapability<'a>,
            /// Asking its model.
            sampling("sampling"): SamplingCapability<'a>,
            /// Asking its user.
            elicitation("elicitation"): ElicitationCapability<'a>,
            /// Running what it is asked as tasks (2025-11-25).
            tasks("tasks"): TasksCapability<'a>,
        }
        collections {
            /// What no specification describes.
            experimental("experimental"): Map<'a, Raw<'a>>,
            /// Extensions by their identifier, with their settings.
            extensions("extensions"): Map<'a, Raw<'a>>,
        }
    }
}

wire_struct! {
    /// What a server can do.
    pub struct ServerCapabilities<'a> {
        optional {
            /// Offering tools.
            tools("tools"): ListCapability<'a>,
            /// Offering prompts.
            prompts("prompts"): ListCapability<'a>,
            /// Offering resources.
            resources("resources"): ResourcesCapability<'a>,
            /// Completing arguments.
            completions("completions"): Raw<'a>,
            /// Sending log messages.
            logging("logging"): Raw<'a>,
            /// Running what it is asked as tasks (2025-11-25).
            tasks("tasks"): TasksCapability<'a>,
        }
        collections {
            /// What no specification describes.
            experimental("experimental"): Map<'a, Raw<'a>>,
            /// Extensions by their identifier, with their settings.
            extensions("extensions"): Map<'a, Raw<'a>>,
        }
    }
}

wire_struct! {
    /// A list the server offers.
    pub struct ListCapability<'a> {
        optional {
            /// Whether it tells that the list changed.
            list_changed("listChanged"): bool,
        }
    }
}

wire_struct! {
    /// The resources the server offers.
    pub struct ResourcesCapability<'a> {
        optional {
            /// Whether it tells that a resource changed.
            subscribe("subscribe"): bool,
            /// Whether it tells that the list changed.
            list_changed("listChanged"): bool,
        }
    }
}

wire_struct! {
    /// The folders the client tells.
    pub struct RootsCapability<'a> {
        optional {
            /// Whether it tells that they changed.
            list_changed("listChanged"): bool,
        }
    }
}

wire_struct! {
    /// What the client's model may be asked with.
    pub struct SamplingCapability<'a> {
        optional {
            /// Context of servers may be included.
            context("context"): Raw<'a>,
            /// Tools may be used.
            tools("tools"): Raw<'a>,
        }
    }
}

wire_struct! {
    /// How the client's user may be asked. An empty one means forms.
    pub struct ElicitationCapability<'a> {
        optional {
            /// By a form.
            form("form"): Raw<'a>,
            /// By a page to visit.
            url("url"): Raw<'a>,
        }
    }
}

wire_struct! {
    /// The task methods of 2025-11-25.
    pub struct TasksCapability<'a> {
        optional {
            /// `tasks/list` works.
            list("list"): Raw<'a>,
            /// `tasks/cancel` works.
            cancel("cancel"): Raw<'a>,
            /// The requests that can be tasks, by family and method.
            requests("requests"): RawObject<'a>,
        }
    }
}

impl ServerCapabilities<'_> {
    /// Whether the server has tools.
    pub fn offers_tools(&self) -> bool {
        self.tools.is_some() || is_on(&self.extra, "tools")
    }

    /// Whether the server has prompts.
    pub fn offers_prompts(&self) -> bool {
        self.prompts.is_some() || is_on(&self.extra, "prompts")
    }

    /// Whether the server has resources.
    pub fn offers_resources(&self) -> bool {
        self.resources.is_some() || is_on(&self.extra, "resources")
    }
}

impl ClientCapabilities<'_> {
    /// Whether the client tells its folders.
    pub fn offers_roots(&self) -> bool {
        self.roots.is_some() || is_on(&self.extra, "roots")
    }

    /// Whether the client's model may be asked.
    pub fn offers_sampling(&self) -> bool {
        self.sampling.is_some() || is_on(&self.extra, "sampling")
    }

    /// Whether the client's user may be asked.
    pub fn offers_elicitation(&self) -> bool {
        self.elicitation.is_some() || is_on(&self.extra, "elicitation")
    }
}

impl ElicitationCapability<'_> {
    /// Whether forms may be asked: said so, or nothing said at all.
    pub fn allows_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }
}

/// Whether a capability of the wrong form is meant to be on: anything but a plain no.
fn is_on(extra: &Extra<'_>, name: &str) -> bool {
    extra
        .get(name)
        .is_some_and(|value| !matches!(value.get(), "null" | "false"))
}
