//! What holds when no rule does.

use switchboard_config::entry::Permission;
use switchboard_config::settings::{Setting, SettingOrigin, SettingValue, Settings};

/// What a front end does where no rule says anything, and where nobody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What calls need that no rule is about.
    pub default: Permission,
    /// Whether what trusted servers say of their tools counts: read-only ones are allowed, destructive ones ask.
    pub annotations: bool,
    /// What becomes of a question when there is nobody to answer it.
    pub unattended: Permission,
    /// Whether making a call is consent to it, because a person typed it or a program was written to make it. A model's
    /// calls are never consent: they are decided as [`Policy::agent`] decides.
    pub typed: bool,
}

/// Who makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A person at the command line, or the code of a program.
    Program,
    /// A model in a session: the request has a [`CallContext`](crate::call::CallContext).
    Model,
}

impl Policy {
    /// For calls that a person types. Typing it was the consent, unless a rule says otherwise.
    pub const fn typed() -> Self {
        Self {
            default: Permission::Allow,
            annotations: false,
            unattended: Permission::Deny,
            typed: true,
        }
    }

    /// For calls that a model or another program makes.
    pub const fn agent() -> Self {
        Self {
            default: Permission::Ask,
            annotations: true,
            unattended: Permission::Deny,
            typed: false,
        }
    }

    /// The policy for a model's calls.
    pub(super) fn of_models(self) -> Self {
        if self.typed {
            Self {
                unattended: self.unattended,
                ..Self::agent()
            }
        } else {
            self
        }
    }

    /// The policy with what the settings say. Of several files that say something, the strictest counts.
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
