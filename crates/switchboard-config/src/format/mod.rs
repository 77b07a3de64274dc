//! Parsers of the configuration formats, all producing a [`Node`] tree.
//!
//! Syntax only: [`crate::entry`] and [`crate::document`] interpret the keys.

mod hcl;
mod hcl_subset;
mod json;
mod toml;
mod yaml;

use std::path::Path;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::source::{Origin, SourceFile};
use crate::tree::{Member, Node, Span, Value};

pub(crate) use hcl::{protect_templates, restore_templates};

/// Syntax of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// TOML 1.
    Toml,
    /// JSON, with comments and trailing commas.
    Json,
    /// `HashiCorp`'s configuration language, version 2, without evaluation.
    Hcl,
    /// YAML 1.2, for import only.
    Yaml,
}

impl Format {
    /// The format for a file extension; `None` if it is unknown.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "toml" => Some(Format::Toml),
            "json" | "jsonc" | "json5" => Some(Format::Json),
            "hcl" => Some(Format::Hcl),
            "yaml" | "yml" => Some(Format::Yaml),
            _ => None,
        }
    }

    /// Display name.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Toml => "TOML",
            Format::Json => "JSON",
            Format::Hcl => "HCL",
            Format::Yaml => "YAML",
        }
    }
}

/// Parses a file. `None` without a usable tree; findings are added to `diagnostics` either way.
pub fn parse<'a>(
    file: &'a Arc<SourceFile>,
    format: Format,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Node<'a>> {
    let mut sink = Sink { file, diagnostics };
    match format {
        Format::Toml => Some(toml::parse(file.text(), &mut sink)),
        Format::Json => json::parse(file.text(), &mut sink),
        Format::Hcl => hcl::parse(file.text(), &mut sink),
        Format::Yaml => yaml::parse(file.text(), &mut sink),
    }
}

struct Sink<'a, 'd> {
    file: &'a Arc<SourceFile>,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl Sink<'_, '_> {
    fn origin(&self, span: Span) -> Origin {
        Origin {
            file: Arc::clone(self.file),
            span,
        }
    }

    fn syntax(&mut self, span: Span, message: impl Into<String>, hint: &str) {
        let error = Diagnostic::error("syntax", self.origin(span), message).with_hint(hint);
        self.diagnostics.push(error);
    }

    /// Adds a member, or reports a duplicate key; the first one stays.
    fn push_unique<'a>(
        &mut self,
        members: &mut Vec<Member<'a>>,
        seen: &mut Seen,
        member: Member<'a>,
    ) {
        if seen.insert(members, &member.key) {
            members.push(member);
            return;
        }
        let first = members
            .iter()
            .find(|other| other.key == member.key)
            .map(|other| other.key_span);
        let line = first.map_or(0, |span| self.file.position(span.start).line);
        let message = format!(
            "key `{}` is defined twice; the first definition, on line {line}, is used",
            member.key
        );
        let error = Diagnostic::error("duplicate-key", self.origin(member.key_span), message)
            .with_hint("remove or rename one of the two");
        self.diagnostics.push(error);
    }
}

/// Keys of a table so far. Small tables are scanned, large ones hashed.
#[derive(Default)]
struct Seen(Option<std::collections::HashSet<String>>);

impl Seen {
    const SEARCHED: usize = 16;

    fn insert(&mut self, members: &[Member<'_>], key: &str) -> bool {
        if members.len() < Self::SEARCHED {
            return members.iter().all(|member| member.key != key);
        }
        let keys = self.0.get_or_insert_with(|| {
            members
                .iter()
                .map(|member| member.key.to_string())
                .collect()
        });
        keys.insert(key.to_owned())
    }
}

fn empty_table<'a>(text: &str) -> Node<'a> {
    Node {
        span: Span::new(0, text.len()),
        value: Value::Table(Vec::new()),
    }
}
