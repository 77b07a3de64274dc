//! A map from ids of our own, which count up and need no hashing against an adversary.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from ids that this program gives out itself.
pub(crate) type IdMap<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// Ids are spread well enough as they are.
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
        // The table takes its buckets from the low bits and its tags from the high ones.
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
