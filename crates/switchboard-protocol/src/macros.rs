//! Macros that define the MCP types.
//!
//! Three shapes cover the protocol: an object with known fields ([`wire_struct`]), a string from an extensible set
//! ([`wire_enum`]), and an object with a tag field ([`wire_union`]). Each implements `Decode`, `Encode`, `IntoOwned`
//! and `Lint`, and serde's two traits as a bridge. They are not derives, because serde's `flatten` and `untagged` copy
//! every value into a tree first, which this crate avoids.
//!
//! All types have one lifetime, that of the message they borrow from.

/// Declares an object with known fields; see `types/tool.rs` for examples.
///
/// - `tag "type" = "text"`: a field that always has this value. Decoding fails without it.
/// - `required`: decoding fails if the field is missing or has the wrong type. These are the parameters of `new`.
/// - `optional`: an `Option`. A value of the wrong type counts as absent and is stored in `extra`.
/// - `collections`: a `List` or `Map`, as lenient as `optional` and empty when absent.
///
/// Every struct ends with `extra`, the unknown fields. If a field is repeated, its last value counts, as in most JSON
/// parsers.
macro_rules! wire_struct {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident<$life:lifetime> {
            $(tag $tag:literal = $tag_value:literal;)?
            $(required {$(
                $(#[$required_attribute:meta])*
                $required:ident($required_name:literal): $required_type:ty,
            )*})?
            $(optional {$(
                $(#[$optional_attribute:meta])*
                $optional:ident($optional_name:literal): $optional_type:ty,
            )*})?
            $(collections {$(
                $(#[$collection_attribute:meta])*
                $collection:ident($collection_name:literal): $collection_type:ty,
            )*})?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name<$life> {
            $($(
                $(#[$required_attribute])*
                pub $required: $required_type,
            )*)?
            $($(
                $(#[$optional_attribute])*
                pub $optional: Option<$optional_type>,
            )*)?
            $($(
                $(#[$collection_attribute])*
                pub $collection: $collection_type,
            )*)?
            /// Unknown fields, and known ones whose value has the wrong type.
            pub extra: $crate::types::wire::Extra<$life>,
        }

        impl<$life> $name<$life> {
            /// Creates a value with the required fields only.
            pub fn new($($($required: $required_type),*)?) -> Self {
                Self {
                    $($($required,)*)?
                    $($($optional: None,)*)?
                    $($($collection: <$collection_type>::new(),)*)?
                    extra: $crate::types::wire::Extra::new(),
                }
            }
        }

        $crate::macros::default_if_nothing_required!($name { $($($required)*)? });

        impl $crate::types::wire::Fields for $name<'_> {
            const FIELDS: &'static [$crate::types::wire::FieldInfo] = &[
                $($crate::types::wire::FieldInfo { name: $tag, required: true },)?
                $($($crate::types::wire::FieldInfo { name: $required_name, required: true },)*)?
                $($($crate::types::wire::FieldInfo { name: $optional_name, required: false },)*)?
                $($($crate::types::wire::FieldInfo { name: $collection_name, required: false },)*)?
            ];
        }

        impl<$life> $crate::types::wire::Decode<$life> for $name<$life> {
            fn decode(
                reader: &mut $crate::types::wire::Reader<$life>,
            ) -> Result<Self, $crate::types::wire::DecodeError> {
                $(let mut untagged = Some($tag);)?
                $($(let mut $required: Option<$required_type> = None;)*)?
                $($(let mut $optional: Option<$optional_type> = None;)*)?
                $($(let mut $collection = <$collection_type>::new();)*)?
                let mut extra = $crate::types::wire::Extra::new();
                reader.begin_object()?;
                while let Some(key) = reader.next_key()? {
                    match &*key.decode() {
                        $($tag => {
                            reader.expect_tag($tag, $tag_value)?;
                            untagged = None;
                        })?
                        $($($required_name => $required = Some(reader.required($required_name)?),)*)?
                        $($($optional_name => $optional = reader.optional(key, &mut extra)?,)*)?
                        $($($collection_name => {
                            $collection = reader.optional(key, &mut extra)?.unwrap_or_default();
                        })*)?
                        _ => reader.keep(key, &mut extra)?,
                    }
                }
                if !extra.is_empty() {
                    // A misfit that the peer corrected later would be encoded after the correction.
                    extra.retain(|name| match name {
                        $($($optional_name => $optional.is_none(),)*)?
                        $($($collection_name => !$collection.is_present(),)*)?
                        _ => true,
                    });
                }
                $(if untagged == Some($tag) {
                    return Err($crate::macros::missing($tag));
                })?
                Ok(Self {
                    $($($required: match $required {
                        Some(value) => value,
                        None => return Err($crate::macros::missing($required_name)),
                    },)*)?
                    $($($optional,)*)?
                    $($($collection,)*)?
                    extra,
                })
            }
        }

        impl $crate::types::wire::Encode for $name<'_> {
            fn encode(&self, out: &mut String) {
                let mut object = $crate::types::wire::ObjectWriter::new(out);
                $(object.field($tag, $tag_value);)?
                $($(object.field($required_name, &self.$required);)*)?
                $($(if let Some(value) = &self.$optional {
                    object.field($optional_name, value);
                })*)?
                $($(if self.$collection.is_present() {
                    object.field($collection_name, &self.$collection);
                })*)?
                self.extra.write_to(&mut object);
                object.finish();
            }
        }

        impl $crate::types::wire::IntoOwned for $name<'_> {
            type Owned = $name<'static>;

            fn into_owned(self) -> Self::Owned {
                $name {
                    $($($required: $crate::types::wire::IntoOwned::into_owned(self.$required),)*)?
                    $($($optional: $crate::types::wire::IntoOwned::into_owned(self.$optional),)*)?
                    $($($collection: $crate::types::wire::IntoOwned::into_owned(self.$collection),)*)?
                    extra: $crate::types::wire::IntoOwned::into_owned(self.extra),
                }
            }
        }

        impl $crate::types::wire::Lint for $name<'_> {
            fn lint(&self, linter: &mut $crate::types::wire::Linter) {
                // A separate function, because the fields' types name the lifetime of the input.
                fn misfits<$life>(
                    _extra: &$life $crate::types::wire::Extra<$life>,
                    _linter: &mut $crate::types::wire::Linter,
                ) {
                    $($(_linter.misfit::<$optional_type>($optional_name, _extra);)*)?
                    $($(_linter.misfit::<$collection_type>($collection_name, _extra);)*)?
                }
                misfits(&self.extra, linter);
                $($(linter.field($required_name, &self.$required);)*)?
                $($(linter.field($optional_name, &self.$optional);)*)?
                $($(linter.field($collection_name, &self.$collection);)*)?
            }
        }

        $crate::macros::serde_bridge!($name);
    };
}

/// Implements `Default` if `new` takes no parameters.
macro_rules! default_if_nothing_required {
    ($name:ident {}) => {
        impl Default for $name<'_> {
            fn default() -> Self {
                Self::new()
            }
        }
    };
    ($name:ident { $($required:ident)+ }) => {};
}

