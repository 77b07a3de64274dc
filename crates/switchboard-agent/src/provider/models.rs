//! Table of known models (`models.toml`), looked up by name prefix.
//!
//! An unknown name gets the defaults of its endpoint kind. Makes no network requests.

use std::sync::LazyLock;

use serde::Deserialize;

use super::Model;
use super::price::{Price, PriceRow};

/// Default model for Anthropic.
pub(crate) const DEFAULT_ANTHROPIC: &str = "claude-sonnet-5-5";
/// Default model for `OpenAI`.
pub(crate) const DEFAULT_OPENAI: &str = "gpt-5.5";

/// Kind of endpoint that serves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Anthropic's Messages API.
    Anthropic,
    /// `OpenAI` itself.
    OpenAi,
    /// A self-hosted or third-party endpoint compatible with `OpenAI`.
    Local,
}

/// Thinking mode to request from a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingMode {
    /// Not requested.
    #[default]
    Default,
    /// The model decides when to think.
    Adaptive,
    /// The model decides when to think, and returns a summary.
    AdaptiveSummarized,
}

/// Returns the properties of a model, or the defaults of its endpoint kind.
pub(super) fn describe(kind: Kind, id: &str) -> Model {
    look_up(kind, id).model
}

/// A model, with the details of its wire format.
pub(super) struct Known {
    pub(super) model: Model,
    pub(super) thinking: ThinkingMode,
    /// Whether to disable reasoning in requests with tools.
    pub(super) no_reasoning_with_tools: bool,
    /// Whether `OpenAI` serves it best with the Responses API.
    pub(super) responses: bool,
}

/// Finds the entry with the longest matching prefix.
pub(super) fn look_up(kind: Kind, id: &str) -> Known {
    let (provider, default) = match kind {
        Kind::Anthropic => (super::anthropic::NAME, &TABLE.default.anthropic),
        Kind::OpenAi => (super::openai::NAME, &TABLE.default.openai),
        Kind::Local => (super::openai::NAME, &TABLE.default.local),
    };
    // Self-hosted servers and gateways prefix the name with a vendor or folder.
    let bare = id.rsplit('/').next().unwrap_or(id);
    let families = TABLE
        .model
        .iter()
        .filter(|family| family.provider == provider);
    let fitting = families.flat_map(|family| {
        let prefixes = family.prefixes.iter();
        let fitting = prefixes.filter(|prefix| bare.starts_with(prefix.as_str()));
        fitting.map(|prefix| (prefix.len(), &family.facts))
    });
    let facts = fitting
        .max_by_key(|(length, _)| *length)
        .map_or(default, |(_, facts)| facts);
    Known {
        model: Model {
            id: id.to_owned(),
            provider: provider.to_owned(),
            window: facts.window,
            max_output: facts.max_output,
            vision: facts.vision,
            tools: facts.tools,
            price: match kind {
                // A gateway or a server of one's own has prices of its own.
                Kind::Local => None,
                Kind::Anthropic | Kind::OpenAi => price(provider, bare),
            },
        },
        thinking: facts.thinking,
        no_reasoning_with_tools: facts.no_reasoning_with_tools,
        responses: facts.responses,
    }
}

fn price(provider: &str, id: &str) -> Option<Price> {
    let mut rows = TABLE.price.iter();
    let row = rows.find(|row| row.provider == provider && row.covers(id))?;
    Some(row.price())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    default: Defaults,
    model: Vec<Family>,
    price: Vec<PriceRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    anthropic: Facts,
    openai: Facts,
    local: Facts,
}

#[derive(Debug, Deserialize)]
struct Family {
    provider: String,
    prefixes: Vec<String>,
    #[serde(flatten)]
    facts: Facts,
}

#[derive(Debug, Deserialize)]
struct Facts {
    window: u64,
    max_output: u64,
    #[serde(default)]
    vision: bool,
    #[serde(default = "yes")]
    tools: bool,
    #[serde(default)]
    thinking: ThinkingMode,
    #[serde(default)]
    no_reasoning_with_tools: bool,
    #[serde(default)]
    responses: bool,
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::expect_used,
    reason = "the table is part of the program, and a test reads it"
)]
static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("models.toml")).expect("models.toml is right"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_counts() {
        let check = |kind: Kind, id: &str, window: u64, max_output: u64, vision: bool| {
            let model = describe(kind, id);
            let found = (model.window, model.max_output, model.vision, model.tools);
            assert_eq!(found, (window, max_output, vision, true), "{id}");
            assert_eq!(model.id, id);
        };
        check(
            Kind::Anthropic,
            "claude-sonnet-4-5-20250929",
            200_000,
            64_000,
            true,
        );
        check(Kind::Anthropic, "claude-opus-4-1", 200_000, 32_000, true);
        check(Kind::Anthropic, DEFAULT_ANTHROPIC, 1_000_000, 128_000, true);
        check(Kind::Anthropic, "claude-7", 200_000, 32_000, true);
        check(Kind::OpenAi, "gpt-4o-mini", 128_000, 16_384, true);
        check(Kind::OpenAi, DEFAULT_OPENAI, 1_050_000, 128_000, true);
        check(Kind::OpenAi, "gpt-5-mini", 400_000, 128_000, true);
        check(Kind::OpenAi, "o3-mini", 200_000, 100_000, false);
        check(Kind::Local, "openai/gpt-oss-20b", 131_072, 32_768, false);
        check(Kind::Local, "qwen3:4b", 32_768, 8_192, true);
    }

    #[test]
    fn every_family_is_sensible() {
        for family in &TABLE.model {
            let facts = &family.facts;
            let known = [super::super::anthropic::NAME, super::super::openai::NAME];
            assert!(known.contains(&family.provider.as_str()), "{family:?}");
            assert!(facts.max_output < facts.window, "{family:?}");
            assert!(!family.prefixes.is_empty(), "{family:?}");
            let thinks = facts.thinking != ThinkingMode::Default;
            let is_openai = family.provider == super::super::openai::NAME;
            let is_special = facts.no_reasoning_with_tools || facts.responses;
            assert!(is_openai || !is_special, "{family:?}");
            assert!(
                !thinks || family.provider == super::super::anthropic::NAME,
                "{family:?}"
            );
        }
    }
}
