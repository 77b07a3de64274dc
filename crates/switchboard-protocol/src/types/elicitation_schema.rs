//! Form schemas of elicitation: a flat object with primitive fields.

use std::borrow::Cow;

use super::wire::{
    Decode, DecodeError, Encode, IntoOwned, Lint, Linter, List, Map, Number, RawObject, Reader,
};
use crate::macros::{serde_bridge, wire_enum, wire_struct};

wire_struct! {
    /// A form: an object schema whose properties are primitive.
    pub struct ElicitationSchema<'a> {
        required {
            /// Fields of the form, in order.
            properties("properties"): Map<'a, PrimitiveSchema<'a>>,
        }
        optional {
            /// `object`. Every revision requires it, but it carries no information.
            kind("type"): Cow<'a, str>,
            /// JSON Schema dialect.
            schema("$schema"): Cow<'a, str>,
        }
        collections {
            /// Names of the required fields.
            required("required"): List<'a, Cow<'a, str>>,
        }
    }
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub enum PrimitiveSchema<'a> {
    /// A text field.
    String(StringSchema<'a>),
    /// A number field.
    Number(NumberSchema<'a>),
    /// A checkbox.
    Boolean(BooleanSchema<'a>),
    /// Single choice from values.
    UntitledSingleSelect(UntitledSingleSelectEnumSchema<'a>),
    /// Single choice from values with titles.
    TitledSingleSelect(TitledSingleSelectEnumSchema<'a>),
    /// Multiple choice from values.
    UntitledMultiSelect(UntitledMultiSelectEnumSchema<'a>),
    /// Multiple choice from values with titles.
    TitledMultiSelect(TitledMultiSelectEnumSchema<'a>),
    /// Single choice with titles in `enumNames`.
    LegacyTitled(LegacyTitledEnumSchema<'a>),
    /// A field that no known revision defines, stored verbatim.
    Unknown(RawObject<'a>),
}

wire_struct! {
    /// A text field of a form.
    pub struct StringSchema<'a> {
        tag "type" = "string";
        optional {
            /// Label of the field.
            title("title"): Cow<'a, str>,
            /// Description of the field.
            description("description"): Cow<'a, str>,
            /// Minimum length in characters.
            min_length("minLength"): Number<'a>,
            /// Maximum length in characters.
            max_length("maxLength"): Number<'a>,
            /// Format of the text.
            format("format"): StringFormat<'a>,
            /// Default value of the field.
            default("default"): Cow<'a, str>,
        }
    }
}

wire_enum! {
    /// The format of a text field.
    pub enum StringFormat<'a> {
        /// An email address.
        Email = "email",
        /// An absolute URI.
        Uri = "uri",
        /// A calendar date.
        Date = "date",
        /// A date with time.
        DateTime = "date-time",
    }
}

wire_struct! {
    /// A number field of a form.
    pub struct NumberSchema<'a> {
        required {
            /// Whether fractions are allowed.
            kind("type"): NumberKind<'a>,
        }
        optional {
            /// Label of the field.
            title("title"): Cow<'a, str>,
            /// Description of the field.
            description("description"): Cow<'a, str>,
            /// Minimum value, inclusive.
            minimum("minimum"): Number<'a>,
            /// Maximum value, inclusive.
            maximum("maximum"): Number<'a>,
            /// Default value of the field.
            default("default"): Number<'a>,
        }
    }
}

wire_enum! {
    /// Whether fractions are allowed.
    pub enum NumberKind<'a> {
        /// Any number, including fractions.
        Number = "number",
        /// Whole numbers only.
        Integer = "integer",
    }
}

wire_struct! {
    /// A checkbox of a form.
    pub struct BooleanSchema<'a> {
        tag "type" = "boolean";
        optional {
            /// Label of the field.
            title("title"): Cow<'a, str>,
            /// Description of the field.
            description("description"): Cow<'a, str>,
            /// Default value of the field.
            default("default"): bool,
        }
    }
}

wire_struct! {
    /// Single choice from values.
    pub struct UntitledSingleSelectEnumSchema<'a> {
        tag "type" = "string";
        required {
            /// The values to choose from.
            values("enum"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// Label of the field.
            title("title"): Cow<'a, str>,
            /// Description of the field.
            description("description"): Cow<'a, str>,
            /// Default value of the field.
            default("default"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// Single choice from values with titles.
    pub struct TitledSingleSelectEnumSchema<'a> {
        tag "type" = "string";
        required {
            /// The values to choose from.
            one_of("oneOf"): List<'a, TitledValue<'a>>,
        }
        optional {
            /// Label of the field.
            title("title"): Cow<'a, str>,
            /// Description of the field.
            description("description"): Cow<'a, str>,
            /// Default value of the field.
            default("default"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// A value with its title.
    pub struct TitledValue<'a> {
        required {
            /// Value to submit.
            value("const"): Cow<'a, str>,
        }
        optional {
            /// Title to display. The revisions require it; without one the value is shown.
            title("title"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// Multiple choice from values.
    pub struct UntitledMultiSelectEnumSchema<'a> {
        tag "type" = "array";
        required {
            /// The values to choose from.
            items("items"): UntitledItems<'a>,
        }
        optional {
            /// Label of the field.
            title("title"): Cow<'a, str>,
            /// Description of the field.
            description("description"): Cow<'a, str>,
            /// Minimum number of choices.
            min_items("minItems"): Number<'a>,
            /// Maximum number of choices.
            max_items("maxItems"): Number<'a>,
        }
        collections {
            /// Default value of the field.
            default("default"): List<'a, Cow<'a, str>>,
        }
    }
}

wire_struct! {
    /// The values of a multiple choice.
    pub struct UntitledItems<'a> {
        required {
            /// The values to choose from.
            values("enum"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// `string`, if stated.
            kind("type"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// Multiple choice from values with titles.
    pub struct TitledMultiSelectEnumSchema<'a> {
        tag "type" = "array";
        required {
            /// The values to choose from.
            items("items"): TitledItems<'a>,
        }
        optional {
            /// Label of the field.
            title("title"): Cow<'a, str>,
            /// Description of the field.
            description("description"): Cow<'a, str>,
            /// Minimum number of choices.
            min_items("minItems"): Number<'a>,
            /// Maximum number of choices.
            max_items("maxItems"): Number<'a>,
        }
        collections {
            /// Default value of the field.
            default("default"): List<'a, Cow<'a, str>>,
        }
    }
}

wire_struct! {
    /// The values of a multiple choice, with titles.
    pub struct TitledItems<'a> {
        required {
            /// The values to choose from.
            any_of("anyOf"): List<'a, TitledValue<'a>>,
        }
    }
}

wire_struct! {
    /// Single choice with titles in `enumNames` (2025-06-18).
    pub struct LegacyTitledEnumSchema<'a> {
        tag "type" = "string";
        required {
            /// The values to choose from.
            values("enum"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// Label of the field.
            title("title"): Cow<'a, str>,
            /// Description of the field.
            description("description"): Cow<'a, str>,
            /// Default value of the field.
            default("default"): Cow<'a, str>,
        }
        collections {
            /// Titles of the values, in the same order.
            enum_names("enumNames"): List<'a, Cow<'a, str>>,
        }
    }
}

impl<'a> Decode<'a> for PrimitiveSchema<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let [tag, names, values, one_of, items] =
            reader.find(["type", "enumNames", "enum", "oneOf", "items"])?;
        // The last one if repeated, consistent with the decoder of numbers.
        let tag = tag
            .and_then(crate::raw::string_token)
            .ok_or_else(|| reader.untagged("type"))?;
        // No revision defines other items of an array.
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

/// Calls a method on the schema that a [`PrimitiveSchema`] contains.
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
