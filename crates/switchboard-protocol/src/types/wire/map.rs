//! Objects with arbitrary keys, in the peer's order.

use std::borrow::Cow;

use super::list::in_place;
use super::{
    Decode, DecodeError, DecodeErrorKind, Encode, IntoOwned, ObjectWriter, Reader, SetAside,
};

/// A JSON object with values of type `T`, decoded entry by entry like a [`List`](super::List).
#[derive(Debug, Clone, PartialEq)]
pub struct Map<'a, T> {
    /// The valid entries in order.
    pub entries: Vec<(Cow<'a, str>, T)>,
    /// The entries that are not a `T`, named by their key.
    pub set_aside: Vec<SetAside<'a>>,
    /// Whether the field was present. An empty map that was absent is not encoded.
    present: bool,
}

impl<'a, T> Map<'a, T> {
    /// An empty map that is omitted until it has entries.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
            set_aside: Vec::new(),
            present: false,
        }
    }

    /// Appends an entry, even if its key is taken.
    pub fn push(&mut self, key: impl Into<Cow<'a, str>>, value: T) {
        self.entries.push((key.into(), value));
    }

    /// The value under `key`; the last one if it is repeated.
    pub fn get(&self, key: &str) -> Option<&T> {
        self.iter()
            .rev()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// The valid entries in the peer's order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &T)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// Number of valid entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no valid entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the map is encoded: it was present, or has entries now.
    pub fn is_present(&self) -> bool {
        self.present || !self.entries.is_empty() || !self.set_aside.is_empty()
    }
}

impl<T> Default for Map<'_, T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A map that is encoded even if it is empty.
impl<'a, K: Into<Cow<'a, str>>, T> FromIterator<(K, T)> for Map<'a, T> {
    fn from_iter<I: IntoIterator<Item = (K, T)>>(entries: I) -> Self {
        Self {
            entries: entries
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
            set_aside: Vec::new(),
            present: true,
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Map<'a, T> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.begin_object()?;
        let mut map = Self::from_iter([] as [(Cow<'a, str>, T); 0]);
        let limit = reader.max_items();
        while let Some(key) = reader.next_key()? {
            let index = map.entries.len() + map.set_aside.len();
            if index >= limit {
                return Err(DecodeError::new(DecodeErrorKind::TooManyItems { limit }));
            }
            let mark = reader.mark();
            match T::decode(reader) {
                Ok(value) => map.entries.push((key.decode(), value)),
                Err(reason) => {
                    let mut entry = SetAside::take(reader, mark, index, reason)?;
                    entry.name = Some(key.decode());
                    map.set_aside.push(entry);
                }
            }
        }
        Ok(map)
    }
}

impl<T: Encode> Encode for Map<'_, T> {
    fn encode(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        in_place(&self.entries, &self.set_aside, |entry| match entry {
            Ok((key, value)) => object.entry(key, value),
            Err(bad) => object.entry(bad.name.as_ref().unwrap_or(&Cow::Borrowed("")), &bad.raw),
        });
        object.finish();
    }
}

impl<T: IntoOwned> IntoOwned for Map<'_, T> {
    type Owned = Map<'static, T::Owned>;

    fn into_owned(self) -> Self::Owned {
        Map {
            entries: self
                .entries
                .into_iter()
                .map(|(key, value)| (key.into_owned().into(), value.into_owned()))
                .collect(),
            set_aside: self.set_aside.into_owned(),
            present: self.present,
        }
    }
}
