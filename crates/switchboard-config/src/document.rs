//! Parses one configuration file: servers, settings, lists, rules, hooks and profiles.
//!
//! Defines the top-level tables. [`crate::resolve`] merges the files.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Place};
use crate::entry::keys::{Key, Shape};
use crate::entry::{self, Decoded, Reader};
use crate::format::{self, Format};
use crate::mask;
use crate::policy::{self, AllowList, HookEntry, ProfileEntry, RuleEntry, ServerLists};
use crate::scope::Scope;
use crate::settings::{self, Stated};
use crate::source::{Origin, SourceFile};
use crate::tree::{Member, Node, Span};

/// Whose format a file follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Our own: all tables, unknown keys warn. In JSON, servers may be at the top level if nothing else is.
    Native,
    /// `.mcp.json` as other tools write it: `mcpServers`, or servers at the top level.
    McpJson,
    /// A settings or manifest file of another program, in which only `mcpServers` is ours.
    Embedded,
}

/// A file to parse, with its format and trust requirement.
#[derive(Debug, Clone)]
pub struct Source {
    /// Path, scope and text.
    pub file: Arc<SourceFile>,
    /// Syntax.
    pub format: Format,
    /// Known tables and keys.
    pub dialect: Dialect,
    /// Folder of the plugin; `None` for other files.
    pub plugin_root: Option<PathBuf>,
    /// Whether the user must approve the file before it takes effect.
    pub needs_trust: bool,
}

/// A parsed file.
#[derive(Debug)]
pub struct Document {
    /// The parsed source.
    pub source: Source,
    pub(crate) servers: Vec<RawServer>,
    pub(crate) settings: Section<Stated>,
    pub(crate) lists: Section<ServerLists>,
    pub(crate) rules: Section<Vec<RuleEntry>>,
    pub(crate) hooks: Section<Vec<HookEntry>>,
    pub(crate) profiles: Section<Vec<ProfileEntry>>,
    pub(crate) enterprise_mode: Option<(EnterpriseMode, Origin)>,
    pub(crate) cloud_url: Option<(String, Origin)>,
    /// Whether the file has a usable syntax tree.
    pub(crate) readable: bool,
}

/// A part of a file, with the text that its approval is bound to.
#[derive(Debug, Default)]
pub(crate) struct Section<T> {
    pub(crate) content: T,
    pub(crate) span: Option<Span>,
}

impl<T: Default> Section<T> {
    pub(crate) fn take(&mut self) -> T {
        std::mem::take(&mut self.content)
    }
}

#[derive(Debug)]
pub(crate) struct RawServer {
    pub(crate) name: String,
    pub(crate) name_span: Span,
    pub(crate) decoded: Decoded,
}

/// How an enterprise file affects the other scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnterpriseMode {
    /// Other scopes are not loaded.
    #[default]
    Exclusive,
    /// Its entries win, its lists apply to every scope, and cloud entries are not loaded.
    Merge,
}

impl EnterpriseMode {
    const NAMES: &[&str] = &["exclusive", "merge"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "exclusive" => Some(EnterpriseMode::Exclusive),
            "merge" => Some(EnterpriseMode::Merge),
            _ => None,
        }
    }
}

impl Document {
    /// Parses a file; findings are added to `diagnostics`.
    pub fn read(source: Source, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let file = Arc::clone(&source.file);
        let mut document = Self {
            source,
            servers: Vec::new(),
            settings: Section::default(),
            lists: Section::default(),
            rules: Section::default(),
            hooks: Section::default(),
            profiles: Section::default(),
            enterprise_mode: None,
            cloud_url: None,
            readable: false,
        };
        let before = diagnostics.len();
        let root = format::parse(&file, document.source.format, diagnostics);
        let broken_at = syntax_errors(diagnostics.get(before..).unwrap_or_default());
        if let Some(root) = &root {
            document.root(root, &mut Reader::new(&file, diagnostics));
        }
        document.distrust_what_is_broken(&broken_at);
        document
    }

    fn root(&mut self, root: &Node<'_>, reader: &mut Reader<'_, '_>) {
        let Some(members) = root.as_table() else {
            let message = format!("the file must hold a table, but holds {}", root.kind());
            let hint = "start it with `{`";
            reader.error("wrong-type", root.span, message, hint);
            return;
        };
        self.readable = true;
        let may_be_flat = match self.source.dialect {
            Dialect::McpJson => true,
            // In our own files, a known table is not a server.
            Dialect::Native => {
                let ours = |member: &Member<'_>| ROOT_KEYS.iter().any(|key| key.name == member.key);
                self.source.format == Format::Json && !members.iter().any(ours)
            }
            Dialect::Embedded => false,
        };
        if may_be_flat && is_flat(members) {
            return self.servers(root, reader);
        }
        for member in members {
            self.member(member, reader);
        }
    }

