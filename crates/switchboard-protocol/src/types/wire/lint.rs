//! Reports the defects that were tolerated while decoding a value.

use std::borrow::Cow;
use std::fmt;

use super::{
    Decode, DecodeError, DecodeErrorKind, Encode, Extra, Found, List, Map, Nullable, Number,
    OneOrMany, Path, Raw, RawObject, Segment, SetAside,
};
use crate::printable::printable;
use crate::text::JsonStr;

/// A defect that decoding worked around.
#[derive(Debug, Clone, PartialEq)]
pub struct Defect {
    /// Path from the examined value.
    pub path: Path,
    /// The name of the entry, if it is one of a list or map.
    pub name: Option<String>,
    /// The error of decoding it.
    pub reason: DecodeError,
    /// The original JSON text.
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

/// The defects that were tolerated while decoding `value`, outermost first.
///
/// A field that exceeds only limits below the default ones is stored like any other misfit, and not reported.
pub fn defects<T: Lint + ?Sized>(value: &T) -> Vec<Defect> {
    let mut linter = Linter::default();
    value.lint(&mut linter);
    linter.defects
}

/// A value that may contain defects.
pub trait Lint {
    /// Reports the defects of this value and its parts.
    fn lint(&self, linter: &mut Linter);
}

/// Collects defects while a value is traversed.
#[derive(Debug, Default)]
pub struct Linter {
    path: Path,
    defects: Vec<Defect>,
}

impl Linter {
    /// Adds a path segment for the duration of `visit`.
    pub(crate) fn within(&mut self, segment: Segment, visit: impl FnOnce(&mut Self)) {
        self.path.0.push(segment);
        visit(self);
        self.path.0.pop();
    }

    /// Descends into a field.
    pub(crate) fn field<T: Lint>(&mut self, name: &'static str, value: &T) {
        self.within(Segment::Field(name), |linter| value.lint(linter));
    }

    /// Reports a known field that is in `extra` because its value is not a `T`; decoding it again gives the reason.
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

    /// Reports a value that was accepted although it is not an `expected`.
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
        // Positions count valid and invalid entries, as in the peer's list.
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

/// Types without parts.
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