/// Declares a string from a known set. Any other string is stored as `Other`.
macro_rules! wire_enum {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident<$life:lifetime> {$(
            $(#[$variant_attribute:meta])*
            $variant:ident = $value:literal,
        )*}
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name<$life> {
            $(
                $(#[$variant_attribute])*
                $variant,
            )*
            /// A value that no known revision defines.
            Other(std::borrow::Cow<$life, str>),
        }

        impl<$life> $name<$life> {
            /// The known values, as on the wire.
            pub const VALUES: &'static [&'static str] = &[$($value),*];

            /// The value, as on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $value,)*
                    Self::Other(other) => other,
                }
            }
        }

        impl<$life> From<std::borrow::Cow<$life, str>> for $name<$life> {
            fn from(text: std::borrow::Cow<$life, str>) -> Self {
                match &*text {
                    $($value => Self::$variant,)*
                    _ => Self::Other(text),
                }
            }
        }

        impl<$life> $crate::types::wire::Decode<$life> for $name<$life> {
            fn decode(
                reader: &mut $crate::types::wire::Reader<$life>,
            ) -> Result<Self, $crate::types::wire::DecodeError> {
                reader.text().map(Self::from)
            }
        }

        impl $crate::types::wire::Encode for $name<'_> {
            fn encode(&self, out: &mut String) {
                self.as_str().encode(out);
            }
        }

        impl $crate::types::wire::IntoOwned for $name<'_> {
            type Owned = $name<'static>;

            fn into_owned(self) -> Self::Owned {
                match self {
                    $(Self::$variant => $name::$variant,)*
                    Self::Other(other) => {
                        $name::Other($crate::types::wire::IntoOwned::into_owned(other))
                    }
                }
            }
        }

        impl $crate::types::wire::Lint for $name<'_> {
            fn lint(&self, _linter: &mut $crate::types::wire::Linter) {}
        }

        $crate::macros::serde_bridge!($name);
    };
}

