//! Validates arguments against the tool's schema before the call.
//!
//! Simple schemas are checked here (`plain.rs`), the others by `switchboard-schema`. An unusable schema is not the caller's
//! fault: the arguments are passed on unchecked, and [`Checked`] gives the reason.

pub(crate) mod coerce;
mod plain;

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};
pub use switchboard_schema::{ArgumentProblem, ArgumentsError, Checked};
use switchboard_schema::{MAX_SCHEMA_BYTES, NotChecked, SchemaCheck};

use plain::PlainSchema;

/// Compiled input schema of a tool.
#[derive(Debug)]
pub struct ArgumentCheck(Result<Compiled, NotChecked>);

#[derive(Debug)]
struct Compiled {
    /// Fast path for simple schemas: accepts most valid arguments without building a value.
    plain: Option<PlainSchema>,
    schema: SchemaCheck,
}

impl ArgumentCheck {
    /// Compiles a schema. Never fails: an unusable schema is reported by [`Self::check`].
    pub fn compile(schema: &RawValue) -> Self {
        Self(compile(schema))
    }

    /// Validates arguments; `None` counts as an empty object.
    pub fn check(&self, arguments: Option<&RawValue>) -> Result<Checked, ArgumentsError> {
        let text = arguments.map_or("{}", RawValue::get);
        if !text.starts_with('{') {
            return Err(ArgumentsError::not_an_object(text));
        }
        let compiled = match &self.0 {
            Ok(compiled) => compiled,
            Err(reason) => return Ok(Checked::NotChecked(reason.clone())),
        };
        let plain = compiled.plain.as_ref();
        if plain.is_some_and(|plain| plain.plainly_fits(text)) {
            return Ok(Checked::Fit);
        }
        compiled.schema.check(text)
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
    let schema: Value =
        serde_json::from_str(schema.get()).map_err(|error| NotChecked::invalid(&error))?;
    Ok(Compiled {
        schema: SchemaCheck::compile(&schema)?,
        plain: PlainSchema::of(&schema),
    })
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
