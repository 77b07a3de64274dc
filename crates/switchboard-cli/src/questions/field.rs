//! One field of a form: its constraints, and parsing of typed values.

use serde_json::{Number as JsonNumber, Value};
use switchboard_protocol::types::elicitation_schema::{
    NumberKind, PrimitiveSchema, StringFormat, TitledValue,
};
use switchboard_protocol::types::wire::{List, Number};
use url::Url;

use super::safe;

/// Choices listed; the others can still be typed.
pub(super) const MAX_LISTED_CHOICES: usize = 30;

#[derive(Debug, PartialEq)]
pub(super) struct Field {
    /// The key in the response.
    pub(super) name: String,
    /// Sanitized.
    pub(super) label: String,
    /// The description, sanitized.
    pub(super) about: Option<String>,
    pub(super) required: bool,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    Text {
        least: Option<u64>,
        most: Option<u64>,
        format: Option<Format>,
        default: Option<String>,
    },
    Number {
        is_integer: bool,
        least: Option<f64>,
        most: Option<f64>,
        default: Option<String>,
    },
    Boolean {
        default: Option<bool>,
    },
    One {
        choices: Vec<Choice>,
        default: Option<String>,
    },
    Many {
        choices: Vec<Choice>,
        least: u64,
        most: Option<u64>,
        default: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Email,
    Uri,
    Date,
    DateTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) value: String,
    /// Sanitized.
    pub(super) title: String,
}

