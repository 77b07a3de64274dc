//! Timestamps and the clock they come from.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time, in milliseconds since the Unix epoch (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Adds a duration, saturating.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }
}

impl Timestamp {
    /// Subtracts a duration, saturating.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Self(millis(since)),
            Err(before) => Self(-millis(before.duration())),
        }
    }
}

/// Source of the current time of a store.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_at_the_edges_stay_in_range() {
        let check = |found: Timestamp, expected: i64| assert_eq!(found.as_millis(), expected);
        check(Timestamp::from(UNIX_EPOCH), 0);
        check(
            Timestamp::from(UNIX_EPOCH + Duration::from_millis(1500)),
            1500,
        );
        check(
            Timestamp::from(UNIX_EPOCH - Duration::from_millis(1500)),
            -1500,
        );
        check(
            Timestamp::from_millis(5).after(Duration::from_secs(1)),
            1005,
        );
        check(Timestamp::from_millis(5).after(Duration::MAX), i64::MAX);
    }
}
