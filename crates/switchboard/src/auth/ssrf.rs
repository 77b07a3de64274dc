//! SSRF policy: which addresses an untrusted server may make the host connect to.
//!
//! Discovery follows URLs from untrusted servers. A public server must not direct the host to a router, a database or a
//! cloud metadata service; a server on loopback may name another loopback port. The policy derives from the server's
//! own address and applies to every address that is connected to.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use url::{Host, Origin, Url};

/// Network zone of an address, ordered from far to near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Public internet.
    Public,
    /// Private network.
    Private,
    /// Loopback.
    Loopback,
    /// Never a legitimate target: link-local (which includes cloud metadata services), multicast, reserved.
    Nowhere,
}

impl Place {
    /// Classifies an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Place {
    let [first, second, third, _] = address.octets();
    match (first, second, third) {
        (127, ..) => Place::Loopback,
        // The last two: carrier-grade NAT and benchmarking.
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) | (198, 18..=19, _) => {
            Place::Private
        }
        // "This" network, link-local, protocol assignments, documentation, multicast and reserved above it.
        (0 | 224..=255, ..)
        | (169, 254, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 51, 100)
        | (203, 0, 113) => Place::Nowhere,
        _ => Place::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Place {
    if address == Ipv6Addr::LOCALHOST {
        return Place::Loopback;
    }
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // IPv6 addresses with an embedded IPv4 address: mapped, compatible, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        [0x2002, high, low, ..] => embedded(high, low),
        [0xfc00..=0xfdff, ..] | [0x64, 0xff9b, 1, ..] => Place::Private,
        // Documentation ranges, and Teredo, which hides its target.
        [0x2001, 0x0 | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Place::Nowhere,
        [0x2000..=0x3fff, ..] => Place::Public,
        _ => Place::Nowhere,
    }
}

/// DNS resolution and address classification; replaced in tests.
pub trait Network: fmt::Debug + Send + Sync + 'static {
    /// Resolves a host name.
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;

    /// Classifies an address.
    fn place(&self, address: IpAddr) -> Place {
        Place::of(address)
    }
}

/// DNS of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemNetwork;

impl Network for SystemNetwork {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Addresses that a server may make the host connect to.
#[derive(Debug, Clone)]
pub(super) struct SsrfPolicy {
    /// Nearest zone that may be connected to.
    nearest: Place,
    /// Origins named in the configuration; allowed in any zone up to loopback.
    trusted: Arc<[Origin]>,
}

impl SsrfPolicy {
    /// Derives the policy from the server's own address.
    pub(super) async fn of(network: &dyn Network, server: &Url, trusted: Vec<Origin>) -> Self {
        let nearest = match server.host() {
            Some(host) if is_this_machine(&host) => Place::Loopback,
            Some(Host::Domain(name)) => {
                // With several addresses the farthest zone counts; an unresolvable name counts as public.
                let found = network.lookup(name).await.unwrap_or_default();
                let places = found.into_iter().map(|address| network.place(address));
                places.min().unwrap_or(Place::Public)
            }
            Some(Host::Ipv4(address)) => network.place(address.into()),
            Some(Host::Ipv6(address)) => network.place(address.into()),
            None => Place::Public,
        };
        Self {
            // A DNS name that resolves to loopback does not prove that the server runs on this machine.
            nearest: match (nearest, server.host()) {
                (Place::Nowhere, _) => Place::Public,
                (Place::Loopback, Some(Host::Domain(name))) if !is_localhost(name) => {
                    Place::Private
                }
                (nearest, _) => nearest,
            },
            trusted: trusted.into(),
        }
    }

    /// Nearest zone that a request to this URL may connect to.
    pub(super) fn nearest_for(&self, url: &Url) -> Place {
        if self.trusted.contains(&url.origin()) {
            Place::Loopback
        } else {
            self.nearest
        }
    }

