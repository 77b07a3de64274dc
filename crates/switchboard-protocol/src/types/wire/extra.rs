//! Unknown or unusable fields of an object.

use super::{Encode, IntoOwned, ObjectWriter, Raw};
use crate::text::JsonStr;

/// Fields stored verbatim, in the peer's order.
///
/// They are encoded after the known fields. A known field is here if its value has the wrong type: it counts as absent,
/// survives a round trip, and is reported by [`defects`](super::defects).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra<'a> {
    entries: Vec<(JsonStr<'a>, Raw<'a>)>,
}

impl<'a> Extra<'a> {
    /// Creates an empty set of fields.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// Appends a field, even if its name is taken.
    pub fn push(&mut self, name: impl Into<JsonStr<'a>>, value: Raw<'a>) {
        self.entries.push((name.into(), value));
    }

    /// The value of a field; the last one if it is repeated.
    pub fn get(&self, name: &str) -> Option<&Raw<'a>> {
        self.entries
            .iter()
            .rev()
            .find(|(key, _)| *key == *name)
            .map(|(_, value)| value)
    }

    /// The fields in the peer's order.
    pub fn iter(&self) -> impl Iterator<Item = (&JsonStr<'a>, &Raw<'a>)> {
        self.entries.iter().map(|(name, value)| (name, value))
    }

    /// Number of fields, including repeated ones.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops the fields for whose name `keep` returns `false`.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.entries.retain(|(name, _)| keep(&name.decode()));
    }

    pub(crate) fn write_to(&self, object: &mut ObjectWriter<'_>) {
        for (name, value) in &self.entries {
            object.entry(name, value);
        }
    }
}

impl Encode for Extra<'_> {
    fn encode(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        self.write_to(&mut object);
        object.finish();
    }
}

impl IntoOwned for Extra<'_> {
    type Owned = Extra<'static>;

    fn into_owned(self) -> Self::Owned {
        Extra {
            entries: self
                .entries
                .into_iter()
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        }
    }
}
