//! As much of DER as it takes to find the parts of a key.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
/// What a structure has at `[1]`.
pub(super) const SECOND: u8 = 0xa1;

const BITS: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// A value with what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
}

impl<'a> Element<'a> {
    /// The bytes of a string of bits that ends with a whole one.
    pub(super) fn bits(&self) -> Option<&'a [u8]> {
        let (unused, bytes) = self.content.split_first()?;
        (self.tag == BITS && *unused == 0).then_some(bytes)
    }
}

/// The first value, and what follows it.
pub(super) fn element(der: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*first) {
        short @ ..0x80 => (short, rest),
        long => {
            let (digits, rest) = rest.split_at_checked(long - 0x80).filter(|it| it.0.len() <= 4)?;
            (digits.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)), rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((Element { tag: *tag, content }, rest))
}

/// The values of a sequence, which must be all there is.
pub(super) fn sequence(der: &[u8]) -> Option<Vec<Element<'_>>> {
    let (whole, rest) = element(der)?;
    if whole.tag != SEQUENCE || !rest.is_empty() {
        return None;
    }
    let mut fields = Vec::new();
    let mut rest = whole.content;
    while !rest.is_empty() {
        let (field, others) = element(rest)?;
        fields.push(field);
        rest = others;
    }
    Some(fields)
}
