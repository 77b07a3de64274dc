//! What a server gets to see of the environment.
//!
//! A server is somebody else's program, and environments are full of tokens. It gets the names every program needs,
//! what its entry passes on by name, and what its entry sets. This module must not read the environment itself.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::StdioConnector;

/// What every server may see.
#[cfg(not(windows))]
const BASE: &[&str] = &[
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

/// What every server may see: programs do not even start without some of these.
#[cfg(windows)]
const BASE: &[&str] = &[
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMMONPROGRAMFILES(X86)",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "PUBLIC",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TZ",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Families of names that every server may see.
const BASE_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// The whole environment of the server, by name.
pub(super) fn of(connector: &StdioConnector) -> BTreeMap<OsString, OsString> {
    let mut environment = BTreeMap::new();
    for (name, value) in connector.base_env.iter() {
        let passed = if connector.inherit_env {
            true
        } else {
            is_base(name) && !is_function(value)
                || connector.env_vars.iter().any(|wanted| same(name, wanted))
        };
        if passed {
            environment.insert(key(name), value.clone());
        }
    }
    for (name, value) in &connector.env {
        environment.insert(key(OsStr::new(name)), value.expose().into());
    }
    environment
}

fn is_base(name: &OsStr) -> bool {
    BASE.iter().any(|base| same(name, base))
        || name
            .to_str()
            .is_some_and(|name| BASE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

/// Whether the value is a function that some shells export, and would run.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

/// Whether it is the same variable: on Windows, case does not matter.
fn same(name: &OsStr, other: &str) -> bool {
    if cfg!(windows) {
        name.eq_ignore_ascii_case(other)
    } else {
        name == other
    }
}

/// The name as the key of a map, so that one variable is there once.
fn key(name: &OsStr) -> OsString {
    if cfg!(windows) {
        name.to_ascii_uppercase()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut StdioConnector), expected: &[(&str, &str)]) {
        let mut connector = StdioConnector::new("server");
        connector.base_env = [
            ("PATH", "/bin"),
            ("HOME", "/home/ann"),
            ("LC_ALL", "C.UTF-8"),
            ("XDG_DATA_HOME", "/data"),
            ("SHELL", "() { echo trap; }"),
            ("GITHUB_TOKEN", "ghp_secret"),
            ("EXTRA", "1"),
            ("path", "not the same"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into_iter()
        .collect();
        change(&mut connector);
        let environment = of(&connector);
        let seen: Vec<_> = environment
            .iter()
            .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
            .collect();
        assert_eq!(seen, expected);
    }

    const LISTED: [(&str, &str); 4] = [
        ("HOME", "/home/ann"),
        ("LC_ALL", "C.UTF-8"),
        ("PATH", "/bin"),
        ("XDG_DATA_HOME", "/data"),
    ];

    #[test]
    fn only_the_listed_names_pass() {
        check(|_| {}, &LISTED);
    }

    #[test]
    fn names_are_passed_on_and_absent_ones_are_not_invented() {
        check(
            |connector| connector.env_vars = vec!["EXTRA".into(), "ABSENT".into()],
            &[&[("EXTRA", "1")], &LISTED[..]].concat(),
        );
    }

    #[test]
    fn what_the_entry_sets_wins() {
        check(
            |connector| {
                connector.env_vars = vec!["EXTRA".into()];
                connector.env = vec![
                    ("EXTRA".into(), "2".into()),
                    ("PATH".into(), "/opt".into()),
                    ("TOKEN".into(), "t".into()),
                ];
            },
            &[
                ("EXTRA", "2"),
                ("HOME", "/home/ann"),
                ("LC_ALL", "C.UTF-8"),
                ("PATH", "/opt"),
                ("TOKEN", "t"),
                ("XDG_DATA_HOME", "/data"),
            ],
        );
    }

    #[test]
    fn everything_passes_when_the_entry_says_so() {
        check(
            |connector| connector.inherit_env = true,
            &[
                ("EXTRA", "1"),
                ("GITHUB_TOKEN", "ghp_secret"),
                ("HOME", "/home/ann"),
                ("LC_ALL", "C.UTF-8"),
                ("PATH", "/bin"),
                ("SHELL", "() { echo trap; }"),
                ("XDG_DATA_HOME", "/data"),
                ("path", "not the same"),
            ],
        );
    }
}
