//! Names of records: the space, a constant in code, and the key, which may be untrusted input.

use std::fmt;
use std::sync::Arc;

use crate::{ErrorKind, StoreError};

/// Maximum length of a key.
pub const MAX_KEY_BYTES: usize = 1024;

/// A kind of record, such as `catalogue`. Spaces are constants of the code that owns them, never input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(&'static str);

impl Space {
    /// Creates a space. The name has 1 to 64 characters of `a-z`, `0-9` and `-`.
    ///
    /// # Panics
    /// If the name is invalid. In a `const`, this is a compile error.
    pub const fn new(name: &'static str) -> Self {
        let bytes = name.as_bytes();
        assert!(
            !bytes.is_empty() && bytes.len() <= 64,
            "the name of a space must have 1 to 64 characters"
        );
        let mut rest = bytes;
        while let [first, tail @ ..] = rest {
            assert!(
                first.is_ascii_lowercase() || first.is_ascii_digit() || *first == b'-',
                "the name of a space must consist of a-z, 0-9 and -"
            );
            rest = tail;
        }
        Self(name)
    }

    /// The name as passed to [`Space::new`].
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Space {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.0)
    }
}

/// The name of a record within its space. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// Checks a key: 1 to [`MAX_KEY_BYTES`] bytes without NUL, which PostgreSQL cannot store.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, StoreError> {
        let name = name.into();
        let problem = if name.is_empty() {
            "a key may not be empty"
        } else if name.len() > MAX_KEY_BYTES {
            "a key may have at most 1024 bytes"
        } else if name.contains('\0') {
            "a key may not contain the character NUL"
        } else {
            return Ok(Self(name));
        };
        Err(StoreError::new(ErrorKind::InvalidKey, problem))
    }

    /// The text as passed to [`Key::new`].
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_keys_are_rejected() {
        let check = |name: &str, expected: Result<(), ErrorKind>| {
            let found = Key::new(name).map(|key| assert_eq!(key.as_str(), name));
            assert_eq!(found.map_err(|error| error.kind), expected, "{name:?}");
        };
        check("server", Ok(()));
        check("näme with spaces/and ☎ signs\n", Ok(()));
        check(&"k".repeat(MAX_KEY_BYTES), Ok(()));
        check(&"k".repeat(MAX_KEY_BYTES + 1), Err(ErrorKind::InvalidKey));
        check("", Err(ErrorKind::InvalidKey));
        check("a\0b", Err(ErrorKind::InvalidKey));
    }
}