    /// Checks a URL without resolving its host name; returns the reason if it is forbidden.
    pub(super) fn check(&self, network: &dyn Network, url: &Url) -> Result<(), &'static str> {
        let Some(host) = url.host() else {
            return Err("it has no host");
        };
        let nearest = self.nearest_for(url);
        match url.scheme() {
            "https" => {}
            "http" if nearest == Place::Loopback && is_this_machine(&host) => {}
            "http" => return Err("it is not encrypted (https) and not on this machine"),
            _ => return Err("it is neither http nor https"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it contains credentials");
        }
        let place = match host {
            Host::Domain(name) if is_localhost(name) => Place::Loopback,
            Host::Domain(_) => Place::Public,
            Host::Ipv4(address) => network.place(address.into()),
            Host::Ipv6(address) => network.place(address.into()),
        };
        if place > nearest {
            return Err(TOO_NEAR);
        }
        Ok(())
    }
}

/// Reason for rejecting an address that is nearer than the policy allows.
pub(super) const TOO_NEAR: &str = "it is a private address, which this server may not refer to";

fn is_this_machine(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => is_localhost(name),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => of_v6(*address) == Place::Loopback,
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_its_place() {
        let check = |place: Place, addresses: &[&str]| {
            for address in addresses {
                let parsed = address.parse().expect(address);
                assert_eq!(Place::of(parsed), place, "{address}");
            }
        };
        check(
            Place::Public,
            &[
                "1.1.1.1",
                "172.32.0.1",
                "100.128.0.1",
                "192.0.1.1",
                "2606:4700::1111",
                "64:ff9b::101:101",
            ],
        );
        check(
            Place::Private,
            &[
                "10.0.0.1",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.1.1",
                "100.64.0.1",
                "fd00::1",
                "::ffff:10.0.0.1",
                "64:ff9b::a00:1",
                "2002:a00:1::",
            ],
        );
        check(
            Place::Loopback,
            &[
                "127.0.0.1",
                "127.255.0.3",
                "::1",
                "::ffff:127.0.0.1",
                "64:ff9b::7f00:1",
            ],
        );
        check(
            Place::Nowhere,
            &[
                "0.0.0.0",
                "169.254.169.254",
                "224.0.0.1",
                "255.255.255.255",
                "192.0.2.1",
                "::",
                "fe80::1",
                "ff02::1",
                "2001:db8::1",
                "::ffff:169.254.169.254",
                "64:ff9b::a9fe:a9fe",
            ],
        );
    }
    /// Names on the internet, in a private network and on this machine.
    #[derive(Debug)]
    struct Names;

    impl Network for Names {
        fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let addresses: &[[u8; 4]] = match host {
                "far.example" => &[[1, 1, 1, 1]],
                "near.example" => &[[10, 0, 0, 1]],
                "both.example" => &[[10, 0, 0, 1], [1, 1, 1, 1]],
                "here.example" => &[[127, 0, 0, 1]],
                _ => &[],
            };
            let found = addresses.iter().map(|address| IpAddr::from(*address));
            Box::pin(std::future::ready(Ok(found.collect())))
        }
    }

    async fn policy(server: &str, trusted: &[&str]) -> SsrfPolicy {
        let url = |text: &str| Url::parse(text).expect(text);
        let trusted = trusted.iter().map(|text| url(text).origin()).collect();
        SsrfPolicy::of(&Names, &url(server), trusted).await
    }

    #[tokio::test]
    async fn a_server_leads_as_near_as_it_is_itself() {
        for (server, expected) in [
            ("http://localhost:1", Place::Loopback),
            ("http://LOCALHOST.", Place::Loopback),
            ("http://sub.localhost", Place::Loopback),
            ("http://127.0.0.1", Place::Loopback),
            ("http://127.9.9.9", Place::Loopback),
            ("http://[::1]", Place::Loopback),
            ("http://[fd00::1]", Place::Private),
            ("https://10.0.0.1", Place::Private),
            ("https://near.example", Place::Private),
            // A name that leads to this machine does not prove that the server is on it.
            ("https://here.example", Place::Private),
            ("https://notlocalhost", Place::Public),
            ("https://both.example", Place::Public),
            ("https://far.example", Place::Public),
            ("https://unknown.example", Place::Public),
            ("https://169.254.169.254", Place::Public),
        ] {
            let found = policy(server, &[]).await;
            assert_eq!(found.nearest, expected, "{server}");
        }
    }

    #[tokio::test]
    async fn an_address_is_checked_before_its_name_is_resolved() {
        let unencrypted = Err("it is not encrypted (https) and not on this machine");
        let credentials = Err("it contains credentials");
        let near = Err(TOO_NEAR);
        let public = policy("https://far.example", &["https://127.0.0.1:9"]).await;
        let private = policy("https://near.example", &[]).await;
        let loopback = policy("http://localhost", &[]).await;
        for (policy, url, expected) in [
            (&public, "https://a.example/x", Ok(())),
            (&public, "https://1.1.1.1", Ok(())),
            (&public, "http://a.example", unencrypted),
            (&public, "http://127.0.0.1", unencrypted),
            (
                &public,
                "ftp://a.example",
                Err("it is neither http nor https"),
            ),
            (&public, "data:x", Err("it has no host")),
            (&public, "https://user@a.example", credentials),
            (&public, "https://:password@a.example", credentials),
            (&public, "https://10.0.0.1", near),
            (&public, "https://localhost", near),
            (&public, "https://[::1]", near),
            // Named in the configuration.
            (&public, "https://127.0.0.1:9/token", Ok(())),
            (&public, "https://127.0.0.1:8", near),
            (&private, "https://10.9.9.9", Ok(())),
            (&private, "https://127.0.0.1", near),
            (&private, "http://127.0.0.1", unencrypted),
            (&private, "http://10.0.0.1", unencrypted),
            (&loopback, "http://127.0.0.1:5", Ok(())),
            (&loopback, "http://sub.localhost", Ok(())),
            (&loopback, "http://10.0.0.1", unencrypted),
            (&loopback, "https://10.0.0.1", Ok(())),
            (&loopback, "https://169.254.169.254", near),
        ] {
            let found = policy.check(&Names, &Url::parse(url).expect(url));
            assert_eq!(found, expected, "{url}");
        }
    }
}
