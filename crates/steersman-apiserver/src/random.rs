//! The server's one source of randomness, seeded, so that a run can be repeated.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The characters of generated names: no vowels, so that no words arise.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// Where the digits of a UUID's bytes stand.
const HIGH: [usize; 8] = [0, 2, 4, 6, 9, 11, 14, 16];
const LOW: [usize; 8] = [19, 21, 24, 26, 28, 30, 32, 34];

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
        let [high, low] = {
            let mut random = self.lock();
            [random.next_u64(), random.next_u64()]
        };
        let high = (high & !0xf000) | 0x4000;
        let low = (low & !(0b11 << 62)) | (0b10 << 62);
        // By hand, for every request from the network has one.
        let mut text = *b"00000000-0000-0000-0000-000000000000";
        for (bits, places) in [(high, &HIGH), (low, &LOW)] {
            for (byte, place) in bits.to_be_bytes().into_iter().zip(places) {
                text[*place] = HEXADECIMAL[usize::from(byte >> 4)];
                text[*place + 1] = HEXADECIMAL[usize::from(byte & 0xf)];
            }
        }
        String::from_utf8(text.into()).expect("digits and dashes are text")
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
        self.lock().next_u64()
    }

    fn lock(&self) -> MutexGuard<'_, StdRng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(a.match_indices('-').map(|(at, _)| at).collect::<Vec<_>>(), [8, 13, 18, 23]);
        assert!(a.chars().all(|c| c == '-' || c.is_ascii_hexdigit()));
        assert_eq!(&a[14..15], "4");
        assert!("89ab".contains(&a[19..20]));
    }
}