    /// After a syntax error the parser may have read only part of what was meant. Disables the server that contains the
    /// error and all profiles, and makes lists that may be incomplete reject every server.
    fn distrust_what_is_broken(&mut self, broken_at: &[Span]) {
        let text = self.source.file.text();
        // Not for a project's file, which could otherwise lock the user out.
        let has_lists = || {
            !self.source.needs_trust
                && ["mcp_server_allowlist", "mcp_server_denylist"]
                    .iter()
                    .any(|key| text.contains(key))
        };
        if let Some(span) = broken_at.first().filter(|_| has_lists()) {
            let origin = self.origin(*span);
            self.lists.content.allow = Some(AllowList {
                patterns: Vec::new(),
                origin,
            });
        }
        for span in broken_at {
            let line = self.source.file.position(span.start).line;
            for profile in &mut self.profiles.content {
                profile
                    .faults
                    .push(format!("syntax error on line {line} of its file"));
            }
            // Servers are in file order, each extending to the next.
            let after = self
                .servers
                .partition_point(|server| server.name_span.start <= span.start);
            if let Some(server) = after.checked_sub(1).and_then(|at| self.servers.get_mut(at)) {
                server
                    .decoded
                    .faults
                    .push(format!("syntax error on line {line}"));
            }
        }
    }

    fn member(&mut self, member: &Member<'_>, reader: &mut Reader<'_, '_>) {
        let node = &member.value;
        let key = member.key.as_ref();
        if is_server_key(key) {
            return self.servers(node, reader);
        }
        if self.source.dialect != Dialect::Native {
            // `inputs` and other keys belong to the other program.
            return;
        }
        // An approval is bound to these bytes, so they must cover the whole member.
        let span = Some(member.extent());
        match key {
            "settings" => {
                self.settings = Section {
                    content: settings::decode(node, reader),
                    span,
                }
            }
            "security" => {
                self.lists = Section {
                    content: policy::server_lists(node, reader),
                    span,
                }
            }
            "permissions" => {
                self.rules = Section {
                    content: policy::rules(node, reader),
                    span,
                }
            }
            "hooks" => {
                self.hooks = Section {
                    content: policy::hooks(node, reader),
                    span,
                }
            }
            "profiles" => {
                self.profiles = Section {
                    content: policy::profiles(node, reader),
                    span,
                }
            }
            "mode" => {
                let mode = reader.word(key, node, EnterpriseMode::NAMES, EnterpriseMode::from_name);
                self.enterprise_mode = mode.map(|mode| (mode, reader.origin(node.span)));
            }
            "cloud" => self.cloud(node, reader),
            // For editors.
            "$schema" => {}
            _ => reader.unknown_key(member, ROOT_KEYS.iter().map(|key| key.name)),
        }
    }

    fn cloud(&mut self, node: &Node<'_>, reader: &mut Reader<'_, '_>) {
        for member in reader.table("cloud", node).unwrap_or_default() {
            if member.key != "url" {
                reader.unknown_key(member, ["url"]);
                continue;
            }
            let Some(url) = reader.text("cloud.url", &member.value) else {
                continue;
            };
            let address = url::Url::parse(&url).ok();
            let safe = address.is_some_and(|address| match address.scheme() {
                "https" => true,
                "http" => matches!(
                    address.host_str(),
                    Some("127.0.0.1" | "localhost" | "[::1]")
                ),
                _ => false,
            });
            if safe {
                self.cloud_url = Some((url, reader.origin(member.value.span)));
            } else {
                let shown = mask::url(&url);
                let message = format!("`cloud.url` must be an https address, but is \"{shown}\"");
                reader.error("bad-value", member.value.span, message, "write https://…");
            }
        }
    }

