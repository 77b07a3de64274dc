//! Prices of models and what an answer costs, in integers: sums of many answers must not drift.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Usage;

/// Picodollars per dollar.
const PER_DOLLAR: f64 = 1e12;
/// Picodollars per token, for a price of one dollar per million tokens.
const PER_MILLION: f64 = 1e6;

/// Price of a model, by kind of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    rates: Rates,
    /// Rates of a whole request whose input exceeds this number of tokens.
    long: Option<(u64, Rates)>,
    /// Day on which the price was read from the provider's price list.
    pub as_of: PriceDate,
}

/// Picodollars per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rates {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

/// What one or more answers cost. The JSON form has the amount in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    picodollars: u64,
    /// Day of the latest price used.
    pub as_of: PriceDate,
    /// Whether tokens of a model without a known price are missing from the amount.
    pub is_partial: bool,
}

/// A day, written `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriceDate {
    year: u16,
    month: u8,
    day: u8,
}

/// Row of the price table: dollars per million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceRow {
    pub(super) provider: String,
    pub(super) models: Vec<String>,
    as_of: PriceDate,
    #[serde(flatten)]
    rates: RateRow,
    long: Option<LongRow>,
}

#[derive(Debug, Deserialize)]
struct RateRow {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct LongRow {
    above: u64,
    #[serde(flatten)]
    rates: RateRow,
}

impl PriceRow {
    /// Whether the row is for this model: by its name, or its name and the date of a snapshot. A longer name is
    /// another model with another price.
    pub(super) fn covers(&self, id: &str) -> bool {
        let is_snapshot = |rest: &str| {
            let date = rest.strip_prefix('-').unwrap_or_default();
            let digits = date.replace('-', "");
            digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        self.models.iter().any(|model| {
            let rest = id.strip_prefix(model.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest == "-latest" || is_snapshot(rest))
        })
    }

    pub(super) fn price(&self) -> Price {
        Price {
            rates: Rates::from(&self.rates),
            long: self
                .long
                .as_ref()
                .map(|long| (long.above, Rates::from(&long.rates))),
            as_of: self.as_of,
        }
    }
}

impl From<&RateRow> for Rates {
    fn from(row: &RateRow) -> Self {
        let input = rate(row.input);
        Self {
            input,
            output: rate(row.output),
            cache_read: row.cache_read.map_or(input, rate),
            cache_write: row.cache_write.map_or(input, rate),
        }
    }
}

impl Price {
    /// What one answer costs.
    pub fn of(&self, usage: Usage) -> Cost {
        let sent = [usage.cache_read, usage.cache_write];
        let sent = sent.into_iter().fold(usage.input, u64::saturating_add);
        let rates = match self.long {
            Some((above, long)) if sent > above => long,
            _ => self.rates,
        };
        let amounts = [
            (usage.input, rates.input),
            (usage.output, rates.output),
            (usage.cache_read, rates.cache_read),
            (usage.cache_write, rates.cache_write),
        ];
        let amounts = amounts.map(|(tokens, rate)| tokens.saturating_mul(rate));
        Cost {
            picodollars: amounts.into_iter().fold(0, u64::saturating_add),
            as_of: self.as_of,
            is_partial: false,
        }
    }
}

impl Cost {
    /// The amount in US dollars.
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact below 9,000 dollars, and nearly so above"
    )]
    pub fn usd(self) -> f64 {
        self.picodollars as f64 / PER_DOLLAR
    }

    /// Adds the costs of two sums of answers. `None` is free only if no token was used.
    pub(super) fn sum(
        one: Option<Self>,
        used: u64,
        other: Option<Self>,
        more: u64,
    ) -> Option<Self> {
        let partial = |cost: Self, is_missing: bool| Self {
            is_partial: cost.is_partial || is_missing,
            ..cost
        };
        match (one, other) {
            (None, None) => None,
            (Some(cost), None) => Some(partial(cost, more > 0)),
            (None, Some(cost)) => Some(partial(cost, used > 0)),
            (Some(one), Some(other)) => Some(Self {
                picodollars: one.picodollars.saturating_add(other.picodollars),
                as_of: one.as_of.max(other.as_of),
                is_partial: one.is_partial || other.is_partial,
            }),
        }
    }
}

impl fmt::Display for Cost {
    /// At least a cent's digits; small amounts with two significant ones.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = self.usd();
        match usd {
            0.0 => formatter.write_str("$0.00"),
            ..0.0001 => formatter.write_str("< $0.0001"),
            ..0.1 => write!(formatter, "${usd:.4}"),
            _ => write!(formatter, "${usd:.2}"),
        }
    }
}

