//! Exponential backoff with jitter for reconnect attempts.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use crate::options::Backoff;

impl Backoff {
    /// The wait before an attempt, counted from zero: the initial wait, multiplied by the factor per attempt up to the
    /// longest, minus up to half at random, so that servers that failed together do not reconnect in step.
    pub(super) fn before_attempt(&self, attempt: u32) -> Duration {
        let times = self.factor.powi(i32::try_from(attempt).unwrap_or(i32::MAX));
        let full = self.initial.as_secs_f64() * times;
        // Compared as floats: an overflowing product cannot be converted to a `Duration`.
        let full = if full < self.longest.as_secs_f64() {
            Duration::from_secs_f64(full)
        } else {
            self.longest
        };
        full.mul_f64(1.0 - chance() / 2.0)
    }

    /// How long a connection must have lasted for the attempts to be counted from zero again.
    pub(super) fn proven(&self) -> Duration {
        self.longest
    }
}

/// A random number in [0, 1).
fn chance() -> f64 {
    // Each `RandomState` has its own random keys, which is random enough here.
    let random = RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(random >> 32).unwrap_or_default()) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(backoff: &Backoff, waits: &[(u32, u64)]) {
        for (attempt, full) in waits {
            let full = Duration::from_millis(*full);
            let waits: Vec<_> = (0..64).map(|_| backoff.before_attempt(*attempt)).collect();
            assert!(
                waits.iter().all(|wait| *wait <= full && *wait >= full / 2),
                "{attempt}: {waits:?}"
            );
            assert!(
                waits.iter().any(|wait| *wait != waits[0]),
                "{attempt}: no spread"
            );
        }
    }

    #[test]
    fn waits_grow_up_to_the_longest_and_are_spread() {
        let doubling = [
            (0, 100),
            (1, 200),
            (2, 400),
            (6, 6_400),
            (7, 10_000),
            (40, 10_000),
            (u32::MAX, 10_000),
        ];
        check(&Backoff::default(), &doubling);
    }

    #[test]
    fn waits_are_what_was_set() {
        let slow = Backoff {
            initial: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            factor: 3.0,
        };
        check(&slow, &[(0, 1_000), (1, 3_000), (3, 27_000), (4, 60_000)]);
        let steady = Backoff {
            factor: 1.0,
            ..slow
        };
        check(&steady, &[(0, 1_000), (1, 1_000), (u32::MAX, 1_000)]);
        let contradictory = Backoff {
            initial: Duration::from_secs(5),
            longest: Duration::from_secs(2),
            factor: 2.0,
        };
        check(&contradictory, &[(0, 2_000), (3, 2_000)]);
        assert_eq!(slow.proven(), Duration::from_secs(60));
    }
}
