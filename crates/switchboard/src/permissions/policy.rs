//! The policy for calls that no rule matches.

use switchboard_config::entry::Permission;
use switchboard_config::settings::{Setting, SettingOrigin, SettingValue, Settings};

/// The defaults of a front end for calls that match no rule, and for prompts that cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The permission of calls that match no rule.
    pub default: Permission,
    /// Whether annotations of trusted servers count: read-only tools are allowed, destructive ones prompt.
    pub annotations: bool,
    /// The answer to a prompt if none is available.
    pub unattended: Permission,
    /// Whether making a call implies consent, because a user typed it or a program was written to make it. Never true
    /// of a model's calls, which are decided by [`Policy::agent`].
    pub typed: bool,
}

/// The kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A user at the command line, or the code of a program.
    Program,
    /// A model in a session: the request has a [`CallContext`](crate::call::CallContext).
    Model,
}

impl Policy {
    /// The policy for calls typed by a user: typing implies consent, unless a rule says otherwise.
    pub const fn typed() -> Self {
        Self {
            default: Permission::Allow,
            annotations: false,
            unattended: Permission::Deny,
            typed: true,
        }
    }

    /// The policy for calls by a model or another program.
    pub const fn agent() -> Self {
        Self {
            default: Permission::Ask,
            annotations: true,
            unattended: Permission::Deny,
            typed: false,
        }
    }

    /// The policy for calls by other agents, through a gateway: an agent asks its own user, so a call that no rule
    /// matches is allowed.
    pub const fn gateway() -> Self {
        Self {
            default: Permission::Allow,
            annotations: false,
            unattended: Permission::Deny,
            typed: false,
        }
    }

    /// The policy for a model's calls.
    pub(super) fn of_models(self) -> Self {
        if self.typed { Self::agent() } else { self }
    }

    /// Applies the settings. If several files set one, the strictest wins.
    #[must_use]
    pub fn with_settings(mut self, settings: &Settings) -> Self {
        if let Some(default) = strictest(settings, Setting::DefaultPermission) {
            self.default = default;
            self.annotations = true;
            self.typed = false;
        }
        if let Some(unattended) = strictest(settings, Setting::UnattendedPermission) {
            self.unattended = unattended;
        }
        self
    }
}

fn strictest(settings: &Settings, setting: Setting) -> Option<Permission> {
    let effective = settings.get(setting);
    let stated = std::iter::once((&effective.value, &effective.origin)).chain(
        effective
            .shadowed
            .iter()
            .map(|(value, origin)| (value, origin)),
    );
    stated
        .filter(|(_, origin)| **origin != SettingOrigin::Default)
        .filter_map(|(value, _)| match value {
            SettingValue::Word(word) => Permission::from_name(word),
            _ => None,
        })
        .max()
}
