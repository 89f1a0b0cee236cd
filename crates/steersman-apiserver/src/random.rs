//! The server's one source of randomness, seeded, so that a run can be repeated.

use std::sync::Mutex;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The characters of generated names: no vowels, so that no words arise.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many characters a generated name gets.
const SUFFIX: usize = 5;

/// A seeded source of uids, name suffixes and jitter.
#[derive(Debug)]
pub(crate) struct Random(Mutex<StdRng>);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// A version 4 UUID.
    pub(crate) fn uid(&self) -> String {
        let high = self.next();
        let low = self.next();
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }

    /// What is put behind `generateName`.
    pub(crate) fn suffix(&self) -> String {
        let mut bits = self.next();
        let mut pick = || {
            let size = ALPHABET.len() as u64;
            let index = usize::try_from(bits % size).unwrap_or(0);
            bits /= size;
            char::from(ALPHABET[index])
        };
        (0..SUFFIX).map(|_| pick()).collect()
    }

    /// A number below `limit`.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    fn next(&self) -> u64 {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_same_seed_gives_the_same_uids_and_they_are_of_version_four() {
        let a = Random::new(7).uid();
        let b = Random::new(7).uid();
        assert_eq!(a, b);
        assert_eq!(a.len(), 36);
        assert_eq!(&a[14..15], "4");
        assert!("89ab".contains(&a[19..20]));
    }
}
