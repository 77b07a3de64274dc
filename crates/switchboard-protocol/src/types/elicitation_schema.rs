//! The forms of elicitation: a flat object of primitive fields.

use std::borrow::Cow;

use super::wire::{
    Decode, DecodeError, Encode, IntoOwned, Lint, Linter, List, Map, Number, RawObject, Reader,
};
use crate::macros::{serde_bridge, wire_enum, wire_struct};

wire_struct! {
    /// A form: an object schema whose properties are primitive.
    pub struct ElicitationSchema<'a> {
        required {
            /// The form's fields, in order.
            properties("properties"): Map<'a, PrimitiveSchema<'a>>,
        }
        optional {
            /// `object`. Every revision requires it; no form means anything else.
            kind("type"): Cow<'a, str>,
            /// The dialect.
            schema("$schema"): Cow<'a, str>,
        }
        collections {
            /// The fields that must be filled in.
            required("required"): List<'a, Cow<'a, str>>,
        }
    }
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub enum PrimitiveSchema<'a> {
    /// A text.
    String(StringSchema<'a>),
    /// A number.
    Number(NumberSchema<'a>),
    /// Yes or no.
    Boolean(BooleanSchema<'a>),
    /// One of some values.
    UntitledSingleSelect(UntitledSingleSelectEnumSchema<'a>),
    /// One of some values that have titles.
    TitledSingleSelect(TitledSingleSelectEnumSchema<'a>),
    /// Any of some values.
    UntitledMultiSelect(UntitledMultiSelectEnumSchema<'a>),
    /// Any of some values that have titles.
    TitledMultiSelect(TitledMultiSelectEnumSchema<'a>),
    /// One of some values whose titles stand beside them.
    LegacyTitled(LegacyTitledEnumSchema<'a>),
    /// A field no revision we know has, kept as it came.
    Unknown(RawObject<'a>),
}

wire_struct! {
    /// A text.
    pub struct StringSchema<'a> {
        tag "type" = "string";
        optional {
            /// Its label.
            title("title"): Cow<'a, str>,
            /// What belongs there.
            description("description"): Cow<'a, str>,
            /// Its least length.
            min_length("minLength"): Number<'a>,
            /// Its greatest length.
            max_length("maxLength"): Number<'a>,
            /// What kind of text it is.
            format("format"): StringFormat<'a>,
            /// What is filled in at first.
            default("default"): Cow<'a, str>,
        }
    }
}

wire_enum! {
    /// A kind of text.
    pub enum StringFormat<'a> {
        /// An e-mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A day.
        Date = "date",
        /// A moment.
        DateTime = "date-time",
    }
}

wire_struct! {
    /// A number.
    pub struct NumberSchema<'a> {
        required {
            /// Whether fractions are allowed.
            kind("type"): NumberKind<'a>,
        }
        optional {
            /// Its label.
            title("title"): Cow<'a, str>,
            /// What belongs there.
            description("description"): Cow<'a, str>,
            /// The least.
            minimum("minimum"): Number<'a>,
            /// The greatest.
            maximum("maximum"): Number<'a>,
            /// What is filled in at first.
            default("default"): Number<'a>,
        }
    }
}

wire_enum! {
    /// Whether fractions are allowed.
    pub enum NumberKind<'a> {
        /// They are.
        Number = "number",
        /// They are not.
        Integer = "integer",
    }
}

wire_struct! {
    /// Yes or no.
    pub struct BooleanSchema<'a> {
        tag "type" = "boolean";
        optional {
            /// Its label.
            title("title"): Cow<'a, str>,
            /// What it decides.
            description("description"): Cow<'a, str>,
            /// What is chosen at first.
            default("default"): bool,
        }
    }
}

wire_struct! {
    /// One of some values.
    pub struct UntitledSingleSelectEnumSchema<'a> {
        tag "type" = "string";
        required {
            /// The values.
            values("enum"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// Its label.
            title("title"): Cow<'a, str>,
            /// What belongs there.
            description("description"): Cow<'a, str>,
            /// What is chosen at first.
            default("default"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// One of some values that have titles.
    pub struct TitledSingleSelectEnumSchema<'a> {
        tag "type" = "string";
        required {
            /// The values.
            one_of("oneOf"): List<'a, TitledValue<'a>>,
        }
        optional {
            /// Its label.
            title("title"): Cow<'a, str>,
            /// What belongs there.
            description("description"): Cow<'a, str>,
            /// What is chosen at first.
            default("default"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// A value with its title.
    pub struct TitledValue<'a> {
        required {
            /// The value.
            value("const"): Cow<'a, str>,
        }
        optional {
            /// Its label. The revisions require it; the value labels itself without one.
            title("title"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// Any of some values.
    pub struct UntitledMultiSelectEnumSchema<'a> {
        tag "type" = "array";
        required {
            /// The values.
            items("items"): UntitledItems<'a>,
        }
        optional {
            /// Its label.
            title("title"): Cow<'a, str>,
            /// What belongs there.
            description("description"): Cow<'a, str>,
            /// How many at least.
            min_items("minItems"): Number<'a>,
            /// How many at most.
            max_items("maxItems"): Number<'a>,
        }
        collections {
            /// What is chosen at first.
            default("default"): List<'a, Cow<'a, str>>,
        }
    }
}

wire_struct! {
    /// The values of a choice.
    pub struct UntitledItems<'a> {
        required {
            /// The values.
            values("enum"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// `string`.
            kind("type"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// Any of some values that have titles.
    pub struct TitledMultiSelectEnumSchema<'a> {
        tag "type" = "array";
        required {
            /// The values.
            items("items"): TitledItems<'a>,
        }
        optional {
            /// Its label.
            title("title"): Cow<'a, str>,
            /// What belongs there.
            description("description"): Cow<'a, str>,
            /// How many at least.
            min_items("minItems"): Number<'a>,
            /// How many at most.
            max_items("maxItems"): Number<'a>,
        }
        collections {
            /// What is chosen at first.
            default("default"): List<'a, Cow<'a, str>>,
        }
    }
}

wire_struct! {
    /// The values of a choice, with titles.
    pub struct TitledItems<'a> {
        required {
            /// The values.
            any_of("anyOf"): List<'a, TitledValue<'a>>,
        }
    }
}

wire_struct! {
    /// One of some values whose titles stand beside them (the form of 2025-06-18).
    pub struct LegacyTitledEnumSchema<'a> {
        tag "type" = "string";
        required {
            /// The values.
            values("enum"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// Its label.
            title("title"): Cow<'a, str>,
            /// What belongs there.
            description("description"): Cow<'a, str>,
            /// What is chosen at first.
            default("default"): Cow<'a, str>,
        }
        collections {
            /// The values' titles, in the same order.
            enum_names("enumNames"): List<'a, Cow<'a, str>>,
        }
    }
}

impl<'a> Decode<'a> for PrimitiveSchema<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let [tag, names, values, one_of, items] =
            reader.find(["type", "enumNames", "enum", "oneOf", "items"])?;
        // The last one where it is there twice, since that is the one the number's own decoder keeps.
        let tag = tag
            .and_then(crate::raw::string_token)
            .ok_or_else(|| reader.untagged("type"))?;
        // What else an array's items are, no revision says.
        let titled_items = || items.is_some_and(|items| has_field(items, "anyOf"));
        let untitled_items = || items.is_some_and(|items| has_field(items, "enum"));
        match &*tag {
            "string" if names.is_some() => Decode::decode(reader).map(Self::LegacyTitled),
            "string" if values.is_some() => Decode::decode(reader).map(Self::UntitledSingleSelect),
            "string" if one_of.is_some() => Decode::decode(reader).map(Self::TitledSingleSelect),
            "string" => Decode::decode(reader).map(Self::String),
            "number" | "integer" => Decode::decode(reader).map(Self::Number),
            "boolean" => Decode::decode(reader).map(Self::Boolean),
            "array" if titled_items() => Decode::decode(reader).map(Self::TitledMultiSelect),
            "array" if untitled_items() => Decode::decode(reader).map(Self::UntitledMultiSelect),
            _ => Decode::decode(reader).map(Self::Unknown),
        }
    }
}

fn has_field(object: &str, name: &str) -> bool {
    let reader = Reader::over_valid(object, &crate::Limits::DEFAULT);
    matches!(reader.find([name]), Ok([Some(_)]))
}

/// Applies one method to whichever schema a [`PrimitiveSchema`] holds.
macro_rules! each_schema {
    ($schema:expr, $value:ident => $body:expr) => {
        match $schema {
            PrimitiveSchema::String($value) => $body,
            PrimitiveSchema::Number($value) => $body,
            PrimitiveSchema::Boolean($value) => $body,
            PrimitiveSchema::UntitledSingleSelect($value) => $body,
            PrimitiveSchema::TitledSingleSelect($value) => $body,
            PrimitiveSchema::UntitledMultiSelect($value) => $body,
            PrimitiveSchema::TitledMultiSelect($value) => $body,
            PrimitiveSchema::LegacyTitled($value) => $body,
            PrimitiveSchema::Unknown($value) => $body,
        }
    };
}

impl Encode for PrimitiveSchema<'_> {
    fn encode(&self, out: &mut String) {
        each_schema!(self, schema => schema.encode(out));
    }
}

impl Lint for PrimitiveSchema<'_> {
    fn lint(&self, linter: &mut Linter) {
        each_schema!(self, schema => schema.lint(linter));
    }
}

impl IntoOwned for PrimitiveSchema<'_> {
    type Owned = PrimitiveSchema<'static>;

    fn into_owned(self) -> Self::Owned {
        use PrimitiveSchema as P;
        match self {
            Self::String(schema) => P::String(schema.into_owned()),
            Self::Number(schema) => P::Number(schema.into_owned()),
            Self::Boolean(schema) => P::Boolean(schema.into_owned()),
            Self::UntitledSingleSelect(schema) => P::UntitledSingleSelect(schema.into_owned()),
            Self::TitledSingleSelect(schema) => P::TitledSingleSelect(schema.into_owned()),
            Self::UntitledMultiSelect(schema) => P::UntitledMultiSelect(schema.into_owned()),
            Self::TitledMultiSelect(schema) => P::TitledMultiSelect(schema.into_owned()),
            Self::LegacyTitled(schema) => P::LegacyTitled(schema.into_owned()),
            Self::Unknown(schema) => P::Unknown(schema.into_owned()),
        }
    }
}

serde_bridge!(PrimitiveSchema);