impl Field {
    /// Converts a field of a schema; `None` for a type that no revision defines.
    pub(super) fn of(name: &str, schema: &PrimitiveSchema<'_>, required: bool) -> Option<Self> {
        use PrimitiveSchema as P;
        let plain = |values: &List<'_, std::borrow::Cow<'_, str>>| {
            let values = values.items.iter();
            values.map(|value| Choice::new(value, None)).collect()
        };
        let titled = |values: &List<'_, TitledValue<'_>>| {
            let values = values.items.iter();
            let choice = |each: &TitledValue<'_>| Choice::new(&each.value, each.title.as_deref());
            values.map(choice).collect()
        };
        let owned = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(str::to_owned);
        let several = |choices,
                       bounds: [&Option<Number<'_>>; 2],
                       default: &List<'_, std::borrow::Cow<'_, str>>| {
            let [least, most] = bounds.map(|bound| bound.as_ref().and_then(Number::as_u64));
            let default = default.items.iter();
            Kind::Many {
                choices,
                least: least.unwrap_or(0),
                most,
                default: default.map(|value| value.clone().into_owned()).collect(),
            }
        };
        let (title, about, kind) = match schema {
            P::String(text) => (
                &text.title,
                &text.description,
                Kind::Text {
                    least: text.min_length.as_ref().and_then(Number::as_u64),
                    most: text.max_length.as_ref().and_then(Number::as_u64),
                    format: text.format.as_ref().and_then(Format::of),
                    default: owned(&text.default),
                },
            ),
            P::Number(number) => (
                &number.title,
                &number.description,
                Kind::Number {
                    is_integer: number.kind == NumberKind::Integer,
                    least: number.minimum.as_ref().map(Number::as_f64),
                    most: number.maximum.as_ref().map(Number::as_f64),
                    default: number
                        .default
                        .as_ref()
                        .map(|number| number.get().to_owned()),
                },
            ),
            P::Boolean(boolean) => (
                &boolean.title,
                &boolean.description,
                Kind::Boolean {
                    default: boolean.default,
                },
            ),
            P::UntitledSingleSelect(one) => (
                &one.title,
                &one.description,
                Kind::One {
                    choices: plain(&one.values),
                    default: owned(&one.default),
                },
            ),
            P::TitledSingleSelect(one) => (
                &one.title,
                &one.description,
                Kind::One {
                    choices: titled(&one.one_of),
                    default: owned(&one.default),
                },
            ),
            P::LegacyTitled(one) => {
                let names = one.enum_names.items.iter().map(|name| Some(&**name));
                let names = names.chain(std::iter::repeat(None));
                let choices = one.values.items.iter().zip(names);
                (
                    &one.title,
                    &one.description,
                    Kind::One {
                        choices: choices
                            .map(|(value, name)| Choice::new(value, name))
                            .collect(),
                        default: owned(&one.default),
                    },
                )
            }
            P::UntitledMultiSelect(many) => (
                &many.title,
                &many.description,
                several(
                    plain(&many.items.values),
                    [&many.min_items, &many.max_items],
                    &many.default,
                ),
            ),
            P::TitledMultiSelect(many) => (
                &many.title,
                &many.description,
                several(
                    titled(&many.items.any_of),
                    [&many.min_items, &many.max_items],
                    &many.default,
                ),
            ),
            P::Unknown(_) => return None,
        };
        Some(Self {
            name: name.to_owned(),
            label: safe(title.as_deref().unwrap_or(name)),
            about: about.as_deref().map(safe),
            required,
            kind,
        })
    }

    /// A short description of valid input.
    pub(super) fn hint(&self) -> String {
        let mut parts = Vec::new();
        match &self.kind {
            Kind::Text {
                least,
                most,
                format,
                ..
            } => {
                if let Some(format) = format {
                    parts.push(format.about().to_owned());
                }
                parts.extend(range("character", *least, *most));
            }
            Kind::Number {
                is_integer,
                least,
                most,
                ..
            } => {
                parts.push(
                    if *is_integer {
                        "a whole number"
                    } else {
                        "a number"
                    }
                    .to_owned(),
                );
                parts.extend(match (least, most) {
                    (Some(least), Some(most)) => Some(format!("{least} to {most}")),
                    (Some(least), None) => Some(format!("at least {least}")),
                    (None, Some(most)) => Some(format!("at most {most}")),
                    (None, None) => None,
                });
            }
            Kind::Boolean { .. } => parts.push("y or n".to_owned()),
            Kind::One { .. } => parts.push("a number or a name".to_owned()),
            Kind::Many { least, most, .. } => {
                parts.push("numbers or names, separated by commas".to_owned());
                let least = (*least > 0).then_some(*least);
                parts.extend(range("value", least, *most));
            }
        }
        parts.join(", ")
    }

    /// What a list of the choices does not say itself.
    pub(super) fn list_hint(&self) -> String {
        match &self.kind {
            Kind::Many { least, most, .. } => {
                let least = (*least > 0).then_some(*least);
                range("value", least, *most).unwrap_or_default()
            }
            Kind::Boolean { .. } | Kind::One { .. } => String::new(),
            Kind::Text { .. } | Kind::Number { .. } => self.hint(),
        }
    }

    /// The possible values with their titles; empty if the value is typed.
    pub(super) fn options(&self) -> Vec<(String, Value)> {
        match &self.kind {
            Kind::Boolean { .. } => vec![
                ("yes".to_owned(), true.into()),
                ("no".to_owned(), false.into()),
            ],
            _ => self
                .choices()
                .iter()
                .map(|choice| (choice.title.clone(), choice.value.as_str().into()))
                .collect(),
        }
    }

    pub(super) fn takes_several(&self) -> bool {
        matches!(self.kind, Kind::Many { .. })
    }

    /// Checks several chosen values. `None` omits the field; the error says what is wrong.
    pub(super) fn read_several(&self, values: Vec<Value>) -> Result<Option<Value>, String> {
        if values.is_empty() && !self.required {
            return Ok(None);
        }
        if let Kind::Many { least, most, .. } = &self.kind {
            let texts = values.iter().filter_map(Value::as_str).map(str::to_owned);
            many(&texts.collect::<Vec<_>>(), *least, *most)?;
        }
        Ok(Some(values.into()))
    }

    /// The value of an empty answer, for display.
    pub(super) fn default(&self) -> Option<String> {
        match &self.kind {
            Kind::Text { default, .. } | Kind::Number { default, .. } => {
                default.as_deref().map(safe)
            }
            Kind::Boolean { default } => default.map(|yes| if yes { "y" } else { "n" }.to_owned()),
            Kind::One { choices, default } => {
                let default = default.as_deref()?;
                let chosen = choices.iter().find(|choice| choice.value == default);
                chosen.map(|choice| choice.title.clone())
            }
            Kind::Many { default, .. } => {
                let titles: Vec<String> = default.iter().map(|value| self.title(value)).collect();
                (!titles.is_empty()).then(|| titles.join(", "))
            }
        }
    }

    /// A value for display, sanitized; the title if it is a choice.
    pub(super) fn shown(&self, value: &Value) -> String {
        match value {
            Value::String(text) => self.title(text),
            Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Value::Array(values) => {
                let shown: Vec<String> = values.iter().map(|value| self.shown(value)).collect();
                shown.join(", ")
            }
            other => safe(&other.to_string()),
        }
    }

    /// The title of a choice, or the sanitized value.
    fn title(&self, value: &str) -> String {
        let chosen = self.choices().iter().find(|choice| choice.value == value);
        chosen.map_or_else(|| safe(value), |choice| choice.title.clone())
    }

    pub(super) fn choices(&self) -> &[Choice] {
        match &self.kind {
            Kind::One { choices, .. } | Kind::Many { choices, .. } => choices,
            _ => &[],
        }
    }

    /// Parses typed text. `None` omits the field; the error says what is wrong.
    pub(super) fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let trimmed = typed.trim();
        if trimmed.is_empty() {
            return self.read_empty();
        }
        let value = match &self.kind {
            Kind::Text {
                least,
                most,
                format,
                ..
            } => text(typed, *least, *most, *format)?.into(),
            Kind::Number {
                is_integer,
                least,
                most,
                ..
            } => number(trimmed, *is_integer, *least, *most)?,
            Kind::Boolean { .. } => boolean(trimmed)?.into(),
            Kind::One { choices, .. } => chosen(trimmed, choices)?.into(),
            Kind::Many {
                choices,
                least,
                most,
                ..
            } => {
                let words = trimmed.split(',').map(str::trim);
                let mut values: Vec<String> = Vec::new();
                for word in words.filter(|word| !word.is_empty()) {
                    let value = chosen(word, choices)?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                many(&values, *least, *most)?;
                values.into()
            }
        };
        Ok(Some(value))
    }

    fn read_empty(&self) -> Result<Option<Value>, String> {
        let value = match &self.kind {
            Kind::Text {
                least,
                most,
                format,
                default: Some(default),
            } => text(default, *least, *most, *format)?.into(),
            Kind::Number {
                is_integer,
                least,
                most,
                default: Some(default),
            } => number(default, *is_integer, *least, *most)?,
            Kind::Boolean {
                default: Some(default),
            } => (*default).into(),
            Kind::One {
                choices,
                default: Some(default),
            } if choices.iter().any(|choice| choice.value == *default) => default.as_str().into(),
            Kind::Many {
                choices,
                least,
                most,
                default,
            } if !default.is_empty() => {
                let mut values = Vec::new();
                for value in default {
                    values.push(chosen(value, choices)?);
                }
                many(&values, *least, *most)?;
                values.into()
            }
            Kind::Many { least: 0, .. } if self.required => Value::Array(Vec::new()),
            _ if self.required => return Err("this field is required".to_owned()),
            _ => return Ok(None),
        };
        Ok(Some(value))
    }
}

impl Choice {
    fn new(value: &str, title: Option<&str>) -> Self {
        Self {
            value: value.to_owned(),
            title: safe(title.unwrap_or(value)),
        }
    }
}

impl Format {
    fn of(format: &StringFormat<'_>) -> Option<Self> {
        match format {
            StringFormat::Email => Some(Self::Email),
            StringFormat::Uri => Some(Self::Uri),
            StringFormat::Date => Some(Self::Date),
            StringFormat::DateTime => Some(Self::DateTime),
            StringFormat::Other(_) => None,
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address",
            Self::Uri => "a URL such as https://…",
            Self::Date => "a date such as 2026-11-16",
            Self::DateTime => "a timestamp such as 2026-11-16T09:30:00Z",
        }
    }

