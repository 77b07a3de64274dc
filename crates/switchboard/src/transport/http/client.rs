//! The pooled HTTP client of a host, and the trust roots it shares with WebSocket links.
//!
//! Owns the connection pool, TLS, proxies and connect timeout, which are the same for every server. It reads no
//! environment variables: proxies are passed in. Bodies are never decompressed (a few bytes could become gigabytes),
//! cookies are not stored, and redirects are followed one level up, where the origin can be checked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{NoProxy, Proxy, redirect};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use switchboard_protocol::Limits;

use super::address::Address;
use super::proxy::ProxySettings;
use super::trusted::Trusted;
use crate::transport::{TransportError, TransportErrorKind};

/// Idle connections per server.
const MOST_IDLE: usize = 32;
/// A peer that vanished is detected after about 90 seconds.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_TRIES: u32 = 4;

/// Settings common to all servers reached over a network.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Proxies; none by default.
    pub proxy: ProxySettings,
    /// Timeout for opening a connection, TLS included.
    pub connect_timeout: Duration,
    /// Maximum size of a received message, in bytes.
    pub max_message_bytes: usize,
    /// Certificate authorities (DER) trusted in addition to the system's.
    pub extra_roots: Vec<Vec<u8>>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            proxy: ProxySettings::default(),
            connect_timeout: Duration::from_secs(20),
            max_message_bytes: Limits::DEFAULT.max_bytes,
            extra_roots: Vec::new(),
        }
    }
}

/// The pooled client that all HTTP links of a host share, and the trust roots of its WebSocket links. Cheap to clone.
#[derive(Clone)]
pub struct HttpClient {
    pooled: reqwest::Client,
    tls: Arc<ClientConfig>,
    settings: Arc<HttpSettings>,
}

impl HttpClient {
    /// Creates a client with these settings. Reads the system's certificate authorities once.
    pub fn new(settings: HttpSettings) -> Result<Self, TransportError> {
        let tls = Arc::new(trust(&settings.extra_roots)?);
        let pooled = build(builder(&settings, &tls)?)?;
        Ok(Self {
            pooled,
            tls,
            settings: Arc::new(settings),
        })
    }

    /// The client for this address: the pooled one, or a separate one for a Unix socket.
    pub(super) fn for_address(&self, address: &Address) -> Result<reqwest::Client, TransportError> {
        let Some(socket) = address.socket() else {
            return Ok(self.pooled.clone());
        };
        #[cfg(unix)]
        {
            build(builder(&self.settings, &self.tls)?.unix_socket(socket))
        }
        #[cfg(not(unix))]
        {
            Err(TransportError::new(
                TransportErrorKind::Invalid,
                format!(
                    "{} is a Unix socket, which this system does not support",
                    socket.display()
                ),
            ))
        }
    }

    /// The pooled client, for other HTTP requests with the same trust roots and proxies.
    pub fn pooled(&self) -> &reqwest::Client {
        &self.pooled
    }

    /// A client with the same trust roots and proxies that connects only to addresses from this resolver.
    pub(crate) fn resolving_by<R: reqwest::dns::Resolve + 'static>(
        &self,
        resolver: Arc<R>,
    ) -> Result<reqwest::Client, TransportError> {
        build(builder(&self.settings, &self.tls)?.dns_resolver(resolver))
    }

    /// Host names of the proxies.
    pub(crate) fn proxy_hosts(&self) -> Vec<String> {
        let proxy = &self.settings.proxy;
        let addresses = [&proxy.http, &proxy.https, &proxy.all];
        addresses
            .into_iter()
            .flatten()
            .filter_map(|address| {
                let url = url::Url::parse(address.expose()).ok()?;
                url.host_str().map(str::to_owned)
            })
            .collect()
    }

    /// TLS configuration, for connections that are not HTTP.
    pub(in crate::transport) fn tls(&self) -> &Arc<ClientConfig> {
        &self.tls
    }

    pub(in crate::transport) fn settings(&self) -> &HttpSettings {
        &self.settings
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpClient")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

type MakeProxy = fn(&str) -> reqwest::Result<Proxy>;

fn builder(
    settings: &HttpSettings,
    tls: &ClientConfig,
) -> Result<reqwest::ClientBuilder, TransportError> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(settings.connect_timeout)
        .pool_max_idle_per_host(MOST_IDLE)
        .tcp_keepalive(KEEPALIVE)
        .tcp_keepalive_interval(KEEPALIVE_INTERVAL)
        .tcp_keepalive_retries(KEEPALIVE_TRIES)
        .http2_keep_alive_interval(KEEPALIVE)
        .http2_keep_alive_timeout(KEEPALIVE)
        .no_proxy();
    let except = settings
        .proxy
        .except
        .as_deref()
        .and_then(NoProxy::from_string);
    let proxies: [(_, MakeProxy, _); 3] = [
        (&settings.proxy.http, |url| Proxy::http(url), "http"),
        (&settings.proxy.https, |url| Proxy::https(url), "https"),
        (&settings.proxy.all, |url| Proxy::all(url), "all"),
    ];
    for (address, proxy, which) in proxies {
        let Some(address) = address else { continue };
        // The address may contain a password, so it is not part of the message.
        let proxy = proxy(address.expose()).map_err(|_| {
            TransportError::new(
                TransportErrorKind::Invalid,
                format!("the address of the proxy for {which} connections is not valid"),
            )
        })?;
        builder = builder.proxy(proxy.no_proxy(except.clone()));
    }
    Ok(builder)
}

fn build(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, TransportError> {
    builder.build().map_err(|error| {
        TransportError::new(
            TransportErrorKind::Invalid,
            format!("cannot set up the HTTP client: {}", error.without_url()),
        )
    })
}

/// Trusts the system's authorities and the extra ones.
fn trust(extra_roots: &[Vec<u8>]) -> Result<ClientConfig, TransportError> {
    let invalid = |error: rustls::Error| {
        TransportError::new(
            TransportErrorKind::Invalid,
            format!("cannot set up TLS: {error}"),
        )
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(invalid)?;
    let named: Vec<CertificateDer<'static>> = extra_roots
        .iter()
        .map(|root| CertificateDer::from(root.clone()))
        .collect();
    let verifier = if named.is_empty() {
        Verifier::new(provider)
    } else {
        Verifier::new_with_extra_roots(named.iter().cloned(), provider)
    };
    Ok(match verifier {
        Ok(below) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Trusted { below, named }))
            .with_no_client_auth(),
        // A small container has no authorities at all. Servers without TLS still work; every certificate is rejected as
        // signed by an unknown authority.
        Err(_) if extra_roots.is_empty() => builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth(),
        Err(error) => return Err(invalid(error)),
    })
}

#[cfg(test)]
mod tests {
    use switchboard_config::secret::Secret;

    use super::*;

    #[test]
    fn a_bad_proxy_is_named_without_its_password() {
        let settings = HttpSettings {
            proxy: ProxySettings {
                https: Some(Secret::new("http://user:hunter2@[bad")),
                ..ProxySettings::default()
            },
            ..HttpSettings::default()
        };
        let error = HttpClient::new(settings).expect_err("the proxy is not a valid address");
        assert_eq!(error.kind, TransportErrorKind::Invalid);
        assert_eq!(
            error.message,
            "the address of the proxy for https connections is not valid"
        );
    }
}
