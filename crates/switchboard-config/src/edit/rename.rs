//! Renames a key in place: its value, comments and position stay.

use super::check;
use super::{EditError, EditErrorKind};
use crate::format::Format;
use crate::scope::Scope;
use crate::source::SourceFile;
use crate::tree::{Member, Node, Value};

/// Maximum number of places that one key is written in, such as `[a.KEY]` and `[a.KEY.env]`.
const MAX_PLACES: usize = 64;

/// Renames the last key of `path` to `name` and returns the new text. Fails if `name` is taken.
pub fn rename(text: &str, format: Format, path: &[&str], name: &str) -> Result<String, EditError> {
    change(text, format, path, name).map_err(|kind| EditError::new(path, kind))
}

fn change(text: &str, format: Format, path: &[&str], name: &str) -> Result<String, EditErrorKind> {
    if format == Format::Yaml {
        return Err(EditErrorKind::ReadOnlyFormat);
    }
    let Some((old, parents)) = path.split_last() else {
        return Err(EditErrorKind::NotFound);
    };
    let file = SourceFile::new("", Scope::Dynamic, text);
    let before = check::read(&file, format)?;
    let parent = before.at(parents).ok_or(EditErrorKind::NotFound)?;
    if parent.get(old).is_none() {
        return Err(EditErrorKind::NotFound);
    }
    if parent.get(name).is_some() {
        let key = parents.iter().chain([&name]).copied();
        let key = key.collect::<Vec<_>>().join(".");
        return Err(EditErrorKind::Duplicate { key });
    }
    let mut changed = text.to_owned();
    // A TOML table can have several headers, each with the key. Each round renames one of them.
    for _ in 0..MAX_PLACES {
        let file = SourceFile::new("", Scope::Dynamic, &changed);
        let now = check::read(&file, format).map_err(|_| EditErrorKind::NotClean)?;
        let members = now.at(parents).and_then(Node::as_table);
        let member = members.and_then(|members| members.iter().find(|each| each.key == *old));
        let Some(Member { key_span, .. }) = member else {
            break;
        };
        let range = key_span.start as usize..key_span.end as usize;
        let written = changed.get(range.clone());
        let written = written.ok_or(EditErrorKind::NotClean)?;
        let key = spelled(name, written, format);
        changed.replace_range(range, &key);
    }
    let file = SourceFile::new("", Scope::Dynamic, &changed);
    let after = check::read(&file, format).map_err(|_| EditErrorKind::NotClean)?;
    let expected = renamed(before.clone(), parents, old, name);
    if check::same(&expected, &after) {
        Ok(changed)
    } else {
        Err(EditErrorKind::NotClean)
    }
}

/// A key, quoted as the one it replaces or as it must be.
fn spelled(name: &str, replaced: &str, format: Format) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_bare = !name.is_empty() && name.bytes().all(is_plain);
    let quoted = super::rule::quoted(name);
    match replaced.chars().next() {
        Some('"' | '\'') => quoted,
        // The span of a JSON key may leave out its quotes.
        _ if format == Format::Json => quoted.trim_matches('"').to_owned(),
        _ if is_bare => name.to_owned(),
        _ => quoted,
    }
}

/// The tree with one key renamed.
fn renamed<'t>(mut node: Node<'t>, parents: &[&str], old: &str, name: &str) -> Node<'t> {
    if let Value::Table(members) = &mut node.value {
        for member in members.iter_mut() {
            match parents.split_first() {
                Some((first, rest)) if member.key == *first => {
                    let value = Node::detached(Value::Null);
                    let value = std::mem::replace(&mut member.value, value);
                    member.value = renamed(value, rest, old, name);
                }
                None if member.key == old => member.key = name.to_owned().into(),
                _ => {}
            }
        }
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: Format, path: &[&str], name: &str, before: &str, after: &str) {
        assert_eq!(rename(before, format, path, name).unwrap(), after);
    }

    #[test]
    fn a_key_is_renamed_in_place_with_all_its_parts() {
        let path = ["mcp_servers", "old"];
        check(
            Format::Toml,
            &path,
            "new",
            "# top\n[mcp_servers.old] # mine\ncommand = \"x\"\n\n# variables\n[mcp_servers.old.env]\nA = \"old\"\n[mcp_servers.older]\ncommand = \"old\"\n",
            "# top\n[mcp_servers.new] # mine\ncommand = \"x\"\n\n# variables\n[mcp_servers.new.env]\nA = \"old\"\n[mcp_servers.older]\ncommand = \"old\"\n",
        );
        check(
            Format::Toml,
            &path,
            "a b",
            "mcp_servers.old.command = \"x\"\nmcp_servers.old.args = []\n",
            "mcp_servers.\"a b\".command = \"x\"\nmcp_servers.\"a b\".args = []\n",
        );
        check(
            Format::Json,
            &["mcpServers", "old"],
            "new",
            "{\n  // mine\n  \"mcpServers\": { \"old\": { \"command\": \"old\" } }\n}\n",
            "{\n  // mine\n  \"mcpServers\": { \"new\": { \"command\": \"old\" } }\n}\n",
        );
        check(
            Format::Hcl,
            &path,
            "new",
            "mcp_servers \"old\" {\n  command = \"x\"\n}\n",
            "mcp_servers \"new\" {\n  command = \"x\"\n}\n",
        );
    }

    #[test]
    fn a_name_that_is_taken_or_missing_is_refused() {
        let text = "[a.x]\nb = 1\n[a.y]\nb = 2\n";
        let error = rename(text, Format::Toml, &["a", "x"], "y").unwrap_err();
        assert!(
            matches!(error.kind, EditErrorKind::Duplicate { .. }),
            "{error}"
        );
        let error = rename(text, Format::Toml, &["a", "z"], "w").unwrap_err();
        assert_eq!(error.kind, EditErrorKind::NotFound);
    }
}
