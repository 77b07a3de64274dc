//! Computes fingerprints: the components of a server or section that an approval is bound to.
//!
//! Changing a hash invalidates all existing approvals, so a new kind of component is left out if it is empty.

use crate::sort;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::bound::{BoundFile, FileContent, Leads};
use crate::entry::{FieldValue, OAuthEntry, RootsEntry, Sandbox, ServerEntry, Sharing, ToolEntry};
use crate::mask;
use crate::secret::Secret;

/// Name of the single text component of a section, the only one shown line by line.
pub const SECTION_TEXT: &str = "text";

/// Prefix of the names of components that are project files, bound by content.
pub const FILE_PART: &str = "file";

/// What an approval is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Version of the rules it was computed with. Decisions without one are of the first version.
    #[serde(default)]
    scheme: u32,
    /// Components, each with a displayable text.
    pub components: Vec<Component>,
}

/// Current version: the second binds the whole entry, and files by content.
const SCHEME: u32 = 2;

/// One component of a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// Such as `command`.
    pub name: String,
    /// Displayable text, with secrets masked.
    pub shown: String,
    /// Hash of the unmasked value.
    pub digest: String,
}

impl Fingerprint {
    /// Fingerprint of a server: the whole entry, its resolved program, and the project files that it names. Values that
    /// look secret are masked in the text, but hashed like all others.
    pub(crate) fn of_server(entry: &ServerEntry, leads: &Leads) -> Self {
        // Destructured completely, so that a new field cannot be forgotten.
        let ServerEntry {
            transport: _,
            command,
            args,
            env,
            env_vars,
            inherit_env,
            cwd,
            url,
            headers,
            headers_helper,
            bearer_token_env_var,
            ca_file,
            oauth,
            enabled,
            required,
            startup_timeout,
            tool_timeout,
            tool_max,
            enabled_tools,
            disabled_tools,
            tools,
            trust_annotations,
            pin,
            sandbox,
            roots,
            shared,
            idle_shutdown,
            limits,
        } = entry;
        let mut components = Components::default();
        components.text(
            "transport",
            entry
                .effective_transport()
                .map_or("", |transport| transport.name()),
        );
        let command = command.as_deref().unwrap_or_default();
        components.push("command", mask::argument(command).into_owned(), command);
        let program = leads.program.as_deref();
        let program = program
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        components.text("program", &program);
        components.list("args", args, &mask::arguments(args));
        components.pairs("env", env, |_| false);
        components.texts("env_vars", env_vars);
        components.flag("inherit_env", inherit_env.filter(|inherits| *inherits));
        let cwd = cwd.as_deref().unwrap_or_default();
        components.push("cwd", mask::argument(cwd).into_owned(), cwd);
        components.text("folder", leads.folder.as_deref().unwrap_or_default());
        let url = url.as_deref().unwrap_or_default();
        components.push("url", mask::url(url).into_owned(), url);
        components.pairs("headers", headers, |name| !mask::is_harmless_header(name));
        components.list(
            "headers_helper",
            headers_helper,
            &mask::arguments(headers_helper),
        );
        components.text(
            "bearer_token_env_var",
            bearer_token_env_var.as_deref().unwrap_or_default(),
        );
        components.text("ca_file", ca_file.as_deref().unwrap_or_default());
        if let Some(oauth) = oauth {
            components.oauth(oauth);
        }
        components.flag("enabled", enabled.filter(|enabled| !enabled));
        components.flag("required", required.filter(|required| *required));
        components.seconds("startup_timeout_sec", *startup_timeout);
        components.seconds("tool_timeout_sec", *tool_timeout);
        components.seconds("tool_max_sec", *tool_max);
        components.texts("enabled_tools", enabled_tools);
        components.texts("disabled_tools", disabled_tools);
        for (name, tool) in tools {
            components.tool(name, tool);
        }
        components.flag(
            "trust_annotations",
            trust_annotations.filter(|trusts| *trusts),
        );
        components.flag("pin", pin.filter(|pins| !pins));
        components.text("sandbox", &sandbox.map(sandbox_text).unwrap_or_default());
        match roots {
            None => {}
            Some(RootsEntry::Workspace) => components.text("roots", "workspace"),
            Some(RootsEntry::None) => components.text("roots", "none"),
            Some(RootsEntry::Folders(folders)) => components.texts("roots", folders),
        }
        components.text("shared", shared.map_or("", Sharing::name));
        components.seconds("idle_shutdown_sec", *idle_shutdown);
        if let Some(limits) = limits {
            let counts = [
                ("limits.concurrent_calls", limits.concurrent_calls),
                ("limits.queued_calls", limits.queued_calls),
                ("limits.failures", limits.failures),
            ];
            for (name, count) in counts {
                let count = count.map(|count| count.to_string());
                components.text(name, &count.unwrap_or_default());
            }
            components.seconds("limits.pause_sec", limits.pause);
        }
        components.files(&leads.files);
        components.into_fingerprint()
    }

