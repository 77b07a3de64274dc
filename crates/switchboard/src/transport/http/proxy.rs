//! Proxy settings, and the proxy for an address.
//!
//! HTTP looks proxies up inside its client, WebSocket here; both use the same rules of the same library.

use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use switchboard_config::secret::Secret;
use tokio_tungstenite::tungstenite::http::Uri;
use url::Position;

use super::address::Address;

/// Proxies, as the usual environment variables describe them. Not used for Unix sockets.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    /// For `http` and `ws` addresses. May contain a password.
    pub http: Option<Secret>,
    /// For `https` and `wss` addresses.
    pub https: Option<Secret>,
    /// For addresses without a more specific proxy.
    pub all: Option<Secret>,
    /// Hosts, domains and networks reached directly, separated by commas.
    pub except: Option<String>,
}

impl ProxySettings {
    /// Reads variables such as `HTTPS_PROXY` and `NO_PROXY`, lowercase names first.
    ///
    /// Does not read the environment itself; `variable` looks a name up.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let find = |name: &str| {
            variable(name)
                .or_else(|| variable(&name.to_ascii_uppercase()))
                .filter(|value| !value.trim().is_empty())
        };
        Self {
            http: find("http_proxy").map(Secret::new),
            https: find("https_proxy").map(Secret::new),
            all: find("all_proxy").map(Secret::new),
            except: find("no_proxy"),
        }
    }

    /// Whether a proxy applies to an address.
    pub(in crate::transport) fn applies_to(&self, address: &Address) -> bool {
        self.on_the_way_to(address).is_some()
    }

    /// The proxy for an address; `None` for a direct connection.
    pub(in crate::transport) fn on_the_way_to(&self, address: &Address) -> Option<Intercept> {
        let named = |proxy: &Option<Secret>| {
            let text = proxy.as_ref().map(Secret::expose);
            text.unwrap_or_default().to_owned()
        };
        if address.socket().is_some() {
            return None;
        }
        let url = address.url();
        let scheme = match url.scheme() {
            "https" | "wss" => "https",
            _ => "http",
        };
        let place = &url[Position::BeforeHost..Position::AfterPort];
        let target: Uri = format!("{scheme}://{place}/").parse().ok()?;
        let matcher = Matcher::builder()
            .http(named(&self.http))
            .https(named(&self.https))
            .all(named(&self.all))
            .no(self.except.clone().unwrap_or_default())
            .build();
        matcher.intercept(&target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_come_from_variables_by_their_usual_names() {
        let settings = ProxySettings::from_variables(|name| match name {
            "https_proxy" => Some("http://lower:1".to_owned()),
            "HTTPS_PROXY" => Some("http://upper:1".to_owned()),
            "ALL_PROXY" => Some("http://all:1".to_owned()),
            "HTTP_PROXY" => Some(" ".to_owned()),
            "NO_PROXY" => Some("localhost,.internal".to_owned()),
            _ => None,
        });
        assert_eq!(settings.http, None);
        assert_eq!(settings.https, Some(Secret::new("http://lower:1")));
        assert_eq!(settings.all, Some(Secret::new("http://all:1")));
        assert_eq!(settings.except.as_deref(), Some("localhost,.internal"));
    }

    #[test]
    fn a_proxy_applies_unless_the_host_is_excepted() {
        let settings = ProxySettings {
            https: Some(Secret::new("http://proxy:1")),
            except: Some("localhost, .internal,10.0.0.1,192.168.0.0/16".to_owned()),
            ..ProxySettings::default()
        };
        for (url, expected) in [
            ("https://example.com/mcp", true),
            ("http://example.com/mcp", false),
            ("https://localhost:1/mcp", false),
            ("https://a.internal/mcp", false),
            ("https://notinternal/mcp", true),
            ("https://10.0.0.1/mcp", false),
            ("https://192.168.7.7/mcp", false),
            ("wss://example.com/mcp", true),
            ("ws://example.com/mcp", false),
            ("wss://a.internal/mcp", false),
        ] {
            let address = Address::parse(url, &["http", "https", "ws", "wss"]).unwrap();
            assert_eq!(settings.applies_to(&address), expected, "{url}");
        }
    }
}