    fn fits(self, text: &str) -> bool {
        match self {
            Self::Email => text.rsplit_once('@').is_some_and(|(person, place)| {
                let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
                is_word(person)
                    && is_word(place)
                    && !place.starts_with('.')
                    && !place.ends_with('.')
            }),
            Self::Uri => Url::parse(text).is_ok(),
            Self::Date => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Self::DateTime => is_date_time(text),
        }
    }
}

/// Whether a text is an RFC 3339 timestamp with a time zone. What `jiff` accepts beyond that is refused.
fn is_date_time(text: &str) -> bool {
    let is_zoned = match text.len().checked_sub(6).and_then(|at| text.get(at..)) {
        Some(zone) if zone.starts_with(['+', '-']) => zone.get(1..) < Some("24"),
        _ => text.ends_with(['Z', 'z']),
    };
    let separators = text.get(10..11).zip(text.get(16..17));
    let is_full = matches!(separators, Some(("T" | "t", ":")));
    is_zoned && is_full && text.parse::<jiff::Timestamp>().is_ok()
}

fn text(
    typed: &str,
    least: Option<u64>,
    most: Option<u64>,
    format: Option<Format>,
) -> Result<String, String> {
    let typed = if format.is_some() {
        typed.trim()
    } else {
        typed
    };
    let length = typed.chars().count() as u64;
    if least.is_some_and(|least| length < least) || most.is_some_and(|most| length > most) {
        let range = range("character", least, most).unwrap_or_default();
        return Err(format!("expected {range}, got {length}"));
    }
    match format {
        Some(format) if !format.fits(typed) => Err(format!("this must be {}", format.about())),
        _ => Ok(typed.to_owned()),
    }
}

fn number(
    typed: &str,
    is_integer: bool,
    least: Option<f64>,
    most: Option<f64>,
) -> Result<Value, String> {
    let exact: Option<JsonNumber> = serde_json::from_str(typed).ok();
    let number = exact.or_else(|| JsonNumber::from_f64(typed.parse().ok()?));
    let number = number.ok_or("this is not a number")?;
    let value = number.as_f64().unwrap_or(f64::NAN);
    if is_integer && number.is_f64() {
        return Err("this must be a whole number".to_owned());
    }
    if let Some(least) = least.filter(|least| value < *least) {
        return Err(format!("this must be at least {least}"));
    }
    if let Some(most) = most.filter(|most| value > *most) {
        return Err(format!("this must be at most {most}"));
    }
    Ok(Value::Number(number))
}

fn boolean(typed: &str) -> Result<bool, String> {
    match typed.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" | "on" => Ok(true),
        "n" | "no" | "false" | "off" => Ok(false),
        _ => Err("this must be y or n".to_owned()),
    }
}

