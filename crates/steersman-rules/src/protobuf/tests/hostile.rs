//! Input that means harm: no panic, no large allocation, always an answer.

use proptest::prelude::{any, prop, proptest};

use super::super::{Format, MAGIC, ProtobufError, decode, encode};
use super::generate::{document, kinds};

#[test]
fn a_length_beyond_the_body_is_refused_before_anything_is_reserved() {
    for length in [&b"\xff\xff\xff\xff\x07"[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"] {
        let body = [MAGIC, b"\x12", length].concat();
        assert_eq!(decode(&body), Err(ProtobufError::Truncated));
    }
    let overlong = [MAGIC, b"\x12", &[0x80; 11]].concat();
    assert_eq!(decode(&overlong), Err(ProtobufError::Overflow));
}

#[test]
fn every_prefix_of_a_body_is_refused_or_read() {
    let body = encode(&document(2, "v1", "Service")).unwrap();
    let read = (0..body.len()).filter(|&end| decode(&body[..end]).is_ok()).count();
    assert!(read < 10, "a body that is cut off is rarely whole: {read}");
}

proptest! {
    #[test]
    fn no_change_of_a_body_makes_it_panic(
        kind in 0..kinds().len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (api_version, kind) = kinds()[kind];
        let mut body = encode(&document(5, api_version, kind)).unwrap().to_vec();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let _ = decode(&body);
    }

    #[test]
    fn no_text_makes_the_encoder_panic(
        kind in 0..kinds().len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut: prop::sample::Index,
    ) {
        let (api_version, kind) = kinds()[kind];
        let mut text = document(6, api_version, kind).to_string().into_bytes();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let format = Format::of(api_version, kind).unwrap();
        let _ = format.write(&mut Vec::new(), &text, Some("1"));
        let _ = format.write(&mut Vec::new(), &text[..cut.index(text.len())], None);
    }
}
