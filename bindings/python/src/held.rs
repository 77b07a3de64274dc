//! Values that a forked child does not drop.

use std::ops::Deref;
use std::sync::Arc;

/// A value of the process that created it. A forked child has a copy of it but not of the runtime's thread, so the child
/// leaks it: dropping it there could wait for a lock that no thread releases, or end the parent's servers.
pub(crate) struct Held<T> {
    value: Arc<T>,
    process: u32,
}

impl<T> Held<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: Arc::new(value),
            process: std::process::id(),
        }
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // One reference too many, so that the value stays.
            std::mem::forget(Arc::clone(&self.value));
        }
    }
}
