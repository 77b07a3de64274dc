//! Detects tool definitions that seem to address the model without the user's knowledge (prompt injection).
//!
//! Each rule has a name, an explanation and the place of the match. Most wordings alone prove nothing (a vault's
//! description names passwords, too), so matches have weights, and a definition is flagged when different rules add up.
//! A match is not proof, and a poisoned tool can evade all rules: flags inform the user and are never the only defence.
//! The only consequence is that a tool with tag characters, which are invisible to users and readable by models, is set
//! aside: they have no legitimate use.
//!
//! | where | what |
//! |---|---|
//! | `fold` | normalized forms of a text: confusables, full-width letters, accents and invisible characters resolved |
//! | `decode` | decoding of base64, hexadecimal and escapes |
//! | `rules` | patterns and their weights |
//! | `lexicon` | terms by their meaning in an instruction |
//! | `intent` | demands of a sentence, from the meanings of its words |
//! | `score` | total score of the matches in one definition |
//!
//! Every text of a definition is checked in full, names and values alike, in linear time. Flags are computed on demand,
//! so a list of ten thousand tools costs nothing until it is displayed.

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

/// A suspicious passage in a definition or in instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Rule that matched.
    pub rule: Rule,
    /// Path of the text in the definition, or `instructions`.
    pub field: String,
    /// Byte range in that text.
    pub span: Range<usize>,
    /// Matched text, truncated and sanitized.
    pub excerpt: String,
}

/// A kind of suspicious content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// Tells the model to disregard its instructions.
    OverridesInstructions,
    /// Tells the model to conceal something from the user.
    Conceals,
    /// Demands that files be read before its use.
    DemandsFiles,
    /// Imitates a system prompt.
    PseudoMarkup,
    /// Names locations of secrets.
    NamesSecrets,
    /// Demands secrets.
    CollectsSecrets,
    /// Gives instructions for tools of other servers.
    OtherTools,
    /// Names an outside recipient.
    Exfiltration,
    /// Demands the conversation.
    Conversation,
    /// Contains markup comments, which are invisible when rendered.
    HiddenMarkup,
    /// Uses blank space to push text out of view.
    BlankRun,
    /// Contains invisible characters.
    HiddenCharacters,
    /// Contains text in tag characters, which only a model can read.
    TagCharacters,
    /// Has a parameter for data that it has no use for.
    SideChannel,
    /// Demands actions without asking the user.
    SkipsConsent,
    /// Contains instructions in base64, hexadecimal or escapes.
    EncodedText,
    /// Promotes itself over other tools.
    SelfPromotion,
}

impl Rule {
    /// All rules, in declaration order.
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

    /// Stable identifier for scripts.
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

    /// One-line explanation for users.
    pub const fn about(self) -> &'static str {
        match self {
            Rule::OverridesInstructions => "tells the model to ignore its instructions",
            Rule::Conceals => "tells the model to conceal something from you",
            Rule::DemandsFiles => "demands that files are read before it is used",
            Rule::PseudoMarkup => "imitates a system prompt",
            Rule::NamesSecrets => "names locations of secrets",
            Rule::CollectsSecrets => "demands secrets",
            Rule::OtherTools => "gives instructions for tools of other servers",
            Rule::Exfiltration => "names an outside recipient for data",
            Rule::Conversation => "demands the conversation",
            Rule::HiddenMarkup => "contains hidden markup comments",
            Rule::BlankRun => "uses blank space to hide text",
            Rule::HiddenCharacters => "contains invisible characters",
            Rule::TagCharacters => "contains text in tag characters, which only a model reads",
            Rule::SideChannel => "has a parameter for data that it has no use for",
            Rule::SkipsConsent => "demands actions without asking you",
            Rule::EncodedText => "contains encoded instructions",
            Rule::SelfPromotion => "promotes itself over other tools",
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

/// Returns the suspicious passages of a tool. References to tools of the same server (`is_own`) are not suspicious;
/// [`ServerTools::flags`](super::ServerTools::flags) supplies them and is the only caller.
pub(super) fn of_tool(tool: &CatalogTool, is_own: &dyn Fn(&str) -> bool) -> Vec<Flag> {
    let name = tool.reference().tool.as_str();
    let is_own = |other: &str| other.eq_ignore_ascii_case(name) || is_own(other);
    let mut findings = Findings::new(&is_own);
    // A definition nested too deeply for this is not shown to a model either.
    if let Ok(definition) = serde_json::from_str::<Value>(tool.definition().as_str()) {
        let schema = definition.get("inputSchema");
        let properties = schema.and_then(|schema| schema.get("properties"));
        let names = properties.and_then(Value::as_object).into_iter().flatten();
        // The tool's own name counts as a parameter: data handed to it by name goes where its arguments go.
        let names = names.map(|(name, _)| name.as_str()).chain([name]);
        findings.parameters(names.map(str::to_lowercase));
        walk(&definition, &mut Vec::new(), &mut findings);
    }
    findings.flags()
}

/// Returns the suspicious passages of a text; `field` identifies it in the flags.
pub fn of_text(field: &str, text: &str) -> Vec<Flag> {
    let mut findings = Findings::new(&|_| false);
    findings.text(text, field);
    findings.flags()
}

/// Cheap pre-check: whether JSON text may contain tag characters, raw or escaped.
pub(super) fn may_have_tags(text: &str) -> bool {
    let bytes = text.as_bytes();
    let as_it_is = TAG.find(bytes).is_some();
    // The high surrogate is `\udb40`, in either case.
    as_it_is
        || HALVES.iter().any(|half| {
            half.find_iter(bytes).any(|at| {
                let before = at.checked_sub(3).and_then(|start| bytes.get(start..at));
                matches!(before, Some(b"\\ud" | b"\\uD"))
            })
        })
}

/// Whether a tool contains tag characters.
pub(super) fn has_tags(tool: &CatalogTool) -> bool {
    let Ok(definition) = serde_json::from_str::<Value>(tool.definition().as_str()) else {
        return false;
    };
    has_tagged_text(&definition)
}

/// First bytes of all tag characters, shared only with a few variation selectors.
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

/// Common names without any meaning for the rules.
const KEYWORDS: [&str; 5] = [
    "additionalProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "destructiveHint",
    "idempotentHint",
];

/// Whether a text is the URL of a JSON Schema dialect, which nearly every definition contains.
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
