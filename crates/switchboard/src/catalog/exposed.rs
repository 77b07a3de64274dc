//! Exposed tool names: `mcp__server__tool`.
//!
//! The name depends only on the server's and the tool's own names, so that no other server can rename a tool by
//! connecting or disconnecting. A *plain* name contains both names unchanged. Other names get a suffix, a hash of both
//! names, in these cases:
//!
//! - characters outside `[a-zA-Z0-9_-]`, which become `_`;
//! - more than 64 characters in total, which are truncated;
//! - a server name that contains `__` or ends with `_`: `a__b` + `c` and `a` + `b__c`, or `a_` + `b` and `a` + `_b`,
//!   would be equal. Otherwise the first `__` after the prefix ends the server's name;
//! - a name that ends like our suffix: a server could otherwise take the name of another server's tool.
//!
//! Two plain names are therefore never equal, nor are a plain name and one with a suffix; two names with a suffix are
//! equal only if 58 bits of SHA-256 collide. The registry checks for duplicates anyway. Names are looked up, never
//! parsed.

use sha2::{Digest as _, Sha256};

use crate::names::ExposedName;

/// Prefix of every exposed name.
pub const PREFIX: &str = "mcp__";

/// Separator between the server's and the tool's part.
pub(crate) const SEPARATOR: &str = "__";

/// Maximum length that model providers accept.
pub(crate) const MAX_LENGTH: usize = 64;

/// Digits and consonants: no natural word ends like this.
const ALPHABET: &[u8; 30] = b"0123456789bcdfghjkmnpqrstvwxyz";

/// Length of the hash; 58 bits.
const HASH_LENGTH: usize = 12;

/// Minimum length left for a long server name next to a long tool name.
const SERVER_SHARE: usize = 18;

/// Returns the exposed name of a server's tool or prompt.
pub fn exposed_name(server: &str, tool: &str) -> ExposedName {
    let mut name = String::new();
    name_into(&mut name, server, tool);
    ExposedName::from(name)
}

/// A name that several tools claim, made unique for one of them.
pub(crate) fn with_suffix(name: &str, tool: &str) -> String {
    let kept = name.len().min(MAX_LENGTH - 1 - HASH_LENGTH);
    let mut unique = name.get(..kept).unwrap_or_default().to_owned();
    unique.push('_');
    push_hash(&mut unique, name, tool);
    unique
}

/// Whether an exposed name has the form of one of the server's tool names. For error messages only: routing never
/// depends on it.
pub(crate) fn is_like_tool_of(name: &str, server: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    let part = if is_plain_server(server) {
        server.to_owned()
    } else {
        tidy_server(server)
    };
    let is_whole = |rest: &str| rest.starts_with(SEPARATOR);
    // A long name may have been truncated.
    let start = part
        .get(..SERVER_SHARE)
        .map(|start| start.trim_end_matches('_'));
    rest.strip_prefix(part.as_str()).is_some_and(is_whole)
        || start.is_some_and(|start| rest.starts_with(start))
}

/// As [`exposed_name`], written into a reused buffer.
pub(super) fn name_into(name: &mut String, server: &str, tool: &str) {
    name.clear();
    let length = PREFIX.len() + server.len() + SEPARATOR.len() + tool.len();
    if length <= MAX_LENGTH && is_plain_server(server) && is_plain_tool(tool) {
        write_name(name, server, tool);
    } else {
        let budget = MAX_LENGTH - PREFIX.len() - SEPARATOR.len() - 1 - HASH_LENGTH;
        let server_part = tidy_server(server);
        let tool_part = replaced(tool);
        let tool_budget = budget - server_part.len().min(SERVER_SHARE);
        let tool_part = tool_part
            .get(..tool_part.len().min(tool_budget))
            .unwrap_or_default();
        let server_budget = budget - tool_part.len();
        let server_part = server_part
            .get(..server_part.len().min(server_budget))
            .unwrap_or_default();
        write_name(name, server_part.trim_end_matches('_'), tool_part);
        name.push('_');
        push_hash(name, server, tool);
    }
}

