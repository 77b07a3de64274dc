//! Paths that hold secrets, and the paths that a built-in tool would read.
//!
//! Implements the list in `docs/permissions.md`. No tool reads Switchboard's own folders, regardless of rules. Other
//! secret paths are denied unless a user rule names them. Names are compared case-insensitively, since some file
//! systems are. No file is opened here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use serde_json::value::RawValue;
use switchboard_config::files::Folders;

use super::path::{self, Base, Folder, Resolved};
use super::subject::Subject;

/// Files and folders with secrets in the home folder.
const IN_HOME: &[&str] = &[
    // keys and passwords
    ".ssh",
    ".gnupg",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".pki",
    ".age",
    ".config/sops",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden CLI",
    ".config/keepassxc",
    ".vault-token",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".electrum",
    ".bitcoin",
    ".ethereum",
    // package registries and source hosts
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pypoetry/auth.toml",
    ".local/share/uv/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet/NuGet.Config",
    // clouds and clusters
    ".aws",
    ".azure",
    ".config/gcloud",
    ".oci",
    ".boto",
    ".s3cfg",
    ".aliyun",
    ".bluemix",
    ".config/doctl",
    ".config/hcloud",
    ".config/linode-cli",
    ".config/scw",
    ".config/rclone",
    ".config/heroku",
    ".config/netlify",
    ".config/configstore",
    ".config/.wrangler",
    ".wrangler",
    ".fly",
    ".local/share/com.vercel.cli",
    ".kube",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".config/helm",
    ".terraform.d",
    ".terraformrc",
    ".pulumi",
    ".databrickscfg",
    ".snowsql",
    ".snowflake",
    ".kaggle",
    ".huggingface/token",
    ".cache/huggingface/token",
    // agents and editors
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".config/github-copilot",
    ".local/share/opencode/auth.json",
    // browsers and mail
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".var/app",
    "snap/firefox",
    "snap/chromium",
    "Library/Keychains",
    "Library/Cookies",
    "Library/Safari",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Chromium",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Microsoft Edge",
    "Library/Application Support/Firefox",
    // shell and editor history
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".sh_history",
    ".ash_history",
    ".history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".mongo_history",
    ".lesshst",
    ".viminfo",
];

/// System-wide files and folders with secrets.
const IN_SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard",
    "/etc/openvpn",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/sss",
    "/run/secrets",
    "/var/run/secrets",
    "/dev/mem",
    "/dev/kmem",
];

/// Common file names of private keys, in any folder.
const KEYS: &[&str] = &[
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_xmss",
];

/// Files in `/proc/PID` that expose the memory or environment of a process.
const OF_PROCESSES: &[&str] = &["environ", "mem", "auxv", "kcore"];

/// Suffixes of `.env` files that are only examples.
const EXAMPLES: &[&str] = &[
    "example", "sample", "template", "dist", "defaults", "schema",
];

/// The paths that hold secrets.
#[derive(Debug, Default)]
pub struct SecretPlaces {
    /// Switchboard's own folders.
    own: Vec<PathBuf>,
    /// Folders within them that tools may read.
    open: Vec<PathBuf>,
    places: Vec<PathBuf>,
}

/// The protection level of a path, in order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Secrecy {
    /// A project's `.env` file, which often holds passwords: prompts.
    Asked,
    /// Denied unless a rule names it.
    Denied,
    /// Switchboard's own: no tool may read it.
    Own,
}

/// A path that a built-in tool would read.
pub(super) struct Reading<'a> {
    /// The argument, as written.
    pub(super) argument: Cow<'a, str>,
    pub(super) is_inside: bool,
    pub(super) secrecy: Option<Secrecy>,
}

impl SecretPlaces {
    /// The secret paths for these folders.
    pub fn new(folders: &Folders) -> Self {
        let with_real = |paths: Vec<PathBuf>| {
            let mut all: Vec<PathBuf> = paths.iter().filter_map(|path| path::real(path)).collect();
            all.extend(paths);
            all.retain(|path| path.is_absolute());
            all.sort();
            all.dedup();
            all
        };
        let home = IN_HOME.iter().map(|place| folders.home.join(place));
        let system = IN_SYSTEM.iter().map(PathBuf::from);
        Self {
            own: with_real(vec![folders.config.clone(), folders.state.clone()]),
            open: Vec::new(),
            places: with_real(home.chain(system).collect()),
        }
    }

    /// Exempts a folder within ours.
    pub(super) fn open(&mut self, folder: &Path) {
        self.open.extend(path::real(folder));
        self.open.push(folder.to_owned());
    }

