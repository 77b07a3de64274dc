//! Server allow and deny lists (`[security]`).

use globset::GlobMatcher;
use url::Url;

use super::glob;
use crate::entry::keys::{Key, Shape};
use crate::entry::{Reader, ServerEntry};
use crate::source::Origin;
use crate::tree::{Member, Node};

/// Server lists of one file.
#[derive(Debug, Clone, Default)]
pub struct ServerLists {
    /// If present, only matching servers may connect. A list with only invalid patterns still counts, and rejects every
    /// server.
    pub allow: Option<AllowList>,
    /// Servers that may not connect. Takes precedence over `allow`.
    pub deny: Vec<ServerPattern>,
}

/// An allow list with its position.
#[derive(Debug, Clone)]
pub struct AllowList {
    /// A server must match at least one.
    pub patterns: Vec<ServerPattern>,
    /// Position of the list.
    pub origin: Origin,
}

/// A pattern of a server list.
#[derive(Debug, Clone)]
pub struct ServerPattern {
    /// As written.
    pub text: String,
    /// Position of the pattern.
    pub origin: Origin,
    kind: ListKind,
    target: Target,
}

/// Kind of list that a pattern belongs to. Ambiguous patterns are interpreted against the server: denying too much is
/// safe, allowing too much is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListKind {
    Allow,
    Deny,
}

#[derive(Debug, Clone)]
enum Target {
    Name(GlobMatcher),
    Command(GlobMatcher),
    /// A word in a deny list: the name of a server, or of its program.
    NameOrCommand(GlobMatcher),
    Url(Box<UrlPattern>),
}

/// A URL glob, matched part by part: a `*` in the host must not match into the path, or
/// `https://evil.example/.corp.example/` would match `https://*.corp.example/`.
#[derive(Debug, Clone)]
struct UrlPattern {
    scheme: GlobMatcher,
    host: GlobMatcher,
    port: Option<String>,
    path: GlobMatcher,
}

impl ServerPattern {
    /// Whether the pattern matches this server. The entry must be expanded.
    pub fn matches(&self, name: &str, entry: &ServerEntry) -> bool {
        match &self.target {
            Target::Name(glob) => glob.is_match(name),
            Target::Command(glob) => command_matches(glob, self.kind, entry),
            Target::NameOrCommand(glob) => {
                glob.is_match(name) || command_matches(glob, self.kind, entry)
            }
            Target::Url(pattern) => entry
                .url
                .as_deref()
                .is_some_and(|url| pattern.matches(url, self.kind)),
        }
    }
}

impl UrlPattern {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            // A pattern without a path matches every path.
            None => (rest, "/*"),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port.to_owned())),
            _ => (authority, None),
        };
        Some(Self {
            scheme: glob(scheme)?,
            host: glob(&in_ascii(host))?,
            port,
            path: glob(path)?,
        })
    }

    fn matches(&self, url: &str, kind: ListKind) -> bool {
        let Ok(url) = Url::parse(url) else {
            return false;
        };
        let denies = kind == ListKind::Deny;
        let port = url.port_or_known_default().map(|port| port.to_string());
        // A trailing dot denotes the same host.
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        self.scheme.is_match(url.scheme())
            && self.host.is_match(host)
            && (self.path.is_match(url.path())
                || (denies && self.path.is_match(unescaped(url.path()))))
            && match self.port.as_deref() {
                None => denies || url.port().is_none(),
                Some("*") => true,
                wanted => wanted == port.as_deref(),
            }
    }
}

