//! What in a tool's definition looks as if it were written for the model behind the user's back.
//!
//! Rules, each with a name, a sentence that explains it, and the place where it matched. Most wordings prove nothing by
//! themselves (a vault's description names passwords, too), so matches have weights, and a definition is flagged when
//! those of different rules come to enough. A match is no proof, and a poisoned tool can be written so that nothing
//! matches: this is for people who look, never the only defence. Nothing is decided here but one thing: a tool with tag
//! characters in it, which no screen shows and every model reads, is set aside, because there is no honest reason for them.
//!
//! | where | what |
//! |---|---|
//! | `fold` | a text as it would be read: look-alikes, full-width letters, accents and invisible characters resolved |
//! | `decode` | what is written in base64, hexadecimal or escapes |
//! | `rules` | the patterns and their weights |
//! | `lexicon` | words by what they mean in an instruction |
//! | `intent` | what a sentence asks for, by the meanings of its words |
//! | `score` | what the matches in one definition come to |
//!
//! Every text of a definition is looked at, names and values alike, to its end, in time that grows with its length.
//! Everything is computed when somebody asks, so that a list of ten thousand tools costs nothing until it is looked at.

mod decode;
mod fold;
mod intent;
mod lexicon;
mod rules;
mod score;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::Value;

use super::tool::CatalogTool;
use score::Findings;

/// Something suspicious.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The rule that matched.
    pub rule: Rule,
    /// Where: the path of the text in the definition, or `instructions`.
    pub field: String,
    /// Which bytes of that text.
    pub span: Range<usize>,
    /// What stands there, cut and safe to show.
    pub excerpt: String,
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// It tells the model to disregard what it was told.
    OverridesInstructions,
    /// It tells the model to keep something from the user.
    Conceals,
    /// It wants files to be read before it is used.
    DemandsFiles,
    /// It has the marks of a system prompt.
    PseudoMarkup,
    /// It names places where secrets are.
    NamesSecrets,
    /// It wants secrets to be handed over.
    CollectsSecrets,
    /// It tells how to use tools that are not its own.
    OtherTools,
    /// It names somebody to send things to.
    Exfiltration,
    /// It wants the conversation to be handed over.
    Conversation,
    /// It has a comment that a page would not show.
    HiddenMarkup,
    /// It pushes text out of sight.
    BlankRun,
    /// It has characters that no screen shows.
    HiddenCharacters,
    /// It has a text in tag characters, which only a model reads.
    TagCharacters,
    /// It has a parameter that asks for what is none of its business.
    SideChannel,
    /// It wants things to be done without asking.
    SkipsConsent,
    /// It has instructions in base64, hexadecimal or escapes.
    EncodedText,
    /// It praises itself, to be chosen over other tools.
    SelfPromotion,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Rule; 17] = [
        Rule::OverridesInstructions,
        Rule::Conceals,
        Rule::DemandsFiles,
        Rule::PseudoMarkup,
        Rule::NamesSecrets,
        Rule::CollectsSecrets,
        Rule::OtherTools,
        Rule::Exfiltration,
        Rule::Conversation,
        Rule::HiddenMarkup,
        Rule::BlankRun,
        Rule::HiddenCharacters,
        Rule::TagCharacters,
        Rule::SideChannel,
        Rule::SkipsConsent,
        Rule::EncodedText,
        Rule::SelfPromotion,
    ];

    /// Its name, for scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::OverridesInstructions => "overrides-instructions",
            Rule::Conceals => "conceals",
            Rule::DemandsFiles => "demands-files",
            Rule::PseudoMarkup => "pseudo-markup",
            Rule::NamesSecrets => "names-secrets",
            Rule::CollectsSecrets => "collects-secrets",
            Rule::OtherTools => "other-tools",
            Rule::Exfiltration => "exfiltration",
            Rule::Conversation => "conversation",
            Rule::HiddenMarkup => "hidden-markup",
            Rule::BlankRun => "blank-run",
            Rule::HiddenCharacters => "hidden-characters",
            Rule::TagCharacters => "tag-characters",
            Rule::SideChannel => "side-channel",
            Rule::SkipsConsent => "skips-consent",
            Rule::EncodedText => "encoded-text",
            Rule::SelfPromotion => "self-promotion",
        }
    }

    /// What is suspicious about it, in a line.
    pub const fn about(self) -> &'static str {
        match self {
            Rule::OverridesInstructions => "tells the model to disregard what it was told",
            Rule::Conceals => "tells the model to keep something from you",
            Rule::DemandsFiles => "wants files to be read before it is used",
            Rule::PseudoMarkup => "has the marks of a system prompt",
            Rule::NamesSecrets => "names places where secrets are kept",
            Rule::CollectsSecrets => "wants secrets to be handed over",
            Rule::OtherTools => "tells the model how to use tools that are not its own",
            Rule::Exfiltration => "names somebody to send things to",
            Rule::Conversation => "wants the conversation to be handed over",
            Rule::HiddenMarkup => "has a comment that a page would not show",
            Rule::BlankRun => "pushes text out of sight",
            Rule::HiddenCharacters => "has characters that no screen shows",
            Rule::TagCharacters => "has text in tag characters, which only a model reads",
            Rule::SideChannel => "has a parameter that asks for what is none of its business",
            Rule::SkipsConsent => "wants things to be done without asking you",
            Rule::EncodedText => "has instructions in an encoded form",
            Rule::SelfPromotion => "praises itself, to be chosen over other tools",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rule,
            field,
            excerpt,
            ..
        } = self;
        write!(
            formatter,
            "{} ({rule}, in {field}: \"{excerpt}\")",
            rule.about()
        )
    }
}

