//! The seven configuration scopes, in order of precedence.

use std::fmt;

/// Scope of an entry, ordered by precedence: the greater scope wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Fetched from the configured provider URL.
    Cloud,
    /// Added at run time.
    Dynamic,
    /// From the manifest of an installed plugin.
    Plugin,
    /// One user, in every project: the user's configuration folder.
    User,
    /// Checked in with a project.
    Project,
    /// One user, in one project: `.switchboard.local.toml`, or a file given with `--config`.
    Local,
    /// The managed file of the machine.
    Enterprise,
}

impl Scope {
    /// All scopes, highest first.
    pub const ALL: [Scope; 7] = [
        Scope::Enterprise,
        Scope::Local,
        Scope::Project,
        Scope::User,
        Scope::Plugin,
        Scope::Dynamic,
        Scope::Cloud,
    ];

    /// Name in files, flags and output.
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
