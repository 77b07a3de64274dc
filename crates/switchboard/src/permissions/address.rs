//! Compares the host of a URL with a rule's pattern.

use switchboard_config::text::is_invisible;
use url::{Host, Url};

use super::glob::{Case, Glob};

/// A host in a rule: `api.example.com`, `*.example.com`, `*:8443`.
#[derive(Debug, Clone)]
pub(super) struct HostPattern {
    host: Glob,
    port: Option<Port>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Port {
    Any,
    One(u16),
}

/// The result of comparing a URL with a host pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leads {
    /// The host matches.
    There,
    /// The host matches, but the rule names another port.
    OtherPort,
    /// The host does not match.
    Elsewhere,
    /// Not a URL, or an ambiguous one.
    Unclear,
}

impl HostPattern {
    /// Compiles a pattern; `None` if it does not name a host.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') && !host.is_empty() => (host, Some(port)),
            _ => (text, None),
        };
        let port = match port {
            None => None,
            Some("*") => Some(Port::Any),
            Some(port) => Some(Port::One(port.parse().ok()?)),
        };
        let is_open = host.starts_with('[') && !host.ends_with(']');
        if host.is_empty() || host.contains(['/', '@']) || is_open {
            return None;
        }
        Some(Self {
            host: Glob::new(&in_ascii(host))?,
            port,
        })
    }

    /// Compares a URL with the pattern.
    pub(super) fn compare(&self, text: &str) -> Leads {
        let is_doubtful = |character: char| {
            character.is_control()
                || character.is_whitespace()
                || character == '\\'
                || is_invisible(character)
        };
        let Ok(url) = Url::parse(text) else {
            return Leads::Unclear;
        };
        // Clients of other schemes interpret hosts in different ways.
        let is_web = matches!(url.scheme(), "http" | "https" | "ws" | "wss");
        let Some(host) = url
            .host_str()
            .filter(|_| is_web && !text.contains(is_doubtful))
        else {
            return Leads::Unclear;
        };
        // A trailing dot names the same host.
        if !self.host.matches(host.trim_end_matches('.'), Case::Ignored) {
            return Leads::Elsewhere;
        }
        let port_fits = match self.port {
            None => url.port().is_none(),
            Some(Port::Any) => true,
            Some(Port::One(port)) => url.port_or_known_default() == Some(port),
        };
        if port_fits {
            Leads::There
        } else {
            Leads::OtherPort
        }
    }

    /// Whether the rule names a port.
    pub(super) fn names_port(&self) -> bool {
        self.port.is_some()
    }
}

/// Converts each label to its ASCII form (IDNA), as in parsed URLs.
fn in_ascii(host: &str) -> String {
    let label = |label: &str| match Host::parse(label) {
        Ok(Host::Domain(ascii)) if !label.is_ascii() => ascii,
        _ => label.to_owned(),
    };
    let host = host.trim_end_matches('.');
    if host.starts_with('[') {
        // The brackets of an IPv6 address are not glob classes.
        return host.replace('[', "\\[").replace(']', "\\]");
    }
    host.split('.').map(label).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lead_where_a_careful_reader_says() {
        use Leads::{Elsewhere, OtherPort, There, Unclear};
        let check = |pattern: &str, url: &str, expected: Leads| {
            let found = HostPattern::new(pattern).expect(pattern).compare(url);
            assert_eq!(found, expected, "{pattern} on {url}");
        };
        let good = "good.example";
        check(good, "https://good.example/x", There);
        check(good, "https://GOOD.Example./x", There);
        check(good, "https://user:pass@good.example/x", There);
        check(good, "https://good.example:443/", There);
        check(good, "https://good.example:8443/", OtherPort);
        check("good.example:8443", "https://good.example:8443/", There);
        check("good.example:*", "https://good.example:1/", There);
        check(good, "https://good.example@evil.example/", Elsewhere);
        check(good, "https://evil.example/good.example", Elsewhere);
        check(good, "https://evil.example?good.example", Elsewhere);
        check(good, "https://evil.example#@good.example", Elsewhere);
        check(good, "https://good.example.evil.example/", Elsewhere);
        check(good, "https://evil.example\\@good.example/", Unclear);
        check(good, "https://good.exam\tple/", Unclear);
        check(good, " https://good.example/", Unclear);
        check(good, "https://evil.example%23.good.example/", Unclear);
        check(good, "good.example/x", Unclear);
        check(good, "//good.example/x", Unclear);
        check(good, "ftp://good.example/", Unclear);
        check(good, "file:///etc/passwd", Unclear);
        check("*.example", "https://a.b.example/", There);
        check("*.example", "https://example/", Elsewhere);
        check("*.example", "https://evil.com/.example", Elsewhere);
        check("127.0.0.1", "http://0x7f.1/", There);
        check("127.0.0.1", "http://2130706433/", There);
        check("[::1]", "http://[0:0:0:0:0:0:0:1]/", There);
        // Only a URL has characters written as escapes.
        check("%67ood.example", "https://good.example/", Elsewhere);
        check("bücher.example", "https://xn--bcher-kva.example/", There);
        check("*.bücher.example", "https://a.bücher.example/", There);
        // A Cyrillic letter makes it a different host.
        check("apple.example", "https://\u{430}pple.example/", Elsewhere);
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for text in ["", "https://a.example", "a.example/x", "a@b", "a:port", "["] {
            assert!(HostPattern::new(text).is_none(), "{text}");
        }
    }
}
