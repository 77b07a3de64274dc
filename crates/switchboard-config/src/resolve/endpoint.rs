//! Two entries that point to one endpoint are one server.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::entry::ServerEntry;
use crate::mask;
use crate::source::Origin;

use super::{Server, ShadowReason, Shadowed, Status};

/// Keeps one server for each endpoint, that of the highest scope, sorted by name.
pub(super) fn one_per_endpoint(servers: Vec<Server>, shadowed: &mut Vec<Shadowed>) -> Vec<Server> {
    let servers = sorted(servers, |one, other| {
        other
            .scope()
            .cmp(&one.scope())
            .then_with(|| one.name.cmp(&other.name))
    });
    // With one scope there is nothing to compare.
    let several = servers.first().map(Server::scope) != servers.last().map(Server::scope);
    let mut seen: HashMap<Endpoint, (String, Origin)> = HashMap::new();
    let mut kept = Vec::with_capacity(servers.len());
    for server in servers {
        let comparable = several && matches!(server.status, Status::Ready | Status::Disabled);
        let endpoint = if comparable {
            Endpoint::of(server.effective())
        } else {
            None
        };
        match endpoint.as_ref().and_then(|endpoint| seen.get(endpoint)) {
            Some((name, origin)) if origin.scope() != server.scope() => {
                let reason = ShadowReason::SameEndpoint {
                    name: name.clone(),
                    origin: origin.clone(),
                };
                shadowed.push(Shadowed {
                    name: server.name,
                    origin: server.origin,
                    entry: server.entry,
                    reason,
                });
            }
            _ => {
                if let Some(endpoint) = endpoint {
                    seen.entry(endpoint)
                        .or_insert_with(|| (server.name.clone(), server.origin.clone()));
                }
                kept.push(server);
            }
        }
    }
    if several {
        sorted(kept, |one, other| one.name.cmp(&other.name))
    } else {
        kept
    }
}

/// The servers in order. A server is large, so places are sorted, and each server is moved once.
fn sorted(servers: Vec<Server>, compare: impl Fn(&Server, &Server) -> Ordering) -> Vec<Server> {
    let mut places: Vec<usize> = (0..servers.len()).collect();
    // The places are those of these very servers.
    places.sort_by(|one, other| compare(&servers[*one], &servers[*other]));
    let mut servers: Vec<Option<Server>> = servers.into_iter().map(Some).collect();
    let in_order = places.into_iter().filter_map(|place| servers[place].take());
    in_order.collect()
}

/// What makes two entries one server.
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
