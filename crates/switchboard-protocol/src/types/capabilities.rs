//! Capabilities of clients and servers.
//!
//! A capability that is present is on, whatever its object contains. Sloppy peers send `true` instead of an object, and
//! languages that do not distinguish empty lists from empty maps send `[]`; both are accepted. Capabilities without
//! settings are a [`Raw`]; for the others call the `offers_…` methods instead of reading the fields.

use super::wire::{Extra, Map, Raw, RawObject};
use crate::macros::wire_struct;

wire_struct! {
    /// Capabilities of a client.
    pub struct ClientCapabilities<'a> {
        optional {
            /// The client has roots.
            roots("roots"): RootsCapability<'a>,
            /// The client can sample its model.
            sampling("sampling"): SamplingCapability<'a>,
            /// The client can ask its user.
            elicitation("elicitation"): ElicitationCapability<'a>,
            /// The client can run requests as tasks (2025-11-25).
            tasks("tasks"): TasksCapability<'a>,
        }
        collections {
            /// Non-standard capabilities, by name.
            experimental("experimental"): Map<'a, Raw<'a>>,
            /// Extensions by identifier, with their settings.
            extensions("extensions"): Map<'a, Raw<'a>>,
        }
    }
}

wire_struct! {
    /// Capabilities of a server.
    pub struct ServerCapabilities<'a> {
        optional {
            /// The server has tools.
            tools("tools"): ListCapability<'a>,
            /// The server has prompts.
            prompts("prompts"): ListCapability<'a>,
            /// The server has resources.
            resources("resources"): ResourcesCapability<'a>,
            /// The server completes arguments.
            completions("completions"): Raw<'a>,
            /// The server sends log messages.
            logging("logging"): Raw<'a>,
            /// The server can run requests as tasks (2025-11-25).
            tasks("tasks"): TasksCapability<'a>,
        }
        collections {
            /// Non-standard capabilities, by name.
            experimental("experimental"): Map<'a, Raw<'a>>,
            /// Extensions by identifier, with their settings.
            extensions("extensions"): Map<'a, Raw<'a>>,
        }
    }
}

wire_struct! {
    /// Settings of a list capability.
    pub struct ListCapability<'a> {
        optional {
            /// Whether the server notifies of changes to the list.
            list_changed("listChanged"): bool,
        }
    }
}

wire_struct! {
    /// Settings of the resources capability.
    pub struct ResourcesCapability<'a> {
        optional {
            /// Whether clients can subscribe to changes of a resource.
            subscribe("subscribe"): bool,
            /// Whether the server notifies of changes to the list.
            list_changed("listChanged"): bool,
        }
    }
}

wire_struct! {
    /// Settings of the roots capability.
    pub struct RootsCapability<'a> {
        optional {
            /// Whether the client notifies of changed roots.
            list_changed("listChanged"): bool,
        }
    }
}

wire_struct! {
    /// Settings of the sampling capability.
    pub struct SamplingCapability<'a> {
        optional {
            /// Context of servers can be included.
            context("context"): Raw<'a>,
            /// Tools can be used in sampling.
            tools("tools"): Raw<'a>,
        }
    }
}

wire_struct! {
    /// Modes of elicitation. An empty object means forms.
    pub struct ElicitationCapability<'a> {
        optional {
            /// Forms can be shown.
            form("form"): Raw<'a>,
            /// URLs can be opened.
            url("url"): Raw<'a>,
        }
    }
}

wire_struct! {
    /// The task methods of 2025-11-25.
    pub struct TasksCapability<'a> {
        optional {
            /// Support for `tasks/list`.
            list("list"): Raw<'a>,
            /// Support for `tasks/cancel`.
            cancel("cancel"): Raw<'a>,
            /// The requests that can be tasks, by family and method.
            requests("requests"): RawObject<'a>,
        }
    }
}

impl ServerCapabilities<'_> {
    /// Whether the server has tools, in any form.
    pub fn offers_tools(&self) -> bool {
        self.tools.is_some() || is_on(&self.extra, "tools")
    }

    /// Whether the server has prompts, in any form.
    pub fn offers_prompts(&self) -> bool {
        self.prompts.is_some() || is_on(&self.extra, "prompts")
    }

    /// Whether the server has resources, in any form.
    pub fn offers_resources(&self) -> bool {
        self.resources.is_some() || is_on(&self.extra, "resources")
    }
}

impl ClientCapabilities<'_> {
    /// Whether the client has roots, in any form.
    pub fn offers_roots(&self) -> bool {
        self.roots.is_some() || is_on(&self.extra, "roots")
    }

    /// Whether the client supports sampling, in any form.
    pub fn offers_sampling(&self) -> bool {
        self.sampling.is_some() || is_on(&self.extra, "sampling")
    }

    /// Whether the client supports elicitation, in any form.
    pub fn offers_elicitation(&self) -> bool {
        self.elicitation.is_some() || is_on(&self.extra, "elicitation")
    }
}

impl ElicitationCapability<'_> {
    /// Whether forms are supported: explicitly, or because no mode is stated.
    pub fn allows_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }
}

/// Whether a capability of the wrong type is on: anything but `false` and `null`.
fn is_on(extra: &Extra<'_>, name: &str) -> bool {
    extra
        .get(name)
        .is_some_and(|value| !matches!(value.get(), "null" | "false"))
}
