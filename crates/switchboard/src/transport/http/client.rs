//! The one pooled HTTP client of a host, and the trust it shares with WebSocket links.
//!
//! Owns what is the same for every server: connections and their pool, TLS, proxies, time to connect. It reads no
//! environment: proxies come in as values. Bodies are never decompressed (a few bytes could become gigabytes), no
//! cookies are kept, and redirects are followed one level up, where the origin can be checked.

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

/// Idle connections kept for each server.
const MOST_IDLE: usize = 32;
/// A peer that has vanished without a word is noticed after about a minute and a half.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_TRIES: u32 = 4;

/// What is the same for all servers reached over a network.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Which proxies stand between; none by default.
    pub proxy: ProxySettings,
    /// How long opening a connection may take, TLS included.
    pub connect_timeout: Duration,
    /// The largest message that is taken in.
    pub max_message_bytes: usize,
    /// Certificate authorities (DER) that are trusted besides those of the machine.
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
    /// A client with these settings. The machine's certificate authorities are read once, here.
    pub fn new(settings: HttpSettings) -> Result<Self, TransportError> {
        let tls = Arc::new(trust(&settings.extra_roots)?);
        let pooled = build(builder(&settings, &tls)?)?;
        Ok(Self {
            pooled,
            tls,
            settings: Arc::new(settings),
        })
    }

    /// The client to reach this address with: the pooled one, or one of its own for a Unix socket.
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
                    "{} is a Unix socket, which this system does not have",
                    socket.display()
                ),
            ))
        }
    }

    /// The pooled client itself, for whatever else is reached over HTTP with the same trust and proxies.
    pub fn pooled(&self) -> &reqwest::Client {
        &self.pooled
    }

    /// A client of the same trust and proxies that connects only to what this resolver finds.
    pub(crate) fn resolving_by<R: reqwest::dns::Resolve + 'static>(
        &self,
        resolver: Arc<R>,
    ) -> Result<reqwest::Client, TransportError> {
        build(builder(&self.settings, &self.tls)?.dns_resolver(resolver))
    }

    /// The names of the proxies' hosts.
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

    /// What certificates are checked against, for connections that are not HTTP.
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
        // The address may hold a password, so it stays out of the message.
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
            format!("the HTTP client cannot be set up: {}", error.without_url()),
        )
    })
}

/// Trusts what the machine trusts, and the extra authorities.
fn trust(extra_roots: &[Vec<u8>]) -> Result<ClientConfig, TransportError> {
    let invalid = |error: rustls::Error| {
        TransportError::new(
            TransportErrorKind::Invalid,
            format!("TLS cannot be set up: {error}"),
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
        // A small container has no authorities at all. Servers without TLS can be used all the same; every
        // certificate is then refused as signed by nobody known.
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
        let error = HttpClient::new(settings).expect_err("the proxy is no address");
        assert_eq!(error.kind, TransportErrorKind::Invalid);
        assert_eq!(
            error.message,
            "the address of the proxy for https connections is not valid"
        );
    }
}
