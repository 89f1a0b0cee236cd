//! UUIDs: by them shares of devices are told from one another, and claims that are not written yet.

use steersman::random;

/// One that nothing else has.
pub(super) fn random_uuid() -> String {
    let (high, low) = (random::next_u64(), random::next_u64());
    let (first, second, third) = (high >> 32, (high >> 16) & 0xffff, (high & 0xfff) | 0x4000);
    let (fourth, fifth) = (((low >> 48) & 0x3fff) | 0x8000, low & 0xffff_ffff_ffff);
    format!("{first:08x}-{second:04x}-{third:04x}-{fourth:04x}-{fifth:012x}")
}
