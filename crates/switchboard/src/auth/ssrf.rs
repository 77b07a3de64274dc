//! Which addresses a server may lead the host to.
//!
//! Discovery is told by a stranger where to go next. A stranger on the internet must not be able to name a router, a
//! database or a cloud's metadata service; a server on this very machine may name another port of it. So each server
//! gets a reach by where it is itself, and every address that is really connected to is compared with it.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use url::{Host, Origin, Url};

/// How near an address is. The order is the nearness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Anywhere on the internet.
    Public,
    /// In a private network.
    Private,
    /// On this machine.
    Loopback,
    /// Nowhere a server for other people can be: link-local (and with it the metadata services of clouds), multicast,
    /// reserved.
    Nowhere,
}

impl Place {
    /// Where this address is.
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
        // The last two: shared space of providers, and networks for measurements.
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) | (198, 18..=19, _) => {
            Place::Private
        }
        // "This" network, link-local, protocol assignments, documentation, multicast and what is above it.
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
        // Addresses that carry one of the older kind: mapped, compatible, translated, 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        [0x2002, high, low, ..] => embedded(high, low),
        [0xfc00..=0xfdff, ..] | [0x64, 0xff9b, 1, ..] => Place::Private,
        // Global unicast, without documentation and tunnels that hide where they lead.
        [0x2001, 0x0 | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Place::Nowhere,
        [0x2000..=0x3fff, ..] => Place::Public,
        _ => Place::Nowhere,
    }
}

/// What the network says about names and addresses.
pub trait Network: fmt::Debug + Send + Sync + 'static {
    /// The addresses of a name.
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;

    /// Where an address is.
    fn place(&self, address: IpAddr) -> Place {
        Place::of(address)
    }
}

/// The network of the machine.
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

/// How far a server may lead the host.
#[derive(Debug, Clone)]
pub(super) struct SsrfPolicy {
    /// The nearest place that may be reached.
    nearest: Place,
    /// Origins the configuration itself names. What the user wrote may be anywhere.
    trusted: Arc<[Origin]>,
}

impl SsrfPolicy {
    /// The reach of a server at this address.
    pub(super) async fn of(network: &dyn Network, server: &Url, trusted: Vec<Origin>) -> Self {
        let nearest = match server.host() {
            Some(host) if is_this_machine(&host) => Place::Loopback,
            Some(Host::Domain(name)) => {
                // A name that leads to several places is as far away as the farthest; one that leads nowhere, too.
                let found = network.lookup(name).await.unwrap_or_default();
                let places = found.into_iter().map(|address| network.place(address));
                places.min().unwrap_or(Place::Public)
            }
            Some(Host::Ipv4(address)) => network.place(address.into()),
            Some(Host::Ipv6(address)) => network.place(address.into()),
            None => Place::Public,
        };
        Self {
            // A name in the DNS that leads to this machine is no proof of being on it.
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

    /// The nearest place that a request to this URL may end at.
    pub(super) fn nearest_for(&self, url: &Url) -> Place {
        if self.trusted.contains(&url.origin()) {
            Place::Loopback
        } else {
            self.nearest
        }
    }

    /// Why this URL may not be used, as far as it shows in the URL itself.
    pub(super) fn check(&self, network: &dyn Network, url: &Url) -> Result<(), &'static str> {
        let Some(host) = url.host() else {
            return Err("it names no host");
        };
        let nearest = self.nearest_for(url);
        match url.scheme() {
            "https" => {}
            "http" if nearest == Place::Loopback && is_this_machine(&host) => {}
            "http" => return Err("it is not encrypted (https) and not on this machine"),
            _ => return Err("it is neither http nor https"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it holds credentials");
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

/// What is wrong with an address that a server may not lead to.
pub(super) const TOO_NEAR: &str =
    "it leads to a private address, which this server may not lead to";

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
}
