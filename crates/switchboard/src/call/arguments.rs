//! Validates arguments against the tool's schema before the call, with errors that a model can act on.
//!
//! The schema is untrusted. References outside the document make it unusable, patterns run in linear time or under a
//! step limit, and the cost of validation in work and stack is computed before the schema is compiled. An unusable
//! schema is not the caller's fault: the arguments are passed on unchecked, and [`Checked`] gives the reason.

pub(crate) mod coerce;
mod cost;
mod plain;
mod words;

use std::collections::BTreeMap;
use std::fmt;

use jsonschema::{PatternOptions, Validator, error::ValidationErrorKind};
use serde_json::{Value, value::RawValue};
use switchboard_config::text::visible;
use switchboard_protocol::limits::depth_exceeded_at;

use plain::PlainSchema;

/// Maximum size of a schema that is compiled, in bytes.
const MAX_SCHEMA_BYTES: usize = 512 * 1024;

/// Maximum number of problems listed; the rest are counted.
const MAX_PROBLEMS: usize = 8;

/// Maximum size of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Step limit for patterns that need backtracking (look-around, back references).
const MAX_BACKTRACKING: usize = 50_000;

/// Compiled input schema of a tool.
#[derive(Debug)]
pub struct ArgumentCheck(Result<Compiled, NotChecked>);

#[derive(Debug)]
struct Compiled {
    /// Fast path for simple schemas: accepts most valid arguments without building a value.
    plain: Option<PlainSchema>,
    validator: Validator,
    /// Maximum depth of arguments at which validation has bounded cost.
    max_depth: usize,
}

/// Outcome of a validation without errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The arguments match the schema.
    Fit,
    /// The schema is unusable, so the arguments were not validated.
    NotChecked(NotChecked),
}

/// Reason why a schema cannot be used for validation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotChecked {
    /// Exceeds the size limit.
    #[error("the schema is larger than {MAX_SCHEMA_BYTES} bytes")]
    SchemaTooLarge,
    /// Reference outside the document, or one whose target depends on context.
    #[error("the schema has the reference \"{}\", which is not followed", visible(.0))]
    Reference(String),
    /// Validation has no acceptable cost bound.
    #[error("a check against the schema could take too long")]
    TooCostly,
    /// The arguments are nested too deeply for this schema.
    #[error("the arguments are nested too deep to be checked against the schema")]
    ArgumentsTooDeep,
    /// Not a valid JSON Schema.
    #[error("the schema is not valid: {0}")]
    Invalid(String),
}

/// Arguments that do not match the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentsError {
    /// Problems in the order found; at most eight.
    pub problems: Vec<ArgumentProblem>,
    /// Number of problems not listed.
    pub untold: usize,
}

/// One violation of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// Path of the value: `arguments.filters[2].since`.
    pub path: String,
    /// Expected and actual value.
    pub message: String,
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.message)
    }
}

impl fmt::Display for ArgumentsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(formatter, "{separator}{problem}")?;
        }
        match self.untold {
            0 => Ok(()),
            1 => formatter.write_str("; and one more problem"),
            more => write!(formatter, "; and {more} more problems"),
        }
    }
}

impl std::error::Error for ArgumentsError {}

impl ArgumentCheck {
    /// Compiles a schema. Never fails: an unusable schema is reported by [`Self::check`].
    pub fn compile(schema: &RawValue) -> Self {
        Self(compile(schema))
    }

    /// Validates arguments; `None` counts as an empty object.
    pub fn check(&self, arguments: Option<&RawValue>) -> Result<Checked, ArgumentsError> {
        let text = arguments.map_or("{}", RawValue::get);
        if !text.starts_with('{') {
            let value = serde_json::from_str(text).unwrap_or_default();
            let message = format!("expected an object, got {}", words::describe(&value));
            return Err(one_problem(message));
        }
        let compiled = match &self.0 {
            Ok(compiled) => compiled,
            Err(reason) => return Ok(Checked::NotChecked(reason.clone())),
        };
        let plain = compiled.plain.as_ref();
        if plain.is_some_and(|plain| plain.plainly_fits(text)) {
            return Ok(Checked::Fit);
        }
        if depth_exceeded_at(text.as_bytes(), compiled.max_depth).is_some() {
            return Ok(Checked::NotChecked(NotChecked::ArgumentsTooDeep));
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| one_problem(format!("cannot be read as JSON: {error}")))?;
        if compiled.validator.is_valid(&value) {
            return Ok(Checked::Fit);
        }
        let mut problems = Vec::new();
        let mut untold = 0;
        for error in compiled.validator.iter_errors(&value) {
            if is_our_limit(error.kind()) {
                continue;
            }
            for (path, message) in words::tell(&error) {
                if problems.len() < MAX_PROBLEMS {
                    problems.push(ArgumentProblem { path, message });
                } else {
                    untold += 1;
                }
            }
        }
        if problems.is_empty() {
            return Ok(Checked::NotChecked(NotChecked::TooCostly));
        }
        Err(ArgumentsError { problems, untold })
    }

    /// Validates arguments before a call. Models write `null` for omitted arguments: if removing those members makes
    /// the arguments valid, they are removed.
    pub fn fit(&self, arguments: &mut Option<Box<RawValue>>) -> Result<(), ArgumentsError> {
        let Err(error) = self.check(arguments.as_deref()) else {
            return Ok(());
        };
        match arguments.as_deref().and_then(without_nulls) {
            Some(stated) if self.check(Some(&stated)).is_ok() => {
                *arguments = Some(stated);
                Ok(())
            }
            _ => Err(error),
        }
    }
}

fn compile(schema: &RawValue) -> Result<Compiled, NotChecked> {
    if schema.get().len() > MAX_SCHEMA_BYTES {
        return Err(NotChecked::SchemaTooLarge);
    }
    let invalid = |message: String| NotChecked::Invalid(words::shortened(&message));
    let schema: Value =
        serde_json::from_str(schema.get()).map_err(|error| invalid(error.to_string()))?;
    let max_depth = cost::max_depth(&schema)?;
    let options = jsonschema::options()
        .offline()
        .should_validate_formats(false);
    // Most patterns need no backtracking; the others run under a limit.
    let linear = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES);
    let limited = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKING)
        .size_limit(MAX_PATTERN_BYTES);
    let validator = options
        .clone()
        .with_pattern_options(linear)
        .build(&schema)
        .or_else(|_| options.with_pattern_options(limited).build(&schema))
        .map_err(|error| invalid(error.to_string()))?;
    Ok(Compiled {
        plain: PlainSchema::of(&schema),
        validator,
        max_depth,
    })
}

/// Whether an error only means that a pattern hit its limit.
fn is_our_limit(kind: &ValidationErrorKind) -> bool {
    matches!(
        kind,
        ValidationErrorKind::BacktrackLimitExceeded { .. }
            | ValidationErrorKind::RegexEngineFailure { .. }
    )
}

fn one_problem(message: String) -> ArgumentsError {
    ArgumentsError {
        problems: vec![ArgumentProblem {
            path: words::ROOT.to_owned(),
            message,
        }],
        untold: 0,
    }
}

/// Returns the object without its `null` members; `None` if it has no such members.
fn without_nulls(arguments: &RawValue) -> Option<Box<RawValue>> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(arguments.get()).ok()?;
    let stated: BTreeMap<&String, &RawValue> = members
        .iter()
        .filter(|(_, value)| value.get() != "null")
        .map(|(name, value)| (name, *value))
        .collect();
    let has_nulls = stated.len() < members.len();
    has_nulls.then(|| serde_json::value::to_raw_value(&stated).ok())?
}