    /// Fingerprint of a section: its text, and the project files that its commands name.
    pub(crate) fn of_section(text: &str, files: &[BoundFile]) -> Self {
        let mut components = Components::default();
        components.push(SECTION_TEXT, mask::text(text), text);
        components.files(files);
        components.into_fingerprint()
    }

    /// Fingerprint of a removed section: approves its absence.
    pub fn of_nothing() -> Self {
        Components::default().into_fingerprint()
    }

    /// Whether it was computed by an earlier version, which bound less.
    pub fn is_of_earlier_version(&self) -> bool {
        self.scheme < SCHEME
    }

    /// Files that cannot be read, which prevent an approval.
    pub fn unreadable(&self) -> impl Iterator<Item = &str> {
        let components = self.components.iter();
        components
            .filter(|component| component.digest.is_empty())
            .map(|component| component.shown.as_str())
    }

    /// Whether an approval of `other` covers this one: equal components and hashes. Displayed texts do not count.
    pub(crate) fn is_bound_like(&self, other: &Fingerprint) -> bool {
        fn bound(fingerprint: &Fingerprint) -> impl Iterator<Item = (&str, &str)> {
            let components = fingerprint.components.iter();
            components.map(|component| (component.name.as_str(), component.digest.as_str()))
        }
        bound(self).eq(bound(other)) && self.unreadable().next().is_none()
    }

    /// Differences to an earlier fingerprint: component, before, now.
    pub fn changes<'f>(
        &'f self,
        earlier: &'f Fingerprint,
    ) -> Vec<(&'f str, Option<&'f str>, Option<&'f str>)> {
        fn find<'f>(components: &'f [Component], name: &str) -> Option<&'f Component> {
            components.iter().find(|component| component.name == name)
        }
        let mut names: Vec<&str> = self
            .components
            .iter()
            .map(|component| component.name.as_str())
            .collect();
        names.extend(
            earlier
                .components
                .iter()
                .map(|c| c.name.as_str())
                .filter(|name| find(&self.components, name).is_none()),
        );
        let changed = |name: &&'f str| {
            let (before, now) = (
                find(&earlier.components, name),
                find(&self.components, name),
            );
            before.map(|c| &c.digest) != now.map(|c| &c.digest)
        };
        let row = |name: &'f str| {
            let shown = |components: &'f [Component]| {
                find(components, name).map(|component| component.shown.as_str())
            };
            (name, shown(&earlier.components), shown(&self.components))
        };
        names.into_iter().filter(changed).map(row).collect()
    }
}

/// Text of a sandbox that approvals are bound to. The words must stay those of the first version.
fn sandbox_text(sandbox: Sandbox) -> String {
    let network = match sandbox.network {
        None => "None",
        Some(true) => "Some(true)",
        Some(false) => "Some(false)",
    };
    format!("{} network={network}", sandbox.mode.name())
}

#[derive(Default)]
pub(super) struct Components(Vec<Component>);

impl Components {
    pub(super) fn into_fingerprint(self) -> Fingerprint {
        Fingerprint {
            scheme: SCHEME,
            components: self.0,
        }
    }

    /// Adds a component unless it is empty, so that a new kind of component does not invalidate unrelated approvals.
    pub(super) fn push(&mut self, name: &str, shown: String, value: &str) {
        if !value.is_empty() {
            self.add(name, shown, Sha256::new().chain_update(value));
        }
    }

    fn add(&mut self, name: &str, shown: String, hasher: Sha256) {
        self.0.push(Component {
            name: name.to_owned(),
            shown,
            digest: hex(&hasher.finalize()),
        });
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.push(name, value.to_owned(), value);
    }

    fn flag(&mut self, name: &str, value: Option<bool>) {
        self.text(
            name,
            &value.map(|value| value.to_string()).unwrap_or_default(),
        );
    }

    fn seconds(&mut self, name: &str, value: Option<Duration>) {
        let seconds = value.map(|value| value.as_secs_f64().to_string());
        self.text(name, &seconds.unwrap_or_default());
    }

