//! Writes the DER that certificates are made of: a tag, a length, the content.
//!
//! rcgen writes certificates as well, but its names hold each attribute once, so that a user could
//! have but one group.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// From which year on times are written with four digits of it.
const GENERALIZED: i16 = 2050;

pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tagged(0x30, &parts.concat())
}

pub(crate) fn set(content: &[u8]) -> Vec<u8> {
    tagged(0x31, content)
}

/// An object identifier by its encoded content.
pub(crate) fn oid(content: &[u8]) -> Vec<u8> {
    tagged(0x06, content)
}

pub(crate) fn octets(content: &[u8]) -> Vec<u8> {
    tagged(0x04, content)
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    tagged(0x0c, text.as_bytes())
}

/// A number that is positive: its first bit is not set.
pub(crate) fn integer(bytes: &[u8]) -> Vec<u8> {
    tagged(0x02, bytes)
}

pub(crate) fn truth() -> Vec<u8> {
    tagged(0x01, &[0xff])
}

/// Whole bytes as bits.
pub(crate) fn bits(bytes: &[u8]) -> Vec<u8> {
    tagged(0x03, &[&[0], bytes].concat())
}

/// Flags, the lowest of which stands first; what is unset at the end is left out.
pub(crate) fn flags(flags: u16) -> Vec<u8> {
    let reversed = flags.reverse_bits().to_be_bytes();
    let used = if reversed[1] == 0 { 1 } else { 2 };
    let unused = u8::try_from(reversed[used - 1].trailing_zeros()).unwrap_or(0);
    tagged(0x03, &[&[unused][..], &reversed[..used]].concat())
}

/// A moment, to the second.
pub(crate) fn time(moment: Timestamp) -> Vec<u8> {
    let moment = moment.to_zoned(TimeZone::UTC);
    if moment.year() < GENERALIZED {
        tagged(0x17, moment.strftime("%y%m%d%H%M%SZ").to_string().as_bytes())
    } else {
        tagged(0x18, moment.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
    }
}

/// Content with the n-th tag of a choice; `constructed` if it is made of values itself.
pub(crate) fn choice(n: u8, constructed: bool, content: &[u8]) -> Vec<u8> {
    tagged(if constructed { 0xa0 | n } else { 0x80 | n }, content)
}

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let length = content.len().to_be_bytes();
            let first = length.iter().position(|byte| *byte != 0).unwrap_or(0);
            let length = &length[first..];
            out.push(0x80 | u8::try_from(length.len()).unwrap_or(0));
            out.extend_from_slice(length);
        }
    }
    out.extend_from_slice(content);
    out
}

#[cfg(test)]
mod tests {
    use super::{flags, octets, time};

    #[test]
    fn lengths_are_as_short_as_they_can_be() {
        for (length, head) in [
            (0, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (300, &[4, 0x82, 1, 44]),
            (70_000, &[4, 0x83, 1, 0x11, 0x70]),
        ] {
            let written = octets(&vec![7; length]);
            assert_eq!(&written[..head.len()], head);
            assert_eq!(written.len(), head.len() + length);
        }
    }

    #[test]
    fn flags_end_with_the_last_that_is_set() {
        assert_eq!(flags(0b1), [3, 2, 7, 0x80]);
        assert_eq!(flags(0b101), [3, 2, 5, 0xa0]);
        assert_eq!(flags(0b1_0000_0000), [3, 3, 7, 0, 0x80]);
    }

    #[test]
    fn the_year_has_four_digits_from_2050_on() {
        let written =
            |moment: &str| String::from_utf8(time(moment.parse().unwrap()).split_off(2)).unwrap();
        assert_eq!(written("2025-01-02T03:04:05Z"), "250102030405Z");
        assert_eq!(written("2120-01-02T03:04:05Z"), "21200102030405Z");
    }
}
