//! Lists that outlive their bad entries.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use super::{Decode, DecodeError, DecodeErrorKind, Encode, IntoOwned, Raw, Reader};
use crate::limits::Limits;

/// A JSON array of `T`, decoded entry by entry.
///
/// An entry that is no `T` is set aside with the reason; the others stay. Reads like a `Vec` of the good entries
/// and is written with the bad ones back in their places, so that passing a list on loses nothing. Clear
/// [`List::set_aside`] to pass on the good ones only.
///
/// A single `T` without an array around it is a list of one, and an empty object is an empty list, because some
/// languages do not tell the two apart. Both are told as defects and written as they came; `List::from(items)` has
/// its brackets.
#[derive(Debug, Clone, PartialEq)]
pub struct List<'a, T> {
    /// The good entries in order.
    pub items: Vec<T>,
    /// The entries that are no `T`, in order.
    pub set_aside: Vec<SetAside<'a>>,
    form: Form,
}

/// How a list is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Not at all while it is empty: the field was not there.
    Absent,
    /// As an array.
    Array,
    /// As its only entry.
    Lone,
    /// As an object without members.
    EmptyObject,
}

/// An entry that could not be decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct SetAside<'a> {
    /// Its position among all entries, good and bad.
    pub index: usize,
    /// What it calls itself, where that can be had: its key, name, URI, id or type.
    pub name: Option<Cow<'a, str>>,
    /// What is wrong with it.
    pub reason: DecodeError,
    /// The entry as the peer wrote it.
    pub raw: Raw<'a>,
}

impl<T> List<'_, T> {
    /// A list that is absent until something is put into it.
    pub const fn new() -> Self {
        Self {
            items: Vec::new(),
            set_aside: Vec::new(),
            form: Form::Absent,
        }
    }

    /// Whether the list is written: it was there, or has entries now.
    pub fn is_present(&self) -> bool {
        self.form != Form::Absent || !self.items.is_empty() || !self.set_aside.is_empty()
    }
}

impl<'a, T: Decode<'a>> List<'a, T> {
    /// Reads what is no array: the one entry itself, or an object with nothing in it.
    #[cold]
    fn decode_without_array(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wrong = reader.wrong_type("an array");
        let first = reader.peek();
        let mark = reader.mark();
        // Where `null` is a value it is no entry all the same: it says that there is no list.
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
    /// What stands in place of an array, as it is written; `None` where nothing does.
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
    /// Keeps the entry that starts at `mark`, and moves past it.
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

    /// Looks for something that tells a person which entry this is.
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

/// A list that is there, even if it is empty.
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

/// Visits good and bad entries in their original order; bad ones beyond the end come last.
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
    /// A single value, not in an array.
    One(T),
    /// An array.
    Many(List<'a, T>),
}

impl<T> OneOrMany<'_, T> {
    /// The good values, however they were written.
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
