//! Environment variables that hold Switchboard's own secrets.
//!
//! The single list: neither hooks nor the agent's commands inherit them. Servers inherit only what every program needs.

use std::ffi::{OsStr, OsString};

/// Keys of model providers, and secrets that the program reads itself.
const KNOWN: [&str; 4] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "MCP_CLIENT_SECRET",
    "OPENAI_API_KEY",
];

/// The prefix of Switchboard's variables, and the suffixes of secret ones.
const OWN_PREFIX: &str = "SWITCHBOARD_";
const SECRET_ENDINGS: [&str; 5] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSPHRASE"];

/// Whether a variable of this name holds a secret of Switchboard's own.
pub fn is_own_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    KNOWN.contains(&&*name)
        || name.starts_with(OWN_PREFIX) && SECRET_ENDINGS.iter().any(|end| name.ends_with(end))
}

/// The names of all such variables: the known ones, and those set in this process.
pub(crate) fn own_secrets() -> impl Iterator<Item = OsString> {
    let present = std::env::vars_os().map(|(name, _)| name);
    let present = present.filter(|name| is_own_secret(name));
    KNOWN.iter().map(OsString::from).chain(present)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_secrets_are_known_by_their_names() {
        for (name, expected) in [
            ("ANTHROPIC_API_KEY", true),
            ("ANTHROPIC_AUTH_TOKEN", true),
            ("OPENAI_API_KEY", true),
            ("SWITCHBOARD_SERVE_TOKEN", true),
            ("SWITCHBOARD_LOG", false),
            ("GITHUB_TOKEN", false),
            ("PATH", false),
        ] {
            assert_eq!(is_own_secret(OsStr::new(name)), expected, "{name}");
        }
    }
}