/// Decodes percent escapes in a path, as servers do.
fn unescaped(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after.get(..2).map(|digits| u8::from_str_radix(digits, 16));
        if let Some(Ok(byte)) = code {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(b'%');
            rest = after;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Converts each label of a host pattern to ASCII (IDNA), as the compared hosts are.
fn in_ascii(host: &str) -> String {
    let label = |label: &str| match url::Host::parse(label) {
        Ok(url::Host::Domain(ascii)) if !label.is_ascii() => ascii,
        _ => label.to_owned(),
    };
    let labels: Vec<String> = host.trim_end_matches('.').split('.').map(label).collect();
    labels.join(".")
}

fn command_matches(glob: &GlobMatcher, kind: ListKind, entry: &ServerEntry) -> bool {
    let Some(command) = entry.command.as_deref() else {
        return false;
    };
    let line = |program: &str| {
        std::iter::once(program)
            .chain(entry.args.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let as_written = |program: &str| glob.is_match(program) || glob.is_match(line(program));
    match kind {
        // `/usr/bin/*` must not match `/usr/bin/../../tmp/x`, nor `npx` match `./npx`.
        ListKind::Allow => {
            !command.split(['/', '\\']).any(|part| part == "..") && as_written(command)
        }
        ListKind::Deny => {
            let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
            as_written(command) || as_written(program)
        }
    }
}

pub(crate) fn server_lists(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> ServerLists {
    let mut lists = ServerLists::default();
    for member in reader.table("security", node).unwrap_or_default() {
        match Reader::normal(&member.key).as_ref() {
            "mcp_server_allowlist" => {
                let patterns = patterns(member, ListKind::Allow, reader);
                let stated_empty = member.value.as_array().is_some_and(<[_]>::is_empty);
                let origin = reader.origin(member.key_span);
                lists.allow = (!stated_empty).then_some(AllowList { patterns, origin });
            }
            "mcp_server_denylist" => lists.deny = patterns(member, ListKind::Deny, reader),
            _ => reader.unknown_key(member, SECURITY_KEYS.iter().map(|key| key.name)),
        }
    }
    lists
}

fn patterns(
    member: &Member<'_>,
    kind: ListKind,
    reader: &mut Reader<'_, '_>,
) -> Vec<ServerPattern> {
    let Some(elements) = member.value.as_array() else {
        reader.texts(&member.key, &member.value);
        return Vec::new();
    };
    elements
        .iter()
        .filter_map(|element| pattern(&member.key, element, kind, reader))
        .collect()
}

fn pattern(
    key: &str,
    node: &Node<'_>,
    kind: ListKind,
    reader: &mut Reader<'_, '_>,
) -> Option<ServerPattern> {
    let (word, text) = match node.as_table() {
        Some([member]) if matches!(member.key.as_ref(), "name" | "command" | "url") => {
            (Some(member.key.as_ref()), reader.text(key, &member.value)?)
        }
        Some(_) => {
            let hint = "write { name = \"…\" }, { command = \"…\" } or { url = \"…\" }";
            reader.error(
                "bad-value",
                node.span,
                format!("a table in `{key}` needs exactly one of name, command, url"),
                hint,
            );
            return None;
        }
        None => (None, reader.text(key, node)?),
    };
    let target = match word {
        Some("name") => glob(&text).map(Target::Name),
        Some("command") => glob(&text).map(Target::Command),
        Some(_) => UrlPattern::parse(&text).map(|pattern| Target::Url(Box::new(pattern))),
        None if text.contains("://") => {
            UrlPattern::parse(&text).map(|pattern| Target::Url(Box::new(pattern)))
        }
        None if text.contains(['/', ' ']) => glob(&text).map(Target::Command),
        None if kind == ListKind::Deny => glob(&text).map(Target::NameOrCommand),
        None => glob(&text).map(Target::Name),
    };
    let Some(target) = target.filter(|_| !text.is_empty()) else {
        reader.error(
            "bad-pattern",
            node.span,
            format!("`{key}` has the invalid pattern \"{text}\""),
            "write a glob such as \"github\", \"npx *\" or \"https://*.example.com/*\"",
        );
        return None;
    };
    Some(ServerPattern {
        text,
        origin: reader.origin(node.span),
        kind,
        target,
    })
}

pub(crate) const SECURITY_KEYS: &[Key] = &[
    Key {
        name: "mcp_server_allowlist",
        shape: Shape::PatternList,
        about: "If not empty, the only servers that may connect.",
    },
    Key {
        name: "mcp_server_denylist",
        shape: Shape::PatternList,
        about: "Servers that may not connect.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{self, Format};
    use crate::scope::Scope;
    use crate::source::SourceFile;

    fn lists(text: &str) -> (ServerLists, Vec<String>) {
        let file = SourceFile::new("a.toml", Scope::User, text);
        let mut diagnostics = Vec::new();
        let root = format::parse(&file, Format::Toml, &mut diagnostics).unwrap();
        let lists = server_lists(&root, &mut Reader::new(&file, &mut diagnostics));
        (lists, diagnostics.iter().map(ToString::to_string).collect())
    }

    fn server(command: Option<&str>, args: &[&str], url: Option<&str>) -> ServerEntry {
        ServerEntry {
            command: command.map(String::from),
            args: args.iter().map(ToString::to_string).collect(),
            url: url.map(String::from),
            ..ServerEntry::default()
        }
    }

    #[test]
    fn patterns_match_names_commands_and_urls() {
        let npx = server(Some("/usr/bin/npx"), &["-y", "@evil/server"], None);
        let remote = |url| server(None, &[], Some(url));
        let check = |pattern: &str, name: &str, entry: &ServerEntry, expected: bool| {
            let (lists, problems) = lists(&format!("mcp_server_allowlist = [{pattern}]"));
            assert_eq!(problems, Vec::<String>::new());
            assert_eq!(
                lists.allow.unwrap().patterns[0].matches(name, entry),
                expected,
                "{pattern} on {name} {entry:?}"
            );
        };
        check("'git*'", "github", &npx, true);
        check("'git*'", "GitHub", &npx, true);
        check("'git'", "github", &npx, false);
        // A word in an allow list is a name; otherwise a script called `github` would match.
        check("'npx'", "x", &npx, false);
        check("{ command = 'npx' }", "x", &npx, false);
        check(
            "{ command = 'npx' }",
            "x",
            &server(Some("npx"), &[], None),
            true,
        );
        check(
            "{ command = '/usr/bin/*' }",
            "x",
            &server(Some("/usr/bin/../../tmp/npx"), &[], None),
            false,
        );
        check("{ command = '/usr/bin/*' }", "x", &npx, true);
        check("'* @evil/*'", "x", &npx, true);
        check("{ name = '*' }", "anything", &npx, true);
        check(
            "'https://*.corp.example/*'",
            "x",
            &remote("https://mcp.corp.example/mcp"),
            true,
        );
        check(
            "'https://*.corp.example'",
            "x",
            &remote("https://mcp.corp.example/a/b?c"),
            true,
        );
        check(
            "'https://*.corp.example/*'",
            "x",
            &remote("https://evil.example/.corp.example/"),
            false,
        );
        check(
            "'https://*.corp.example/*'",
            "x",
            &remote("https://a.corp.example@evil.example/"),
            false,
        );
        check(
            "'https://*.corp.example/*'",
            "x",
            &remote("http://a.corp.example/"),
            false,
        );
        check(
            "'https://*.corp.example/*'",
            "x",
            &remote("https://a.corp.example:8443/"),
            false,
        );
        check(
            "'https://*.corp.example:8443/*'",
            "x",
            &remote("https://a.corp.example:8443/"),
            true,
        );
        check(
            "'http*://localhost:*/*'",
            "x",
            &remote("http://localhost:3000/mcp"),
            true,
        );
        check(
            "'https://a.example/mcp'",
            "x",
            &remote("https://a.example/other"),
            false,
        );
    }

    #[test]
    fn a_word_in_a_deny_list_also_means_a_program() {
        let (lists, _) = lists("mcp_server_denylist = ['npx', 'bad*']");
        let npx = server(Some("npx"), &[], None);
        let other = server(Some("uvx"), &[], None);
        assert!(lists.deny[0].matches("anything", &npx));
        assert!(!lists.deny[0].matches("anything", &other));
        assert!(lists.deny[1].matches("bad-one", &other));
    }

    #[test]
    fn a_deny_list_is_not_escaped_by_another_spelling() {
        let check = |pattern: &str, entry: &ServerEntry, expected: bool| {
            let (lists, problems) = lists(&format!("mcp_server_denylist = ['{pattern}']"));
            assert_eq!(problems, Vec::<String>::new());
            assert_eq!(
                lists.deny[0].matches("x", entry),
                expected,
                "{pattern} on {entry:?}"
            );
        };
        let remote = |url| server(None, &[], Some(url));
        for url in [
            "https://evil.example/mcp",
            "https://EVIL.example:8443/mcp",
            "https://evil.example./mcp",
            "https://good.example@evil.example/mcp",
            "https:\\\\evil.example\\mcp",
            "https://evil%2eexample/mcp",
            "https://evil。example/mcp",
        ] {
            check("https://evil.example/*", &remote(url), true);
        }
        check(
            "https://evil.example:443",
            &remote("https://evil.example:444/"),
            false,
        );
        check(
            "https://a.example/admin*",
            &remote("https://a.example/%61dmin"),
            true,
        );
        check(
            "https://bücher.example",
            &remote("https://xn--bcher-kva.example/"),
            true,
        );
        check(
            "https://*.Bücher.example.",
            &remote("https://a.bücher.example/"),
            true,
        );
        check(
            "npx *",
            &server(Some("/usr/bin/npx"), &["-y", "x"], None),
            true,
        );
        check("npx", &server(Some("./npx"), &[], None), true);
        check("npx", &server(Some("uvx"), &["npx"], None), false);
    }

    #[test]
    fn bad_patterns_are_reported_with_their_place() {
        let (lists, problems) =
            lists("mcp_server_allowlist = ['[', 5, { colour = 'x' }, '', 'fine']");
        assert_eq!(lists.allow.unwrap().patterns.len(), 1);
        assert_eq!(problems.len(), 4, "{problems:#?}");
        assert!(
            problems
                .iter()
                .all(|problem| problem.starts_with("a.toml:1:")),
            "{problems:#?}"
        );
    }
}
