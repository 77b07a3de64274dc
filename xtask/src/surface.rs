//! `cargo xtask surface`: how many public items the documentation of each crate shows, with a bound for the host's.
//!
//! Counts what rustdoc writes: every page that `all.html` lists, and on it the fields, variants and methods that are the
//! item's own. Hidden items and implementations of traits do not count.

use std::path::{Path, PathBuf};

use crate::ci::document;
use crate::run::root;

/// The most items that the documentation of the host may show.
const HOST_BOUND: usize = 1_090;

/// The crates that programs can depend on.
const CRATES: [&str; 6] = [
    "switchboard",
    "switchboard_agent",
    "switchboard_config",
    "switchboard_protocol",
    "switchboard_server",
    "switchboard_store",
];

/// The ids of members in the HTML of a page.
const MEMBERS: [&str; 5] = [
    "id=\"structfield.",
    "id=\"variant.",
    "id=\"method.",
    "id=\"tymethod.",
    "id=\"associatedconstant.",
];

/// The sections after which members are those of implemented traits or of other types.
const FOREIGN: [&str; 5] = [
    "id=\"trait-implementations\"",
    "id=\"synthetic-implementations\"",
    "id=\"blanket-implementations\"",
    "id=\"implementors\"",
    "id=\"foreign-impls\"",
];

/// Builds the documentation, prints the counts, and fails if the host's exceeds its bound.
pub(crate) fn surface() -> Result<(), String> {
    document("--lib")?;
    let documentation = target().join("doc");
    println!();
    for name in CRATES {
        let (items, members) = count(&documentation.join(name))?;
        let total = items + members;
        println!(
            "{name:22} {total:5} documented items: {items} on pages of their own, {members} members"
        );
        if name == "switchboard" && total > HOST_BOUND {
            return Err(too_many(total));
        }
    }
    Ok(())
}

fn too_many(total: usize) -> String {
    format!(
        "the documentation of `switchboard` shows {total} items, more than {HOST_BOUND}.\n\
         Make the new items `pub(crate)`. If another crate of the workspace needs them, re-export them in\n\
         `crates/switchboard/src/internal.rs`, or put `#[doc(hidden)]` on a method or field.\n\
         If programs that embed the host need them, raise HOST_BOUND in xtask/src/surface.rs."
    )
}

/// The folder that Cargo writes to.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The items with a page, and the members on these pages.
fn count(folder: &Path) -> Result<(usize, usize), String> {
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let pages = pages(&read(folder.join("all.html"))?);
    let mut members = 0;
    for page in &pages {
        members += members_of(&read(folder.join(page))?);
    }
    Ok((pages.len(), members))
}

/// The pages that `all.html` lists.
fn pages(list: &str) -> Vec<String> {
    let list = list.split_once("<h1>").map_or(list, |(_, list)| list);
    let links = list.split("href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split('"').next());
    let mut pages: Vec<String> = links
        .filter(|link| Path::new(link).extension().is_some_and(|end| end == "html"))
        .filter(|link| !link.contains("://") && !link.starts_with(".."))
        .map(str::to_owned)
        .collect();
    pages.sort();
    pages.dedup();
    pages
}

/// The item's own members on its page.
fn members_of(page: &str) -> usize {
    let end = FOREIGN
        .iter()
        .filter_map(|section| page.find(section))
        .min();
    let own = &page[..end.unwrap_or(page.len())];
    MEMBERS.iter().map(|id| own.matches(id).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_members_are_counted_and_those_of_traits_are_not() {
        let page = r#"<span id="structfield.a"></span><section id="method.b"></section>
            <h2 id="trait-implementations"></h2><section id="method.fmt"></section>"#;
        assert_eq!(members_of(page), 2);
    }

    #[test]
    fn pages_are_those_of_the_list() {
        let list = r#"<a href="index.html">x</a><h1>List of all items</h1>
            <a href="struct.Host.html">Host</a><a href="catalog/enum.Part.html">Part</a><a href="struct.Host.html">Host</a>
            <a href="../other/index.html">other</a><a href="https://docs.rs/page.html">elsewhere</a>"#;
        assert_eq!(pages(list), ["catalog/enum.Part.html", "struct.Host.html"]);
    }
}
