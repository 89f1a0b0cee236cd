//! Protobuf's wire format: numbered fields, each a number or a run of bytes.
//!
//! Nothing here knows what the fields mean; reading borrows from the body and allocates nothing,
//! writing appends to one buffer and puts lengths in behind.

use super::{ProtobufError, Result};

/// A field's value as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// The fields of a message, in the order in which they are written.
pub(super) fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields { rest: bytes }
}

/// The numbers of a packed list.
pub(super) fn packed(bytes: &[u8]) -> impl Iterator<Item = Result<Payload<'_>>> {
    let mut rest = fields(bytes);
    std::iter::from_fn(move || {
        (!rest.rest.is_empty()).then(|| rest.stop_at_error(Fields::varint).map(Payload::Varint))
    })
}

/// See [`fields`].
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Payload<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.stop_at_error(Self::field))
    }
}

impl<'a> Fields<'a> {
    /// What follows a mistake cannot be told apart, so nothing follows it.
    fn stop_at_error<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let result = read(self);
        if result.is_err() {
            self.rest = &[];
        }
        result
    }

    fn field(&mut self) -> Result<(u32, Payload<'a>)> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| ProtobufError::Overflow)?;
        let payload = match tag as u8 & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                Payload::Bytes(self.take(length)?)
            }
            5 => Payload::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(ProtobufError::WireType(other)),
        };
        Ok((number, payload))
    }

    /// Seven bits per byte, the lowest first; negative numbers take all ten bytes.
    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(ProtobufError::Overflow);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Overflow)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }
}

/// A message being written, whose length is not known yet. Most are shorter than 128 bytes, so
/// that one byte is left for the length; what is longer moves to make room.
#[must_use]
pub(super) struct Open {
    at: usize,
}

/// Appends a number, seven bits per byte.
pub(super) fn put_varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        let (bytes, width) = varint(value);
        out.extend_from_slice(&bytes[..width]);
    }
}

/// A number as it is written, and how many of the bytes it takes.
fn varint(mut value: u64) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    let mut width = 1;
    while value >= 0x80 {
        bytes[width - 1] = value as u8 | 0x80;
        value >>= 7;
        width += 1;
    }
    bytes[width - 1] = value as u8;
    (bytes, width)
}

/// Appends a field that is a number; negative ones take ten bytes.
pub(super) fn put_int(out: &mut Vec<u8>, number: u32, value: i64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value.cast_unsigned());
}

/// Appends a field that is a double.
pub(super) fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field that is text, bytes or a message that is written already.
pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Begins a field that is a message; [`close`] ends it.
pub(super) fn open(out: &mut Vec<u8>, number: u32) -> Open {
    put_varint(out, u64::from(number) << 3 | 2);
    out.push(0);
    Open { at: out.len() - 1 }
}

/// Ends a message: everything behind its beginning belongs to it.
pub(super) fn close(out: &mut Vec<u8>, Open { at }: Open) {
    let end = out.len();
    let length = end - at - 1;
    if let Some(byte) = u8::try_from(length).ok().filter(|byte| *byte < 0x80) {
        out[at] = byte;
        return;
    }
    let (bytes, width) = varint(length as u64);
    out.resize(end + width - 1, 0);
    out.copy_within(at + 1..end, at + width);
    out[at..at + width].copy_from_slice(&bytes[..width]);
}

#[cfg(test)]
mod tests {
    use super::{Payload, ProtobufError, close, fields, open, packed, put_bytes, put_int};

    #[test]
    fn a_message_of_any_length_is_read_back() {
        for length in [0, 1, 127, 128, 300, 16_383, 16_384, 3_000_000] {
            let mut out = b"before".to_vec();
            let outer = open(&mut out, 5);
            let inner = open(&mut out, 1);
            put_bytes(&mut out, 2, &vec![b'x'; length]);
            put_int(&mut out, 3, -1);
            close(&mut out, inner);
            close(&mut out, outer);
            let content = |bytes| match fields(bytes).next() {
                Some(Ok((number, Payload::Bytes(content)))) => (number, content),
                other => panic!("{other:?}"),
            };
            let (number, outer) = content(&out[6..]);
            assert_eq!(number, 5);
            let read: Vec<_> = fields(content(outer).1).map(Result::unwrap).collect();
            let text = vec![b'x'; length];
            let expected = [(2, Payload::Bytes(&text)), (3, Payload::Varint(u64::MAX))];
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn numbers_and_bytes_are_told_apart_and_unknown_groups_refused() {
        let read: Vec<_> = fields(b"\x08\x96\x01\x12\x02hi\x1d\x01\0\0\0").collect();
        let expected = [
            Ok((1, Payload::Varint(150))),
            Ok((2, Payload::Bytes(b"hi"))),
            Ok((3, Payload::Fixed32(1))),
        ];
        assert_eq!(read, expected);
        assert_eq!(fields(b"\x0b").next(), Some(Err(ProtobufError::WireType(3))));
    }

    #[test]
    fn a_number_beyond_64_bits_overflows_and_ends_the_message() {
        let mut long = fields(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
        assert_eq!(long.next(), Some(Err(ProtobufError::Overflow)));
        assert_eq!(long.next(), None);
        let minus_one = fields(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").next();
        assert_eq!(minus_one, Some(Ok((1, Payload::Varint(u64::MAX)))));
    }

    #[test]
    fn a_length_beyond_the_end_is_truncated() {
        assert_eq!(fields(b"\x0a\x05ab").next(), Some(Err(ProtobufError::Truncated)));
        assert_eq!(packed(b"\x01\x80").last(), Some(Err(ProtobufError::Truncated)));
    }
}
