//! The keys and values that are written and read.

use bytes::Bytes;
use steersman_store::{Expected, WriteRequest};

/// What every key starts with.
pub(crate) const PREFIX: &str = "/registry/configmaps/bench/";
/// The bytes of a value.
const SIZE: usize = 1024;

/// The key of this number.
pub(crate) fn key(number: usize) -> String {
    format!("{PREFIX}load-{number:06}")
}

/// A put of one kilobyte, whatever the key holds.
pub(crate) fn put(number: usize) -> WriteRequest {
    WriteRequest::put(key(number), value(number, SIZE), Expected::Any)
}

/// A put of about three kilobytes, as a Pod takes: half as much again, or half of that less.
pub(crate) fn put_pod(number: usize) -> WriteRequest {
    let size = 2048 + number % 5 * 512;
    let key = format!("/registry/pods/team-{}/load-{number:06}", number % 100);
    WriteRequest::put(key, value(number, size), Expected::Any)
}

/// Bytes that are another value's only by chance, in an allocation of their own.
fn value(number: usize, size: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(size);
    let mut state = number as u64;
    while bytes.len() < size {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_three_kilobytes_on_average() {
        let sizes = (0..1000).map(|number| put_pod(number).value.map_or(0, |value| value.len()));
        assert_eq!(sizes.sum::<usize>() / 1000, 3072);
    }
}