fn write_name(name: &mut String, server: &str, tool: &str) {
    name.push_str(PREFIX);
    name.push_str(server);
    name.push_str(SEPARATOR);
    name.push_str(tool);
}

fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_plain_server(server: &str) -> bool {
    !server.is_empty()
        && server.bytes().all(is_safe)
        && !server.ends_with('_')
        && !server.contains(SEPARATOR)
}

fn is_plain_tool(tool: &str) -> bool {
    !tool.is_empty() && tool.bytes().all(is_safe) && !ends_like_a_hash(tool)
}

fn ends_like_a_hash(tool: &str) -> bool {
    let Some(at) = tool.len().checked_sub(HASH_LENGTH) else {
        return false;
    };
    let (head, tail) = tool.as_bytes().split_at(at);
    // At the start of a tool's name, the separator's `_` comes before the tail.
    matches!(head.last(), None | Some(b'_')) && tail.iter().all(|byte| ALPHABET.contains(byte))
}

fn replaced(name: &str) -> String {
    name.chars()
        .map(|character| match u8::try_from(character) {
            Ok(byte) if is_safe(byte) => character,
            _ => '_',
        })
        .collect()
}

/// Server part of a name with a suffix: without `__`, so that `mcp__github__*` never matches `github__x`.
fn tidy_server(server: &str) -> String {
    let mut tidy = String::with_capacity(server.len());
    for character in replaced(server).chars() {
        if character != '_' || !(tidy.is_empty() || tidy.ends_with('_')) {
            tidy.push(character);
        }
    }
    tidy.truncate(tidy.trim_end_matches('_').len());
    if tidy.is_empty() {
        tidy.push('x');
    }
    tidy
}

fn push_hash(name: &mut String, server: &str, tool: &str) {
    let mut hasher = Sha256::new();
    hasher.update((server.len() as u64).to_be_bytes());
    hasher.update(server.as_bytes());
    hasher.update(tool.as_bytes());
    let digest = hasher.finalize();
    let mut number = digest
        .iter()
        .take(16)
        .fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    for _ in 0..HASH_LENGTH {
        let digit = usize::try_from(number % ALPHABET.len() as u128).unwrap_or_default();
        name.push(ALPHABET.get(digit).copied().map_or('0', char::from));
        number /= ALPHABET.len() as u128;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(server: &str, tool: &str, expected: &str) {
        assert_eq!(exposed_name(server, tool).as_str(), expected);
    }

    #[test]
    fn plain_names_stay_as_they_are() {
        check("github", "create_issue", "mcp__github__create_issue");
        check("my-server", "get__it", "mcp__my-server__get__it");
        check("a", "_b", "mcp__a___b");
        check("a", "b_", "mcp__a__b_");
        check(
            "github",
            "search_repositories",
            "mcp__github__search_repositories",
        );
    }

    #[test]
    fn whatever_cannot_be_said_plainly_gets_a_suffix() {
        check("a.b", "c", "mcp__a_b__c_s126g7dh86f2");
        check("a_b", "c.d", "mcp__a_b__c_d_3vndrpdq65r1");
        check("a__b", "c", "mcp__a_b__c_6fwnqh0b7fvy");
        check("a_", "b", "mcp__a__b_pz9crv3jjnrv");
        check("github__x", "create", "mcp__github_x__create_x99tf5bj99bw");
        check("a", "b_s126g7dh86f2", "mcp__a__b_s126g7dh86f2_pv1y8k7p82tv");
        check("a", "s126g7dh86f2", "mcp__a__s126g7dh86f2_rj4w0qs4z7v5");
        check("漢字", "読む", "mcp__x_____xs4dbfptx6sq");
        check("", "", "mcp__x___sjtvr1sdd22v");
        let (many_s, many_t) = ("s".repeat(128), "t".repeat(200));
        let expected = format!("mcp__{}__{}_68h3fpp7g9sn", &many_s[..18], &many_t[..26]);
        check(&many_s, &many_t, &expected);
        let expected = format!("mcp__short__{}_43bmnd0p6rt5", &many_t[..39]);
        check("short", &many_t, &expected);
    }
}