/// JSON form of a cost.
#[derive(Serialize, Deserialize)]
struct CostJson {
    usd: f64,
    as_of: PriceDate,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_partial: bool,
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = CostJson {
            usd: self.usd(),
            as_of: self.as_of,
            is_partial: self.is_partial,
        };
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = CostJson::deserialize(deserializer)?;
        Ok(Self {
            picodollars: rounded(json.usd * PER_DOLLAR),
            as_of: json.as_of,
            is_partial: json.is_partial,
        })
    }
}

impl fmt::Display for PriceDate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day } = self;
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

impl Serialize for PriceDate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PriceDate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut parts = text.splitn(3, '-');
        let date = (|| {
            Some(Self {
                year: parts.next()?.parse().ok()?,
                month: parts.next()?.parse().ok()?,
                day: parts.next()?.parse().ok()?,
            })
        })();
        date.filter(|date| date.to_string() == text)
            .ok_or_else(|| D::Error::custom(format!("not a date: {text}")))
    }
}

fn rate(dollars_per_million: f64) -> u64 {
    rounded(dollars_per_million * PER_MILLION)
}

/// Saturates, and turns a negative value or NaN into zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, as wanted"
)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::super::models::{Kind, describe};
    use super::*;

    fn usage(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            ..Usage::default()
        }
    }

    #[test]
    fn an_answer_costs_what_the_table_says() {
        let check = |kind, id: &str, usage: Usage, expected: Option<&str>| {
            let price = describe(kind, id).price;
            let cost = price.map(|price| price.of(usage).to_string());
            assert_eq!(cost.as_deref(), expected, "{id}");
        };
        let million = usage(1_000_000, 1_000_000);
        check(Kind::Anthropic, "claude-haiku-4-5", million, Some("$6.00"));
        check(
            Kind::Anthropic,
            "claude-haiku-4-5-20251001",
            million,
            Some("$6.00"),
        );
        check(
            Kind::Anthropic,
            "claude-sonnet-4-5",
            usage(1_000, 100),
            Some("$0.0045"),
        );
        // A longer name is another model.
        check(Kind::OpenAi, "gpt-5-nano", million, Some("$0.45"));
        check(Kind::OpenAi, "gpt-5-2025-08-07", million, Some("$11.25"));
        check(Kind::OpenAi, "gpt-5-something", million, None);
        check(Kind::OpenAi, "gpt-5.5-pro-max", million, None);
        // An endpoint of one's own has its own prices.
        check(Kind::Local, "gpt-5", million, None);
        // The whole of a long request costs more.
        check(Kind::OpenAi, "gpt-5.5", usage(272_000, 0), Some("$1.36"));
        check(Kind::OpenAi, "gpt-5.5", usage(272_001, 0), Some("$2.72"));
        let cached = Usage {
            cache_read: 1_000_000,
            cache_write: 1_000_000,
            ..Usage::default()
        };
        check(Kind::Anthropic, "claude-sonnet-4-5", cached, Some("$4.05"));
        check(
            Kind::Anthropic,
            "claude-sonnet-4-5",
            usage(u64::MAX, 1),
            Some("$18446744.07"),
        );
    }

    #[test]
    fn a_sum_says_what_is_missing() {
        let price = describe(Kind::OpenAi, "gpt-5").price.unwrap();
        let priced = |usage: Usage| Usage {
            cost: Some(price.of(usage)),
            ..usage
        };
        let mut sum = Usage::default();
        sum += priced(usage(100_000, 0));
        assert!(!sum.cost.unwrap().is_partial);
        sum += Usage::default();
        assert!(!sum.cost.unwrap().is_partial);
        sum += usage(5, 5);
        let cost = sum.cost.unwrap();
        assert!(cost.is_partial);
        assert_eq!(cost.to_string(), "$0.12");
        let mut later = usage(5, 5);
        later += priced(usage(100_000, 0));
        assert!(later.cost.unwrap().is_partial);
    }

    #[test]
    fn a_cost_survives_storage() {
        let price = describe(Kind::OpenAi, "gpt-5").price.unwrap();
        let cost = price.of(usage(12_345, 678));
        let json = serde_json::to_string(&cost).unwrap();
        assert_eq!(serde_json::from_str::<Cost>(&json).unwrap(), cost, "{json}");
        assert!(json.contains(r#""usd":0.02221125,"#), "{json}");
        for bad in ["2026-1-01", "yesterday", "2026-01-01-01", ""] {
            let json = format!(r#"{{"usd":1.0,"as_of":"{bad}"}}"#);
            assert!(serde_json::from_str::<Cost>(&json).is_err(), "{bad}");
        }
    }
}