/// Finds what is suspicious in a tool that has others beside it: advice on how to use tools of the same server
/// (`is_own`) is ordinary. [`ServerTools::flags`](super::ServerTools::flags) knows them, and is the only way in.
pub(super) fn of_tool(tool: &CatalogTool, is_own: &dyn Fn(&str) -> bool) -> Vec<Flag> {
    let name = tool.reference().tool.as_str();
    let is_own = |other: &str| other.eq_ignore_ascii_case(name) || is_own(other);
    let mut findings = Findings::new(&is_own);
    // What is nested too deep for this is not shown to a model either.
    if let Ok(definition) = serde_json::from_str::<Value>(tool.definition().as_str()) {
        let schema = definition.get("inputSchema");
        let properties = schema.and_then(|schema| schema.get("properties"));
        let names = properties.and_then(Value::as_object).into_iter().flatten();
        // What is handed to the tool by its name goes where its arguments go.
        let names = names.map(|(name, _)| name.as_str()).chain([name]);
        findings.parameters(names.map(str::to_lowercase));
        walk(&definition, &mut Vec::new(), &mut findings);
    }
    findings.flags()
}

/// Looks a text over; `field` says what it is.
pub fn of_text(field: &str, text: &str) -> Vec<Flag> {
    let mut findings = Findings::new(&|_| false);
    findings.text(text, field);
    findings.flags()
}

/// Whether a text of JSON may have tag characters in it, as they are or escaped. Nearly none has, so it looks for what is
/// rare.
pub(super) fn may_have_tags(text: &str) -> bool {
    let bytes = text.as_bytes();
    let as_it_is = TAG.find(bytes).is_some();
    // The first half of the escaped pair is `\udb40`, in either case.
    as_it_is
        || HALVES.iter().any(|half| {
            half.find_iter(bytes).any(|at| {
                let before = at.checked_sub(3).and_then(|start| bytes.get(start..at));
                matches!(before, Some(b"\\ud" | b"\\uD"))
            })
        })
}

/// Whether a tool has tag characters in it.
pub(super) fn has_tags(tool: &CatalogTool) -> bool {
    let Ok(definition) = serde_json::from_str::<Value>(tool.definition().as_str()) else {
        return false;
    };
    has_tagged_text(&definition)
}

/// What all tag characters begin with; nothing else that is assigned does, but for a few variation selectors.
static TAG: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\xF3\xA0"));
static HALVES: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| [Finder::new(b"b40"), Finder::new(b"B40")]);

fn walk<'v>(value: &'v Value, path: &mut Vec<&'v str>, findings: &mut Findings<'_>) {
    match value {
        Value::String(text) if path.as_slice() == ["name"] => findings.name(text, "name"),
        Value::String(text) if score::says_nothing(text) || is_known(path.last(), text) => {}
        Value::String(text) => findings.text(text, &path.join(".")),
        Value::Array(items) => {
            for item in items {
                walk(item, path, findings);
            }
        }
        Value::Object(members) => {
            let are_parameters = path.last() == Some(&"properties");
            for (name, value) in members {
                path.push(name);
                let is_short = !are_parameters && score::says_nothing(name);
                if !is_short && !KEYWORDS.contains(&name.as_str()) {
                    let field = path.join(".");
                    if are_parameters {
                        findings.parameter(name, &field);
                    }
                    findings.name(name, &field);
                }
                walk(value, path, findings);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Names that nearly every definition has, and that say nothing.
const KEYWORDS: [&str; 5] = [
    "additionalProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "destructiveHint",
    "idempotentHint",
];

/// Whether a text is the address of one of the dialects of JSON Schema, which nearly every definition has.
fn is_known(name: Option<&&str>, text: &str) -> bool {
    const DIALECTS: [&str; 4] = [
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
    ];
    name == Some(&"$schema") && DIALECTS.contains(&text)
}

fn has_tagged_text(value: &Value) -> bool {
    match value {
        Value::String(text) => score::has_tags(text),
        Value::Array(items) => items.iter().any(has_tagged_text),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| score::has_tags(name) || has_tagged_text(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
