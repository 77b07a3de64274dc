//! JSON Schema validation of a tool's arguments, with errors that a model can act on.
//!
//! The schema is untrusted. References outside the document make it unusable, patterns run in linear time or under a
//! step limit, and the cost of validation in work and stack is computed before the schema is compiled.
//!
//! A crate of its own because of its build time: the validator is generic, and would be compiled and optimized as part of
//! the host. `words.rs` writes the errors, `cost.rs` bounds the work.

mod cost;
mod words;

use std::fmt;

use jsonschema::{PatternOptions, Validator, error::ValidationErrorKind};
use serde_json::Value;
use switchboard_config::text::visible;
use switchboard_protocol::limits::depth_exceeded_at;

/// Maximum size of a schema that is compiled, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 512 * 1024;

/// Maximum number of problems listed; the rest are counted.
const MAX_PROBLEMS: usize = 8;

/// Maximum size of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Step limit for patterns that need backtracking (look-around, back references).
const MAX_BACKTRACKING: usize = 50_000;

/// Compiled schema.
#[derive(Debug)]
pub struct SchemaCheck {
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

impl ArgumentsError {
    /// Arguments that are not an object, as JSON text.
    pub fn not_an_object(arguments: &str) -> Self {
        let value = serde_json::from_str(arguments).unwrap_or_default();
        Self::one(format!(
            "expected an object, got {}",
            words::describe(&value)
        ))
    }

    fn one(message: String) -> Self {
        Self {
            problems: vec![ArgumentProblem {
                path: words::ROOT.to_owned(),
                message,
            }],
            untold: 0,
        }
    }
}

impl NotChecked {
    /// A schema that is not valid, with the message of the parser or validator.
    pub fn invalid(message: &impl fmt::Display) -> Self {
        Self::Invalid(words::shortened(&message.to_string()))
    }
}

impl SchemaCheck {
    /// Compiles a schema of at most [`MAX_SCHEMA_BYTES`].
    pub fn compile(schema: &Value) -> Result<Self, NotChecked> {
        let max_depth = cost::max_depth(schema)?;
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
            .build(schema)
            .or_else(|_| options.with_pattern_options(limited).build(schema))
            .map_err(|error| NotChecked::invalid(&error))?;
        Ok(Self {
            validator,
            max_depth,
        })
    }

    /// Validates arguments, as JSON text.
    pub fn check(&self, arguments: &str) -> Result<Checked, ArgumentsError> {
        if depth_exceeded_at(arguments.as_bytes(), self.max_depth).is_some() {
            return Ok(Checked::NotChecked(NotChecked::ArgumentsTooDeep));
        }
        let value: Value = serde_json::from_str(arguments)
            .map_err(|error| ArgumentsError::one(format!("cannot be read as JSON: {error}")))?;
        if self.validator.is_valid(&value) {
            return Ok(Checked::Fit);
        }
        let mut problems = Vec::new();
        let mut untold = 0;
        for error in self.validator.iter_errors(&value) {
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
}

/// Whether an error only means that a pattern hit its limit.
fn is_our_limit(kind: &ValidationErrorKind) -> bool {
    matches!(
        kind,
        ValidationErrorKind::BacktrackLimitExceeded { .. }
            | ValidationErrorKind::RegexEngineFailure { .. }
    )
}