    /// Reads servers from a table by name, or from a list of tables with a `name`.
    fn servers(&mut self, node: &Node<'_>, reader: &mut Reader<'_, '_>) {
        // A file may have several tables of servers; a name must be unique across them.
        let earlier = self.servers.iter().map(|server| server.name.clone());
        let mut seen: HashSet<Cow<'_, str>> = earlier.map(Cow::Owned).collect();
        let named_itself = node.get("name").is_some_and(|name| name.as_str().is_some());
        if node.as_array().is_some() || named_itself {
            for element in node.as_array().unwrap_or(std::slice::from_ref(node)) {
                let Some(name) = element.get("name").filter(|name| name.as_str().is_some()) else {
                    let hint = "add name = \"…\"";
                    reader.error(
                        "missing-key",
                        element.span,
                        "a server in a list needs a `name`",
                        hint,
                    );
                    continue;
                };
                self.server(
                    name.as_str().unwrap_or_default(),
                    name.span,
                    element,
                    &mut seen,
                    reader,
                );
            }
            return;
        }
        let members = reader.table("mcp_servers", node).unwrap_or_default();
        self.servers.reserve(members.len());
        seen.reserve(members.len());
        for member in members {
            self.server(
                &member.key,
                member.key_span,
                &member.value,
                &mut seen,
                reader,
            );
        }
    }

    fn server<'n>(
        &mut self,
        name: &'n str,
        name_span: Span,
        node: &Node<'_>,
        seen: &mut HashSet<Cow<'n, str>>,
        reader: &mut Reader<'_, '_>,
    ) {
        if !seen.insert(Cow::Borrowed(name)) {
            let message = format!(
                "server `{name}` is defined twice in this file; the first definition is used"
            );
            reader.error(
                "duplicate-name",
                name_span,
                message,
                "remove or rename one of the two",
            );
            return;
        }
        let decoded = entry::decode(name, name_span, node, reader);
        self.servers.push(RawServer {
            name: name.to_owned(),
            name_span,
            decoded,
        });
    }

    /// The mode of this file as the enterprise file.
    pub(crate) fn mode(&self) -> EnterpriseMode {
        self.enterprise_mode
            .as_ref()
            .map_or_else(EnterpriseMode::default, |(mode, _)| *mode)
    }

    pub(crate) fn scope(&self) -> Scope {
        self.source.file.scope()
    }

    pub(crate) fn origin(&self, span: Span) -> Origin {
        Origin {
            file: Arc::clone(&self.source.file),
            span,
        }
    }
}

fn syntax_errors(diagnostics: &[Diagnostic]) -> Vec<Span> {
    let span = |diagnostic: &Diagnostic| match &diagnostic.place {
        Place::At(origin) if diagnostic.code == "syntax" => Some(origin.span),
        _ => None,
    };
    diagnostics.iter().filter_map(span).collect()
}

pub(crate) fn is_server_key(key: &str) -> bool {
    matches!(key, "mcp_servers" | "mcpServers" | "mcp-servers")
}

/// Whether the top level of a `.mcp.json` is the map of servers itself.
fn is_flat(members: &[Member<'_>]) -> bool {
    let looks_like_a_server = |node: &Node<'_>| {
        ["command", "url", "type", "transport"]
            .iter()
            .any(|key| node.get(key).is_some())
    };
    !members.iter().any(|member| is_server_key(&member.key))
        && members
            .iter()
            .any(|member| looks_like_a_server(&member.value))
}

/// Top-level tables of our own files.
pub(crate) const ROOT_KEYS: &[Key] = &[
    Key {
        name: "mcp_servers",
        shape: Shape::Servers,
        about: "The servers, by name. JSON files write `mcpServers`.",
    },
    Key {
        name: "settings",
        shape: Shape::Settings,
        about: "Scalar settings.",
    },
    Key {
        name: "security",
        shape: Shape::Table(policy::SECURITY_KEYS),
        about: "Which servers may connect at all.",
    },
    Key {
        name: "permissions",
        shape: Shape::Rules,
        about: "Which calls need consent.",
    },
    Key {
        name: "hooks",
        shape: Shape::Hooks,
        about: "Programs that run before and after calls.",
    },
    Key {
        name: "profiles",
        shape: Shape::MapOf(policy::PROFILE_KEYS),
        about: "Selections of servers and tools, each an endpoint of the gateway.",
    },
    Key {
        name: "cloud",
        shape: Shape::Table(CLOUD_KEYS),
        about: "Source of additional servers.",
    },
    Key {
        name: "mode",
        shape: Shape::OneOf(EnterpriseMode::NAMES),
        about: "In the enterprise file: whether other scopes are loaded.",
    },
];

const CLOUD_KEYS: &[Key] = &[Key {
    name: "url",
    shape: Shape::Text,
    about: "URL of a document in the format of `.mcp.json`.",
}];
