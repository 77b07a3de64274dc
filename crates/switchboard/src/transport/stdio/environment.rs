//! Builds the environment of a server process.
//!
//! A server is a third-party program, and environments are full of tokens. It gets the variables every program needs,
//! those of TLS, proxies and package runners, and those its entry passes on or sets. Of package runner settings, names
//! that suggest a secret and URLs with a password are withheld; proxies keep their password, since they do not work
//! without it. This module must not read the environment itself.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use switchboard_config::sort;

use switchboard_config::own_program;

use super::StdioConnector;
use crate::transport::{VariablePurpose, WithheldVariable};

/// Variables every server gets.
#[cfg(not(windows))]
const BASE: &[&str] = &[
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

/// Variables every server gets: some programs do not start without them.
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

/// Prefixes of variables every server gets.
const BASE_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// TLS settings needed behind a private certificate authority: paths and switches.
const TLS: &[&str] = &[
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_ENV_PROXY",
    "NODE_USE_SYSTEM_CA",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Proxies. Programs read either case.
const PROXIES: &[&str] = &[
    "ALL_PROXY",
    "FTP_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
];

/// Folders of package runners and version managers, and the daemon of container runtimes.
const RUNNERS: &[&str] = &[
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "DENO_DIR",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "FNM_DIR",
    "MISE_DATA_DIR",
    "NVM_DIR",
    "N_PREFIX",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VOLTA_HOME",
];

/// Prefixes of package runner settings, in lowercase: npm accepts either case.
const RUNNER_PREFIXES: &[&str] = &[
    "npm_config_",
    "pnpm_config_",
    "bun_config_",
    "corepack_",
    "yarn_",
    "pip_",
    "pipx_",
    "uv_",
];

/// Tokens that package runners read for private registries.
const REGISTRY_TOKENS: &[&str] = &["GH_TOKEN", "GITHUB_TOKEN", "NODE_AUTH_TOKEN", "NPM_TOKEN"];

/// Variables that decide which code runs; passed on only if the entry lists them.
const CODE: &[&str] = &[
    "CONDA_PREFIX",
    "LD_LIBRARY_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
];

/// Words in the names of variables that contain a credential.
const CREDENTIALS: &[&str] = &[
    "apikey",
    "credential",
    "credentials",
    "key",
    "passwd",
    "password",
    "pat",
    "secret",
    "token",
];

/// The complete environment of the server.
pub(super) fn of(connector: &StdioConnector) -> BTreeMap<OsString, OsString> {
    let mut environment = BTreeMap::new();
    for (name, value) in connector.base_env.iter() {
        if is_passed(connector, name, value) {
            environment.insert(key(name), value.clone());
        }
    }
    for (name, value) in &connector.env {
        environment.insert(key(OsStr::new(name)), value.expose().into());
    }
    // Last, so that no entry can hide that Switchboard started the process.
    let depth = own_program::next_depth(&connector.base_env);
    environment.insert(own_program::DEPTH.into(), depth);
    environment
}

/// The variables of the host that are not passed to the server, ordered by name. One whose value the entry sets under
/// another name does not count.
pub(super) fn withheld(connector: &StdioConnector) -> Vec<WithheldVariable> {
    let is_given = |name: &OsStr, value: &OsStr| {
        let mut set = connector.env.iter();
        set.any(|(set, given)| same(name, set) || value == given.expose())
    };
    let mut variables: Vec<WithheldVariable> = connector
        .base_env
        .iter()
        .filter(|(name, value)| !is_passed(connector, name, value) && !is_given(name, value))
        .filter_map(|(name, _)| {
            Some(WithheldVariable {
                name: name.to_str()?.to_owned(),
                purpose: purpose(name),
            })
        })
        .collect();
    sort::by(&mut variables, |one, other| one.name.cmp(&other.name));
    variables.dedup_by(|one, other| one.name == other.name);
    variables
}

fn purpose(name: &OsStr) -> VariablePurpose {
    let is_one_of = |names: &[&str]| names.iter().any(|known| same(name, known));
    let text = name.to_string_lossy().to_ascii_lowercase();
    let mut words = text.split('_');
    if is_runners(name) || is_proxy(name) || is_one_of(TLS) || is_one_of(RUNNERS) {
        VariablePurpose::Install
    } else if is_one_of(CODE) {
        VariablePurpose::Code
    } else if is_one_of(REGISTRY_TOKENS) || words.any(|word| CREDENTIALS.contains(&word)) {
        VariablePurpose::Credential
    } else {
        VariablePurpose::Unknown
    }
}

fn is_passed(connector: &StdioConnector, name: &OsStr, value: &OsStr) -> bool {
    connector.inherit_env
        || connector.env_vars.iter().any(|wanted| same(name, wanted))
        || is_base(name, value) && !is_function(value)
}

fn is_base(name: &OsStr, value: &OsStr) -> bool {
    let is_one_of = |names: &[&str]| names.iter().any(|base| same(name, base));
    let is_base = is_one_of(BASE) || is_one_of(TLS) || is_one_of(RUNNERS);
    let text = name.to_str().unwrap_or_default();
    is_base
        || BASE_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        || is_proxy(name)
        || is_runners(name) && !sounds_secret(text) && !has_password(value)
}

fn is_proxy(name: &OsStr) -> bool {
    let mut proxies = PROXIES.iter();
    proxies.any(|proxy| same(name, proxy) || same(name, &proxy.to_ascii_lowercase()))
}

/// Whether it is a setting of a package runner.
fn is_runners(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        let name = name.to_ascii_lowercase();
        RUNNER_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
    })
}

