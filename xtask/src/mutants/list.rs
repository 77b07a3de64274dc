//! The mutants of a module, as cargo-mutants lists them.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use serde_json::Value;

use crate::run::command;

/// One change of the code, by its place in the unchanged text.
pub(super) struct Mutant {
    pub(super) file: String,
    /// What cargo-mutants calls it: path, line, column, mutation.
    pub(super) name: String,
    /// The bytes to replace.
    pub(super) span: Range<usize>,
    pub(super) replacement: String,
    /// The function that it is in; `None` for the value of a constant.
    pub(super) function: Option<Function>,
    /// The constant that it is in, if its uses can choose the mutated value.
    pub(super) constant: Option<Constant>,
}

/// A constant with mutants.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Constant {
    pub(super) name: String,
    /// `const NAME: Type = value;`, with what is before `const` on its line.
    pub(super) item: Range<usize>,
}

/// A function with mutants.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Function {
    /// From the signature to the closing brace.
    pub(super) whole: Range<usize>,
    /// What is between the braces.
    pub(super) body: Range<usize>,
    /// `-> bool`, as cargo-mutants writes it.
    pub(super) return_type: String,
}

/// Lists the mutants of some files, in the order of the files.
pub(super) fn list(files: &[&str], root: &Path) -> Result<Vec<Mutant>, String> {
    let mut cargo = command(&[
        "cargo",
        "mutants",
        "--workspace",
        "--list",
        "--json",
        "--colors=never",
    ]);
    for file in files {
        cargo.args(["--file", file]);
    }
    let output = cargo
        .output()
        .map_err(|error| format!("cargo-mutants could not be started: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the list of cargo-mutants cannot be read: {error}"))?;
    let mut texts = HashMap::new();
    for file in listed.iter().filter_map(|mutant| mutant["file"].as_str()) {
        if !texts.contains_key(file) {
            let text = std::fs::read_to_string(root.join(file))
                .map_err(|error| format!("{file}: {error}"))?;
            texts.insert(file.to_owned(), text);
        }
    }
    of_listed(&listed, &texts).ok_or_else(|| "a mutant has no place in its file".to_owned())
}

fn of_listed(listed: &[Value], texts: &HashMap<String, String>) -> Option<Vec<Mutant>> {
    let key = |mutant: &Value| (mutant["file"].to_string(), mutant["function"].to_string());
    let text = |mutant: &Value| texts.get(mutant["file"].as_str()?);
    // Every function with mutants has one that replaces its body.
    let mut bodies = HashMap::new();
    for mutant in listed.iter().filter(|mutant| mutant["genre"] == "FnValue") {
        bodies.insert(key(mutant), span(&mutant["span"], text(mutant)?)?);
    }
    let mutant = |mutant: &Value| {
        let text = text(mutant)?;
        let function = match bodies.get(&key(mutant)) {
            Some(body) => Some(Function {
                whole: span(&mutant["function"]["span"], text)?,
                body: body.clone(),
                return_type: mutant["function"]["return_type"].as_str()?.to_owned(),
            }),
            None => None,
        };
        let bytes = span(&mutant["span"], text)?;
        let constant = match function {
            None => constant(text, &bytes),
            Some(_) => None,
        };
        Some(Mutant {
            file: mutant["file"].as_str()?.to_owned(),
            name: mutant["name"].as_str()?.to_owned(),
            span: bytes,
            replacement: mutant["replacement"].as_str()?.to_owned(),
            function,
            constant,
        })
    };
    listed.iter().map(mutant).collect()
}

/// The constant around a mutation, if it is on one line and private to its file.
fn constant(text: &str, mutation: &Range<usize>) -> Option<Constant> {
    let start = text[..mutation.start].rfind('\n').map_or(0, |end| end + 1);
    let end = mutation.end + text[mutation.end..].find('\n')?;
    let line = &text[start..end];
    let (name, _) = line.strip_prefix("const ")?.split_once(':')?;
    line.ends_with(';').then(|| Constant {
        name: name.to_owned(),
        item: start..end,
    })
}

/// Bytes from lines and columns, which count from 1, in characters.
fn span(span: &Value, text: &str) -> Option<Range<usize>> {
    let offset = |place: &Value| {
        let line = usize::try_from(place["line"].as_u64()?)
            .ok()?
            .checked_sub(1)?;
        let column = usize::try_from(place["column"].as_u64()?)
            .ok()?
            .checked_sub(1)?;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let width: usize = text[start..].chars().take(column).map(char::len_utf8).sum();
        Some(start + width)
    };
    Some(offset(&span["start"])?..offset(&span["end"])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters() {
        let text = "one\nä = b;\n";
        let place = serde_json::json!({
            "start": {"line": 2, "column": 3}, "end": {"line": 2, "column": 4},
        });
        let span = span(&place, text).unwrap_or_default();
        assert_eq!(&text[span], "=");
    }

    #[test]
    fn a_private_constant_on_one_line_is_found() {
        let text = "// a\nconst MOST: u8 = 2 * 3;\npub const ALL: u8 = 4 * 5;\n";
        let of = |value: &str| {
            let start = text.find(value).unwrap_or_default();
            constant(text, &(start..start + value.len()))
        };
        let found = of("2 * 3").map(|constant| (constant.name, &text[constant.item]));
        assert_eq!(found, Some(("MOST".to_owned(), "const MOST: u8 = 2 * 3;")));
        assert!(of("4 * 5").is_none());
    }
}
