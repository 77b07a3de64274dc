//! Rejects servers whose names are confusable with another's; the one of the higher scope is used.

use crate::sort;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::confusable;
use crate::diagnostic::Diagnostic;
use crate::source::Origin;

use super::{Server, Status};

/// Rejects each usable server whose name is confusable with that of a server of a higher scope, or of an earlier entry
/// of its own scope. Unusable servers do not reserve their names.
pub(super) fn refuse_confusable(servers: &mut [Server], diagnostics: &mut Vec<Diagnostic>) {
    let mut places: Vec<usize> = (0..servers.len()).collect();
    // The indexes are in range.
    sort::by_key(&mut places, |at| {
        (Reverse(servers[*at].scope()), servers[*at].place)
    });
    let taken: HashSet<String> = servers
        .iter()
        .map(|server| confusable::server_key(&server.name))
        .collect();
    let mut used: HashMap<String, (String, Origin)> = HashMap::new();
    for at in places {
        let server = &mut servers[at];
        if server.status != Status::Ready {
            continue;
        }
        let key = confusable::server_key(&server.name);
        let Some((by, origin)) = used.get(&key) else {
            used.insert(key, (server.name.clone(), server.origin.clone()));
            continue;
        };
        let instead = instead(by, server.scope().name(), &taken);
        let message = format!(
            "server name {:?} can be mistaken for `{by}` ({} scope, {origin}), so the server is not used",
            server.name,
            origin.scope()
        );
        let hint = format!("rename one of the two servers, for example this one to `{instead}`");
        let diagnostic = Diagnostic::error("confusable-name", server.origin.clone(), message);
        diagnostics.push(diagnostic.with_hint(hint).about(&server.name));
        server.status = Status::Refused {
            by: by.clone(),
            origin: origin.clone(),
            instead,
        };
    }
}

/// A name that is not confusable with any taken name.
fn instead(like: &str, scope: &str, taken: &HashSet<String>) -> String {
    let is_free = |name: &String| {
        confusable::built_in(name).is_none() && !taken.contains(&confusable::server_key(name))
    };
    let plain = format!("{like}-{scope}");
    if is_free(&plain) {
        return plain;
    }
    // One of these is free: there are fewer servers.
    let mut numbered = (2..=taken.len() + 2).map(|number| format!("{plain}-{number}"));
    numbered.find(is_free).unwrap_or(plain)
}
