//! Lists that tolerate invalid entries.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use super::{Decode, DecodeError, DecodeErrorKind, Encode, IntoOwned, Raw, Reader};
use crate::limits::Limits;

/// A JSON array of `T`, decoded entry by entry.
///
/// An entry that is not a `T` is set aside with the reason. The list behaves like a `Vec` of the valid entries and is
/// encoded with the invalid ones in their original positions, so that forwarding a list loses nothing. Clear
/// [`List::set_aside`] to forward only the valid ones.
///
/// A single `T` without an array is a list of one, and an empty object is an empty list, because some languages do not
/// distinguish them. Both are reported as defects and encoded verbatim; `List::from(items)` is encoded as an array.
#[derive(Debug, Clone, PartialEq)]
pub struct List<'a, T> {
    /// The valid entries in order.
    pub items: Vec<T>,
    /// The entries that are not a `T`, in order.
    pub set_aside: Vec<SetAside<'a>>,
    form: Form,
}

/// How a list is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Omitted while it is empty: the field was absent.
    Absent,
    /// As an array.
    Array,
    /// As its only entry.
    Lone,
    /// As an empty object.
    EmptyObject,
}

/// An entry that could not be decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct SetAside<'a> {
    /// Its position among all entries, valid and invalid.
    pub index: usize,
    /// Its key, name, URI, id or type, if available.
    pub name: Option<Cow<'a, str>>,
    /// The error of decoding it.
    pub reason: DecodeError,
    /// The entry, verbatim.
    pub raw: Raw<'a>,
}

impl<T> List<'_, T> {
    /// An empty list that is omitted until it has entries.
    pub const fn new() -> Self {
        Self {
            items: Vec::new(),
            set_aside: Vec::new(),
            form: Form::Absent,
        }
    }

    /// Whether the list is encoded: it was present, or has entries now.
    pub fn is_present(&self) -> bool {
        self.form != Form::Absent || !self.items.is_empty() || !self.set_aside.is_empty()
    }
}

impl<'a, T: Decode<'a>> List<'a, T> {
    /// Decodes a value that is not an array: a single entry, or an empty object.
    #[cold]
    fn decode_without_array(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wrong = reader.wrong_type("an array");
        let first = reader.peek();
        let mark = reader.mark();
        // `null` is not an entry, even if `T` accepts it: it means that there is no list.
        if first == b'n' {
            return Err(wrong);
        }
        if first == b'{' && matches!(reader.is_empty_object(), Ok(true)) {
            reader.raw()?;
            return Ok(Self {
                form: Form::EmptyObject,
                ..Self::new()
            });
        }
        match T::decode(reader) {
            Ok(item) => Ok(Self {
                items: vec![item],
                set_aside: Vec::new(),
                form: Form::Lone,
            }),
            Err(error) if error.is_malformed() => Err(error),
            Err(_) => {
                reader.rewind(mark);
                Err(wrong)
            }
        }
    }
}

impl<T: Encode> List<'_, T> {
    /// The encoding without an array; `None` if it is an array.
    pub(super) fn without_array(&self) -> Option<Cow<'static, str>> {
        match (self.form, self.items.as_slice()) {
            (Form::Lone, [item]) if self.set_aside.is_empty() => {
                Some(Cow::Owned(super::encode(item)))
            }
            (Form::EmptyObject, []) if self.set_aside.is_empty() => Some(Cow::Borrowed("{}")),
            _ => None,
        }
    }
}

impl<'a> SetAside<'a> {
    /// Sets aside the entry that starts at `mark`, and moves past it.
    #[cold]
    pub(super) fn take(
        reader: &mut Reader<'a>,
        mark: usize,
        index: usize,
        reason: DecodeError,
    ) -> Result<Self, DecodeError> {
        if reason.is_malformed() {
            return Err(reason);
        }
        reader.rewind(mark);
        let text = reader.raw()?;
        Ok(Self {
            index,
            name: Self::find_name(text),
            reason,
            raw: Raw::from_valid(text),
        })
    }

    /// Finds a member that identifies the entry for users.
    fn find_name(text: &'a str) -> Option<Cow<'a, str>> {
        const NAMES: [&str; 6] = ["name", "uri", "uriTemplate", "taskId", "id", "type"];
        let found = Reader::over_valid(text, &Limits::DEFAULT)
            .find(NAMES)
            .ok()?;
        found
            .into_iter()
            .flatten()
            .find_map(|value| Cow::decode(&mut Reader::over_valid(value, &Limits::DEFAULT)).ok())
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A list that is encoded even if it is empty.
impl<T> From<Vec<T>> for List<'_, T> {
    fn from(items: Vec<T>) -> Self {
        Self {
            items,
            set_aside: Vec::new(),
            form: Form::Array,
        }
    }
}

impl<T> FromIterator<T> for List<'_, T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::from(Vec::from_iter(items))
    }
}

