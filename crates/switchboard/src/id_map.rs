//! A map keyed by our own sequential IDs, which need no collision-resistant hashing.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map keyed by IDs that this program assigns.
pub(crate) type IdMap<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// A multiplicative hasher for sequential IDs.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 << 8 | u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // The table uses the low bits for buckets and the high bits for tags.
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
