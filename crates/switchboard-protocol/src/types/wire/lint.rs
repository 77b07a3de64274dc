//! Looking a decoded value over for what was set aside.

use std::borrow::Cow;
use std::fmt;

use super::{
    Decode, DecodeError, DecodeErrorKind, Encode, Extra, Found, List, Map, Nullable, Number,
    OneOrMany, Path, Raw, RawObject, Segment, SetAside,
};
use crate::printable::printable;
use crate::text::JsonStr;

/// Something the peer got wrong that decoding worked around.
#[derive(Debug, Clone, PartialEq)]
pub struct Defect {
    /// Where it stands, seen from the value that was looked over.
    pub path: Path,
    /// What the entry calls itself, where it is an entry of a list or map.
    pub name: Option<String>,
    /// What is wrong with it.
    pub reason: DecodeError,
    /// What the peer wrote.
    pub raw: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path)?;
        if let Some(name) = &self.name {
            write!(formatter, " ({})", printable(name, 60))?;
        }
        write!(formatter, ": {}", self.reason)
    }
}

/// Every defect that was worked around while `value` was decoded, outermost first.
///
/// A field that is too long only for limits below the default ones is kept like any other misfit and not told.
pub fn defects<T: Lint + ?Sized>(value: &T) -> Vec<Defect> {
    let mut linter = Linter::default();
    value.lint(&mut linter);
    linter.defects
}

/// Something that may hold set-aside parts.
pub trait Lint {
    /// Reports what was set aside in this value and below.
    fn lint(&self, linter: &mut Linter);
}

/// Collects defects while a value is walked through.
#[derive(Debug, Default)]
pub struct Linter {
    path: Path,
    defects: Vec<Defect>,
}

impl Linter {
    /// Walks one step down for the length of `visit`.
    pub(crate) fn within(&mut self, segment: Segment, visit: impl FnOnce(&mut Self)) {
        self.path.0.push(segment);
        visit(self);
        self.path.0.pop();
    }

    /// Walks into a field.
    pub(crate) fn field<T: Lint>(&mut self, name: &'static str, value: &T) {
        self.within(Segment::Field(name), |linter| value.lint(linter));
    }

    /// Reports a known field that is in `extra` because its value is no `T`; decoding it again tells why.
    pub(crate) fn misfit<'e, T: Decode<'e>>(&mut self, name: &'static str, extra: &'e Extra<'_>) {
        if extra.is_empty() {
            return;
        }
        let Some(raw) = extra.get(name) else { return };
        if let Err(reason) = raw.decode::<T>() {
            self.within(Segment::Field(name), |linter| {
                linter.report(None, &reason, raw);
            });
        }
    }

    fn set_aside(&mut self, entry: &SetAside<'_>, segment: Segment) {
        self.within(segment, |linter| {
            linter.report(entry.name.as_deref(), &entry.reason, &entry.raw);
        });
    }

    /// Reports a value that was read although it is no `expected`.
    pub(crate) fn wrong_form(&mut self, expected: &'static str, text: &str) {
        let found = Found::from_first_byte(text.bytes().next().unwrap_or(b'n'));
        let reason = DecodeError::new(DecodeErrorKind::WrongType { expected, found });
        self.report(None, &reason, &Raw::from_valid(text));
    }

    fn report(&mut self, name: Option<&str>, reason: &DecodeError, raw: &Raw<'_>) {
        self.defects.push(Defect {
            path: self.path.clone(),
            name: name.map(str::to_owned),
            reason: reason.clone(),
            raw: raw.get().to_owned(),
        });
    }
}

impl<T: Lint + Encode> Lint for List<'_, T> {
    fn lint(&self, linter: &mut Linter) {
        if let Some(text) = self.without_array() {
            linter.wrong_form("an array", &text);
        }
        for entry in &self.set_aside {
            linter.set_aside(entry, Segment::Index(entry.index));
        }
        // Positions count good and bad entries, as the peer does.
        let mut bad = self.set_aside.iter().peekable();
        let mut position = 0;
        for item in &self.items {
            while bad.next_if(|entry| entry.index <= position).is_some() {
                position += 1;
            }
            linter.within(Segment::Index(position), |linter| item.lint(linter));
            position += 1;
        }
    }
}

impl<T: Lint> Lint for Map<'_, T> {
    fn lint(&self, linter: &mut Linter) {
        for entry in &self.set_aside {
            let key = entry.name.clone().unwrap_or_default().into_owned();
            linter.set_aside(entry, Segment::Key(key));
        }
        for (key, value) in self.iter() {
            linter.within(Segment::Key(key.to_owned()), |linter| value.lint(linter));
        }
    }
}

impl<T: Lint + Encode> Lint for OneOrMany<'_, T> {
    fn lint(&self, linter: &mut Linter) {
        match self {
            Self::One(item) => item.lint(linter),
            Self::Many(list) => list.lint(linter),
        }
    }
}

impl<T: Lint> Lint for Nullable<T> {
    fn lint(&self, linter: &mut Linter) {
        if let Self::Value(value) = self {
            value.lint(linter);
        }
    }
}

impl<T: Lint> Lint for Option<T> {
    fn lint(&self, linter: &mut Linter) {
        if let Some(value) = self {
            value.lint(linter);
        }
    }
}

impl<T: Lint> Lint for Box<T> {
    fn lint(&self, linter: &mut Linter) {
        (**self).lint(linter);
    }
}

/// Types that have no parts to set aside.
macro_rules! flawless {
    ($($type:ty),* $(,)?) => {
        $(impl Lint for $type {
            fn lint(&self, _linter: &mut Linter) {}
        })*
    };
}

flawless!(
    bool,
    Cow<'_, str>,
    JsonStr<'_>,
    Number<'_>,
    Raw<'_>,
    RawObject<'_>
);