impl<T> Deref for List<'_, T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.items
    }
}

impl<T> DerefMut for List<'_, T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.items
    }
}

impl<T> IntoIterator for List<'_, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'l, T> IntoIterator for &'l List<'_, T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for List<'a, T> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if reader.peek() != b'[' {
            return Self::decode_without_array(reader);
        }
        reader.begin_array()?;
        let mut list = Self::from(Vec::new());
        let limit = reader.max_items();
        while reader.next_item()? {
            let index = list.items.len() + list.set_aside.len();
            if index >= limit {
                return Err(DecodeError::new(DecodeErrorKind::TooManyItems { limit }));
            }
            let mark = reader.mark();
            match T::decode(reader) {
                Ok(item) => list.items.push(item),
                Err(reason) => list
                    .set_aside
                    .push(SetAside::take(reader, mark, index, reason)?),
            }
        }
        Ok(list)
    }
}

impl<T: Encode> Encode for List<'_, T> {
    fn encode(&self, out: &mut String) {
        if !matches!(self.form, Form::Absent | Form::Array)
            && let Some(text) = self.without_array()
        {
            out.push_str(&text);
            return;
        }
        out.push('[');
        let start = out.len();
        in_place(&self.items, &self.set_aside, |entry| {
            if out.len() > start {
                out.push(',');
            }
            match entry {
                Ok(item) => item.encode(out),
                Err(bad) => bad.raw.encode(out),
            }
        });
        out.push(']');
    }
}

impl<T: IntoOwned> IntoOwned for List<'_, T> {
    type Owned = List<'static, T::Owned>;

    fn into_owned(self) -> Self::Owned {
        List {
            items: self.items.into_iter().map(T::into_owned).collect(),
            set_aside: self.set_aside.into_owned(),
            form: self.form,
        }
    }
}

impl IntoOwned for Vec<SetAside<'_>> {
    type Owned = Vec<SetAside<'static>>;

    fn into_owned(self) -> Self::Owned {
        self.into_iter()
            .map(|entry| SetAside {
                index: entry.index,
                name: entry.name.into_owned(),
                reason: entry.reason,
                raw: entry.raw.into_owned(),
            })
            .collect()
    }
}

/// Visits valid and invalid entries in their original order; invalid ones beyond the end come last.
pub(super) fn in_place<'v, 'a, T>(
    items: &'v [T],
    set_aside: &'v [SetAside<'a>],
    mut visit: impl FnMut(Result<&'v T, &'v SetAside<'a>>),
) {
    let mut bad = set_aside.iter().peekable();
    let mut position = 0;
    for item in items {
        while let Some(entry) = bad.next_if(|entry| entry.index <= position) {
            visit(Err(entry));
            position += 1;
        }
        visit(Ok(item));
        position += 1;
    }
    bad.for_each(|entry| visit(Err(entry)));
}

/// One `T`, or a list of them, where the protocol allows either.
#[derive(Debug, Clone, PartialEq)]
pub enum OneOrMany<'a, T> {
    /// A single value without an array.
    One(T),
    /// An array.
    Many(List<'a, T>),
}

impl<T> OneOrMany<'_, T> {
    /// The valid values, in either form.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(item) => std::slice::from_ref(item),
            Self::Many(list) => &list.items,
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for OneOrMany<'a, T> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if reader.peek() == b'[' {
            List::decode(reader).map(Self::Many)
        } else {
            T::decode(reader).map(Self::One)
        }
    }
}

impl<T: Encode> Encode for OneOrMany<'_, T> {
    fn encode(&self, out: &mut String) {
        match self {
            Self::One(item) => item.encode(out),
            Self::Many(list) => list.encode(out),
        }
    }
}

impl<T: IntoOwned> IntoOwned for OneOrMany<'_, T> {
    type Owned = OneOrMany<'static, T::Owned>;

    fn into_owned(self) -> Self::Owned {
        match self {
            Self::One(item) => OneOrMany::One(item.into_owned()),
            Self::Many(list) => OneOrMany::Many(list.into_owned()),
        }
    }
}