/// Resolves a choice by its value, title or number. A value takes precedence over a number.
fn chosen(typed: &str, choices: &[Choice]) -> Result<String, String> {
    let exact = |choice: &&Choice| choice.value == typed || choice.title == typed;
    let by_number = || {
        let number: usize = typed.parse().ok()?;
        choices.get(number.checked_sub(1)?)
    };
    let alike = || {
        let mut alike = choices.iter().filter(|choice| {
            choice.value.eq_ignore_ascii_case(typed) || choice.title.eq_ignore_ascii_case(typed)
        });
        alike.next().filter(|_| alike.next().is_none())
    };
    let found = choices.iter().find(exact).or_else(by_number).or_else(alike);
    match found {
        Some(choice) => Ok(choice.value.clone()),
        None => Err(format!("no such choice: \"{}\"", safe(typed))),
    }
}

fn many(values: &[String], least: u64, most: Option<u64>) -> Result<(), String> {
    let count = values.len() as u64;
    if count < least || most.is_some_and(|most| count > most) {
        let least = (least > 0).then_some(least);
        let range = range("value", least, most).unwrap_or_default();
        return Err(format!("choose {range}"));
    }
    Ok(())
}

fn range(thing: &str, least: Option<u64>, most: Option<u64>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) if least == most => Some(format!("{least} {thing}s")),
        (Some(least), Some(most)) => Some(format!("{least} to {most} {thing}s")),
        (Some(least), None) => Some(format!("at least {least} {thing}s")),
        (None, Some(most)) => Some(format!("at most {most} {thing}s")),
        (None, None) => None,
    }
}

#[cfg(test)]
#[path = "field_tests.rs"]
mod tests;
