//! Detects entries of different scopes that point to the same endpoint.

use crate::sort;
use std::cmp::Ordering;
use std::collections::HashMap;

use crate::entry::ServerEntry;
use crate::mask;
use crate::source::Origin;

use super::{Server, ShadowReason, Shadowed, Status};

/// Marks each server with the same endpoint as one of a higher scope as shadowed, and sorts all by name. Only usable
/// servers shadow others: a disabled entry hides nothing.
pub(super) fn shadow_endpoints(servers: Vec<Server>, shadowed: &mut Vec<Shadowed>) -> Vec<Server> {
    let mut servers = sorted(servers, |one, other| {
        other
            .scope()
            .cmp(&one.scope())
            .then_with(|| one.name.cmp(&other.name))
    });
    // A single scope has no conflicts.
    if servers.first().map(Server::scope) == servers.last().map(Server::scope) {
        return servers;
    }
    let mut seen: HashMap<Endpoint, (String, Origin)> = HashMap::new();
    let ready = |server: &&mut Server| server.status == Status::Ready;
    for server in servers.iter_mut().filter(ready) {
        let Some(endpoint) = Endpoint::of(server.effective()) else {
            continue;
        };
        match seen.get(&endpoint) {
            Some((name, origin)) if origin.scope() != server.scope() => {
                shadowed.push(Shadowed {
                    name: server.name.clone(),
                    origin: server.origin.clone(),
                    entry: server.entry.clone(),
                    reason: ShadowReason::SameEndpoint {
                        name: name.clone(),
                        origin: origin.clone(),
                    },
                });
                server.status = Status::Shadowed {
                    by: name.clone(),
                    origin: origin.clone(),
                };
            }
            Some(_) => {}
            None => {
                seen.insert(endpoint, (server.name.clone(), server.origin.clone()));
            }
        }
    }
    sorted(servers, |one, other| one.name.cmp(&other.name))
}

/// Whether two entries point to the same endpoint: the same program with arguments and environment, or the same address.
pub fn same_endpoint(one: &ServerEntry, other: &ServerEntry) -> bool {
    let endpoint = Endpoint::of(one);
    endpoint.is_some() && endpoint == Endpoint::of(other)
}

/// Sorts the servers. A server is large, so indexes are sorted, and each server is moved once.
fn sorted(servers: Vec<Server>, compare: impl Fn(&Server, &Server) -> Ordering) -> Vec<Server> {
    let mut places: Vec<usize> = (0..servers.len()).collect();
    // The indexes are in range.
    sort::by(&mut places, |one, other| {
        compare(&servers[*one], &servers[*other])
    });
    let mut servers: Vec<Option<Server>> = servers.into_iter().map(Some).collect();
    let in_order = places.into_iter().filter_map(|place| servers[place].take());
    in_order.collect()
}

#[derive(PartialEq, Eq, Hash)]
enum Endpoint {
    Program {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        cwd: Option<String>,
    },
    Address(String),
}

impl Endpoint {
    fn of(entry: &ServerEntry) -> Option<Self> {
        if let Some(url) = &entry.url {
            return Some(Endpoint::Address(mask::url_signature(url)));
        }
        let mut env: Vec<_> = entry
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect();
        env.sort();
        let command = entry.command.clone()?;
        Some(Endpoint::Program {
            command,
            args: entry.args.clone(),
            env,
            cwd: entry.cwd.clone(),
        })
    }
}
