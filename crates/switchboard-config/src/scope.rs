//! The seven scopes a setting can come from, in order of precedence.

use std::fmt;

/// Where an entry comes from. The order is the precedence: a *greater* scope wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Fetched from the configured provider URL.
    Cloud,
    /// Added at run time.
    Dynamic,
    /// From the manifest of an installed plugin.
    Plugin,
    /// One person, every project: the user's configuration folder.
    User,
    /// Checked in with a project.
    Project,
    /// One person in one project: `.switchboard.local.toml`, or a file named with `--config`.
    Local,
    /// The managed file of the machine.
    Enterprise,
}

impl Scope {
    /// Every scope, highest first.
    pub const ALL: [Scope; 7] = [
        Scope::Enterprise,
        Scope::Local,
        Scope::Project,
        Scope::User,
        Scope::Plugin,
        Scope::Dynamic,
        Scope::Cloud,
    ];

    /// The name used in files, flags and output.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Enterprise => "enterprise",
            Scope::Local => "local",
            Scope::Project => "project",
            Scope::User => "user",
            Scope::Plugin => "plugin",
            Scope::Dynamic => "dynamic",
            Scope::Cloud => "cloud",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}