/// Declares an object whose variant is named by a tag field. An unknown tag is stored as `Unknown`; a missing one fails
/// to decode, unless the union declares a default (`or absent`). With `or string`, a bare string instead of the object
/// is a separate variant, and a defect.
macro_rules! wire_union {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident<$life:lifetime> by $tag:literal
            $(or absent $default:literal)? $(or string $bare:ident)?
        {$(
            $(#[$variant_attribute:meta])*
            $variant:ident($type:ty) = $value:literal,
        )*}
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name<$life> {
            $(
                $(#[$variant_attribute])*
                $variant($type),
            )*
            $(
                /// A bare string instead of an object.
                $bare($crate::text::JsonStr<$life>),
            )?
            /// A variant that no known revision defines, stored verbatim.
            Unknown($crate::types::wire::RawObject<$life>),
        }

        impl $name<'_> {
            /// The tag values of the known variants.
            pub const VALUES: &'static [&'static str] = &[$($value),*];
        }

        impl<$life> $crate::types::wire::Decode<$life> for $name<$life> {
            fn decode(
                reader: &mut $crate::types::wire::Reader<$life>,
            ) -> Result<Self, $crate::types::wire::DecodeError> {
                $(if reader.peek() == b'"' {
                    return $crate::types::wire::Decode::decode(reader).map(Self::$bare);
                })?
                let tag = reader.find_tag($tag)?;
                $(let tag = tag.or(Some(std::borrow::Cow::Borrowed($default)));)?
                match tag.as_deref() {
                    $(Some($value) => reader.nested(|reader| {
                        $crate::types::wire::Decode::decode(reader).map(Self::$variant)
                    }),)*
                    Some(_) => $crate::types::wire::Decode::decode(reader).map(Self::Unknown),
                    None => Err(reader.untagged($tag)),
                }
            }
        }

        impl $crate::types::wire::Encode for $name<'_> {
            fn encode(&self, out: &mut String) {
                match self {
                    $(Self::$variant(value) => value.encode(out),)*
                    $(Self::$bare(text) => text.encode(out),)?
                    Self::Unknown(object) => object.encode(out),
                }
            }
        }

        impl $crate::types::wire::IntoOwned for $name<'_> {
            type Owned = $name<'static>;

            fn into_owned(self) -> Self::Owned {
                match self {
                    $(Self::$variant(value) => {
                        $name::$variant($crate::types::wire::IntoOwned::into_owned(value))
                    })*
                    $(Self::$bare(text) => $name::$bare(text.into_owned()),)?
                    Self::Unknown(object) => {
                        $name::Unknown($crate::types::wire::IntoOwned::into_owned(object))
                    }
                }
            }
        }

        impl $crate::types::wire::Lint for $name<'_> {
            fn lint(&self, linter: &mut $crate::types::wire::Linter) {
                match self {
                    $(Self::$variant(value) => value.lint(linter),)*
                    $(Self::$bare(text) => {
                        linter.wrong_form("an object", &$crate::types::wire::encode(text));
                    })?
                    Self::Unknown(_) => {}
                }
            }
        }

        $(impl<$life> From<$type> for $name<$life> {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        })*

        $crate::macros::serde_bridge!($name);
    };
}

/// Implements serde's traits for a wire type through `serde_json`'s `RawValue`, so decoding needs borrowable input
/// (`from_str`, `from_slice`), and only JSON can be written.
macro_rules! serde_bridge {
    ($name:ident) => {
        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = <&'de serde_json::value::RawValue>::deserialize(deserializer)?;
                $crate::types::wire::decode(raw).map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $name<'_> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = $crate::types::wire::encode(self);
                serde_json::value::RawValue::from_string(text)
                    .map_err(serde::ser::Error::custom)?
                    .serialize(serializer)
            }
        }
    };
}

pub(crate) use {default_if_nothing_required, serde_bridge, wire_enum, wire_struct, wire_union};

use crate::types::wire::{DecodeError, DecodeErrorKind};

#[cold]
pub(crate) fn missing(field: &'static str) -> DecodeError {
    DecodeError::new(DecodeErrorKind::MissingField { field })
}
