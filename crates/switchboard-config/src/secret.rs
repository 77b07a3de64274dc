//! Text that must not be seen.

use std::fmt;

/// What stands in place of a secret, everywhere.
pub const MASK: &str = "********";

/// A value that cannot be printed: `Debug` and `Display` show a mask, and it does not serialise.
///
/// [`Secret::expose`] is the only way to the text, so a search for that word finds every use.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that has to send or store it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Changes the text in place.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.0);
    }

    /// The text as it may be shown: a value made of references such as `${TOKEN}` names where the secret
    /// is, not what it is, and is shown as written; everything else is masked.
    pub fn shown(&self) -> &str {
        if crate::expand::is_only_references(&self.0) {
            &self.0
        } else {
            MASK
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}