    /// The protection level of an absolute path without `.` and `..`; `None` if it is not secret. Does not follow
    /// links.
    pub fn of(&self, path: &Path) -> Option<Secrecy> {
        let is_in = |folders: &[PathBuf]| folders.iter().any(|folder| is_within(path, folder));
        if is_in(&self.open) {
            return None;
        }
        if is_in(&self.own) {
            return Some(Secrecy::Own);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_lowercase();
        let is_host_key = || {
            let key = name.strip_prefix("ssh_host_");
            key.is_some_and(|key| key.ends_with("_key"))
        };
        let is_of_process = || path.starts_with("/proc") && OF_PROCESSES.contains(&name.as_str());
        if is_in(&self.places) || KEYS.contains(&name.as_str()) || is_host_key() || is_of_process()
        {
            return Some(Secrecy::Denied);
        }
        has_variables(&name).then_some(Secrecy::Asked)
    }

    /// Whether a search that starts at `root` skips this file. If the root itself is secret, reading it has been
    /// permitted.
    pub fn skips(&self, path: &Path, root: &Path) -> bool {
        match self.of(path) {
            Some(Secrecy::Own) => true,
            secrecy => path != root && secrecy > self.of(root),
        }
    }

    /// The paths that a call would read; `None` for tools that do not read by path.
    pub(super) fn read_by<'a>(
        &self,
        subject: &Subject<'_>,
        arguments: Option<&'a RawValue>,
        base: &Base,
    ) -> Option<Reading<'a>> {
        let keys: &[&str] = match (subject.server, subject.tool) {
            (None, "Read") => &["file_path"],
            (None, "Glob" | "Grep") => &["path"],
            (None, "ReadMcpResource") => &["uri"],
            (Some(crate::workspace::NAME), _) => &["path", "uri", "file"],
            _ => return None,
        };
        let is_ours = subject.server.is_none() && subject.tool != "ReadMcpResource";
        let inside = Reading {
            argument: Cow::Borrowed(""),
            is_inside: true,
            secrecy: None,
        };
        let members = arguments.map(RawValue::get).unwrap_or_default();
        let members: HashMap<Cow<'a, str>, &'a RawValue> =
            serde_json::from_str(members).unwrap_or_default();
        let text = keys.iter().find_map(|key| {
            let value = members.get(*key)?;
            serde_json::from_str::<Cow<'a, str>>(value.get()).ok()
        });
        let Some(argument) = text else {
            return Some(inside);
        };
        if !is_ours && subject.server.is_none() && !argument.starts_with("file:") {
            return Some(inside);
        }
        // Built-in tools use a path as it is; servers may normalize it further.
        let resolved = if is_ours {
            let absolute = base.folder.join(&*argument);
            Some(Resolved {
                written: path::written(&absolute),
                real: path::real(&absolute),
            })
        } else {
            base.resolve(&argument)
        };
        let secrecy = resolved.as_ref().and_then(|resolved| {
            let real = resolved.real.as_deref().and_then(|real| self.of(real));
            self.of(&resolved.written).max(real)
        });
        let is_inside = resolved.is_some_and(|resolved| {
            let workspace = Folder::named(".", base);
            let is_open = |path: &Path| self.open.iter().any(|open| path.starts_with(open));
            workspace.is_some_and(|workspace| workspace.holds(&resolved))
                || resolved.real.as_deref().is_some_and(is_open)
        });
        Some(Reading {
            argument,
            // Servers enforce their own roots.
            is_inside: is_inside || !is_ours,
            secrecy,
        })
    }
}

/// Whether a path is a folder or in it, compared case-insensitively.
fn is_within(path: &Path, folder: &Path) -> bool {
    let mut parts = path.components();
    folder.components().all(|part| {
        let same = |found: Component<'_>| found.as_os_str().eq_ignore_ascii_case(part.as_os_str());
        parts.next().is_some_and(same)
    })
}

/// Whether a lowercase name is that of a `.env` file.
fn has_variables(name: &str) -> bool {
    match name.strip_prefix(".env") {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('.')
            .is_some_and(|rest| !rest.split('.').any(|part| EXAMPLES.contains(&part))),
        None => false,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn places() -> SecretPlaces {
        let mut places = SecretPlaces::new(&Folders {
            home: "/home/me".into(),
            config: "/home/me/.config/switchboard".into(),
            state: "/home/me/.local/state/switchboard".into(),
            project: "/home/me/code".into(),
            managed_file: None,
        });
        places.open(Path::new("/home/me/.local/state/switchboard/output"));
        places
    }

    #[test]
    fn places_with_secrets_are_known_in_any_case() {
        let places = places();
        let check = |path: &str, expected| {
            assert_eq!(places.of(Path::new(path)), expected, "{path}");
        };
        for path in [
            "/home/me/.config/switchboard/mcp.toml",
            "/home/me/.local/state/switchboard/serve-token",
            "/home/me/.local/state/switchboard/logins/key",
            "/home/me/.Local/State/SWITCHBOARD/logins/key",
        ] {
            check(path, Some(Secrecy::Own));
        }
        for path in [
            "/home/me/.ssh",
            "/home/me/.ssh/config",
            "/home/me/.SSH/id_rsa",
            "/home/me/code/deploy/id_ed25519",
            "/home/me/.aws/credentials",
            "/home/me/.docker/config.json",
            "/home/me/.bash_history",
            "/etc/shadow",
            "/etc/ssh/ssh_host_rsa_key",
            "/proc/1/environ",
            "/proc/self/task/7/mem",
        ] {
            check(path, Some(Secrecy::Denied));
        }
        check("/home/me/code/.env", Some(Secrecy::Asked));
        check("/home/me/code/api/.env.production", Some(Secrecy::Asked));
        for path in [
            "/home/me/code/.env.example",
            "/home/me/code/.envrc.md",
            "/home/me/code/src/main.rs",
            "/home/me/.docker/daemon.json",
            "/home/me/.sshrc",
            "/etc/passwd",
            "/etc/ssh/ssh_host_rsa_key.pub",
            "/proc/1/status",
            "/home/me/.local/state/switchboard/output/7.txt",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn a_search_passes_over_what_it_was_not_sent_to() {
        let places = places();
        let check = |path: &str, root: &str, expected: bool| {
            let skips = places.skips(Path::new(path), Path::new(root));
            assert_eq!(skips, expected, "{path} from {root}");
        };
        check("/home/me/.ssh/id_rsa", "/home/me", true);
        check("/home/me/.ssh/config", "/home/me/.ssh", false);
        check("/home/me/.ssh/config", "/home/me/.ssh/config", false);
        check("/home/me/code/.env", "/home/me/code", true);
        check("/home/me/code/.env", "/home/me/code/.env", false);
        check("/home/me/code/a.rs", "/home/me/code", false);
        let key = "/home/me/.local/state/switchboard/logins/key";
        check(key, "/home/me", true);
        check(key, key, true);
    }
}
