//! How long to wait before trying again (CON-5).

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// The wait before an attempt, counted from zero: 100 ms, doubled each time up to 10 s, less up to half of it by
/// chance, so that servers that went down together do not come back in step.
pub(super) fn before_attempt(attempt: u32) -> Duration {
    let full = FIRST
        .saturating_mul(2_u32.saturating_pow(attempt))
        .min(LONGEST);
    full.mul_f64(1.0 - chance() / 2.0)
}

/// How long a connection must have lasted for the next loss to count as the first.
pub(super) const PROVEN: Duration = LONGEST;

/// A number from zero up to one.
fn chance() -> f64 {
    // Each `RandomState` has keys of its own, which is all the randomness this needs.
    let random = RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(random >> 32).unwrap_or_default()) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread() {
        for (attempt, full) in [
            (0, 100),
            (1, 200),
            (2, 400),
            (6, 6_400),
            (7, 10_000),
            (40, 10_000),
        ] {
            let full = Duration::from_millis(full);
            let waits: Vec<_> = (0..64).map(|_| before_attempt(attempt)).collect();
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
}