/// Whether the name of a package runner's setting suggests a secret value.
fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let inside = ["auth", "credential", "passw", "secret", "token"];
    let words = ["key", "pass", "otp"];
    inside.iter().any(|part| name.contains(part))
        || name
            .split(['_', ':', '.', '-'])
            .any(|word| words.contains(&word))
}

/// Whether a value contains a URL with a password: `https://user:password@host/`.
fn has_password(value: &OsStr) -> bool {
    let text = value.to_string_lossy();
    text.split("://").skip(1).any(|after| {
        let authority = after.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        authority.contains('@')
    })
}

/// Whether the value is an exported shell function, which some shells would run.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

/// Whether the names are equal; case-insensitive on Windows.
fn same(name: &OsStr, other: &str) -> bool {
    if cfg!(windows) {
        name.eq_ignore_ascii_case(other)
    } else {
        name == other
    }
}

/// The name as a map key, so that each variable occurs once.
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
    use std::sync::Arc;

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
        let mut environment = of(&connector);
        assert_eq!(
            environment.remove(OsStr::new(own_program::DEPTH)),
            Some("1".into())
        );
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
    fn every_server_knows_how_many_switchboards_are_above_it() {
        let mut connector = StdioConnector::new("server");
        connector.base_env = Arc::new([(own_program::DEPTH.into(), "1".into())]);
        connector.env = vec![(own_program::DEPTH.into(), "0".into())];
        let environment = of(&connector);
        let depth = environment.get(OsStr::new(own_program::DEPTH));
        assert_eq!(depth, Some(&"2".into()));
    }

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

    /// Names of the variables that pass, and of those withheld although a server may need them.
    fn sorted(variables: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let mut connector = StdioConnector::new("npx");
        let pairs = variables.iter();
        connector.base_env = pairs
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let mut passed = of(&connector);
        // Every server has the marker, whatever it inherits.
        assert!(passed.remove(OsStr::new(own_program::DEPTH)).is_some());
        let passed = passed.keys().map(|name| name.to_str().unwrap().to_owned());
        let withheld = withheld(&connector).into_iter();
        let needed = withheld.filter(|variable| variable.purpose != VariablePurpose::Unknown);
        (
            passed.collect(),
            needed.map(|variable| variable.name).collect(),
        )
    }

    #[test]
    fn tls_proxies_and_package_runners_get_what_they_need() {
        let variables = [
            ("NODE_EXTRA_CA_CERTS", "/etc/company.pem"),
            ("SSL_CERT_FILE", "/etc/company.pem"),
            ("SSL_CERT_DIR", "/etc/certs"),
            ("REQUESTS_CA_BUNDLE", "/etc/company.pem"),
            ("CURL_CA_BUNDLE", "/etc/company.pem"),
            ("HTTP_PROXY", "http://proxy:3128"),
            ("https_proxy", "http://ann:secret@proxy:3128"),
            ("ALL_PROXY", "socks5://proxy"),
            ("no_proxy", "localhost"),
            ("npm_config_registry", "https://npm.example/"),
            ("NPM_CONFIG_CAFILE", "/etc/company.pem"),
            ("PIP_INDEX_URL", "https://pypi.example/simple"),
            ("UV_INDEX_URL", "https://pypi.example/simple"),
            ("UV_KEYRING_PROVIDER", "subprocess"),
            ("UV_CACHE_DIR", "/cache"),
            ("XDG_CACHE_HOME", "/cache"),
            ("NVM_DIR", "/home/ann/.nvm"),
            ("DOCKER_HOST", "unix:///run/docker.sock"),
        ];
        let mut names: Vec<_> = variables.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert_eq!(
            sorted(&variables),
            (names.iter().map(ToString::to_string).collect(), vec![])
        );
    }

    #[test]
    fn secrets_of_package_runners_are_withheld_and_named() {
        let variables = [
            ("npm_config__authToken", "npm_secret"),
            ("npm_config_//registry.npmjs.org/:_authToken", "npm_secret"),
            ("NPM_CONFIG__AUTH", "c2VjcmV0"),
            ("npm_config_key", "-----BEGIN KEY-----"),
            ("npm_config_registry", "https://ann:secret@npm.example/"),
            ("PIP_INDEX_URL", "https://ann:secret@pypi.example/simple"),
            (
                "PIP_EXTRA_INDEX_URL",
                "https://a.example/ https://token@pypi.example/simple",
            ),
            ("UV_PUBLISH_TOKEN", "pypi-secret"),
            ("UV_INDEX_COMPANY_PASSWORD", "secret"),
            ("YARN_NPM_AUTH_TOKEN", "secret"),
            ("COREPACK_NPM_TOKEN", "secret"),
            ("NPM_TOKEN", "secret"),
            ("NODE_OPTIONS", "--require=./evil.js"),
            ("UV_CACHE_DIR", "() { echo trap; }"),
        ];
        let mut names: Vec<String> = variables.iter().map(|(name, _)| (*name).into()).collect();
        names.sort();
        assert_eq!(sorted(&variables), (vec![], names));
    }

    #[test]
    fn a_withheld_variable_is_named_with_what_it_is_for() {
        let mut connector = StdioConnector::new("npx");
        connector.base_env = [
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("EDITOR", "vi"),
            ("GITHUB_TOKEN", "ghp_1"),
            ("HTTPS_PROXY", "http://proxy"),
            ("LISTED_TOKEN", "2"),
            ("MONKEY", "3"),
            ("NPM_CONFIG__AUTH", "4"),
            ("PYTHONPATH", "/lib"),
            ("SLACK_TOKEN", "xoxb"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into_iter()
        .collect();
        connector.env_vars = vec!["LISTED_TOKEN".into()];
        // The same token under the name that the server reads.
        connector.env = vec![("GITHUB_PERSONAL_ACCESS_TOKEN".into(), "ghp_1".into())];
        let found = withheld(&connector);
        let found: Vec<_> = found
            .iter()
            .map(|variable| (variable.name.as_str(), variable.purpose))
            .collect();
        assert_eq!(
            found,
            [
                ("AWS_SECRET_ACCESS_KEY", VariablePurpose::Credential),
                ("EDITOR", VariablePurpose::Unknown),
                ("MONKEY", VariablePurpose::Unknown),
                ("NPM_CONFIG__AUTH", VariablePurpose::Install),
                ("PYTHONPATH", VariablePurpose::Code),
                ("SLACK_TOKEN", VariablePurpose::Credential),
            ]
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
