//! Wrapper for secret text that prevents accidental output.

use std::fmt;

/// Replacement for a secret in all output.
pub const MASK: &str = "********";

/// A secret text: `Debug` and `Display` show a mask, and it does not serialise.
///
/// [`Secret::expose`] is the only access to the text, so a search for that word finds every use.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The plain text, for sending or storing it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn change(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.0);
    }

    /// The text for display: a value of only references such as `${TOKEN}` is shown as written; everything else is
    /// masked.
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