    pub(super) fn list(&mut self, name: &str, values: &[String], shown: &[String]) {
        if values.is_empty() {
            return;
        }
        let mut hasher = Sha256::new();
        for text in values {
            // Length prefixes distinguish ["a b"] from ["a", "b"].
            hasher.update(text.len().to_string());
            hasher.update(":");
            hasher.update(text);
        }
        self.add(name, crate::words::join(shown), hasher);
    }

    pub(super) fn texts(&mut self, name: &str, values: &[String]) {
        if values.iter().any(|value| !value.is_empty()) {
            self.list(name, values, values);
        }
    }

    /// One component per name, so that a change identifies the value.
    fn pairs(&mut self, name: &str, pairs: &[(String, Secret)], is_secret: impl Fn(&str) -> bool) {
        let mut pairs: Vec<_> = pairs.iter().collect();
        sort::by(&mut pairs, |(one, _), (other, _)| one.cmp(other));
        for (key, value) in pairs {
            let shown = if is_secret(key) {
                value.shown().into()
            } else {
                mask::named(key, value.expose())
            };
            let whole = format!("{}:{key}={}", key.len(), value.expose());
            let name = format!("{name}.{}", mask::name(key));
            self.add(&name, shown.into_owned(), Sha256::new().chain_update(whole));
        }
    }

    fn tool(&mut self, name: &str, tool: &ToolEntry) {
        let ToolEntry {
            timeout,
            permission,
            hidden,
        } = tool;
        let parts = [
            permission.map(|permission| format!("permission={permission}")),
            hidden.map(|hidden| format!("hidden={hidden}")),
            timeout.map(|timeout| format!("timeout_sec={}", timeout.as_secs_f64())),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        self.texts(&format!("tools.{name}"), &parts);
    }

    fn oauth(&mut self, oauth: &OAuthEntry) {
        for (field, value) in oauth.fields() {
            let name = format!("oauth.{field}");
            match value {
                FieldValue::Text(text) => self.push(&name, mask::url(text).into_owned(), text),
                FieldValue::Secret(secret) => {
                    self.push(&name, secret.shown().to_owned(), secret.expose());
                }
                FieldValue::List(texts) => self.texts(&name, texts),
                FieldValue::Number(number) => self.text(&name, &number.to_string()),
                FieldValue::Flag(flag) => self.flag(&name, Some(flag)),
            }
        }
    }

    /// Binds files by content. An unreadable file has no digest, and so cannot be approved.
    fn files(&mut self, files: &[BoundFile]) {
        for file in files {
            let name = format!("{FILE_PART} {}", file.path);
            let (shown, digest) = match &file.content {
                FileContent::Hashed { digest, bytes } => {
                    let start = digest.get(..12).unwrap_or(digest);
                    (format!("{bytes} bytes, sha256 {start}…"), digest.clone())
                }
                FileContent::Link(target) => {
                    let target = target.display().to_string();
                    let digest = hex(&Sha256::new().chain_update(&target).finalize());
                    (format!("a link out of the repository, to {target}"), digest)
                }
                FileContent::Unreadable(reason) => {
                    (format!("{} {reason}", file.path), String::new())
                }
            };
            self.0.push(Component {
                name,
                shown,
                digest,
            });
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        digits.extend([digit(byte >> 4), digit(byte & 0xF)]);
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_bound_if_it_is_not_the_default() {
        let names = |entry: ServerEntry| {
            let components = Fingerprint::of_server(&entry, &Leads::default()).components;
            let shown = components.iter();
            let shown = shown.map(|component| format!("{}={}", component.name, component.shown));
            shown.collect::<Vec<_>>()
        };
        let flags = |flag: Option<bool>| ServerEntry {
            enabled: flag,
            required: flag,
            pin: flag,
            inherit_env: flag,
            trust_annotations: flag,
            ..ServerEntry::default()
        };
        assert_eq!(names(flags(None)), [""; 0]);
        assert_eq!(
            names(flags(Some(true))),
            [
                "inherit_env=true",
                "required=true",
                "trust_annotations=true"
            ]
        );
        assert_eq!(names(flags(Some(false))), ["enabled=false", "pin=false"]);
    }

    #[test]
    fn headers_are_masked_unless_they_are_known_to_be_harmless() {
        let header = |name: &str| (name.to_owned(), Secret::new("text/plain"));
        let entry = ServerEntry {
            headers: vec![header("Accept"), header("X-Custom")],
            ..ServerEntry::default()
        };
        let components = Fingerprint::of_server(&entry, &Leads::default()).components;
        let shown: Vec<(&str, &str)> = components
            .iter()
            .map(|component| (component.name.as_str(), component.shown.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("headers.Accept", "text/plain"),
                ("headers.X-Custom", "********"),
            ]
        );
    }
}
