//! Values that show when a part of them is missing or another's.

use bytes::Bytes;

/// A value with this name, of about this size.
pub(super) fn new(name: &str, size: usize) -> Bytes {
    let mut value = format!("{name}:");
    value.extend(name.chars().cycle().take(size));
    let checksum = crc32fast::hash(value.as_bytes());
    value.push_str(&format!("{checksum:08x}"));
    value.into()
}

/// The name of a value.
pub(super) fn name(value: &Bytes) -> Result<String, String> {
    let text = std::str::from_utf8(value).map_err(|error| error.to_string())?;
    let (content, checksum) = text.split_at_checked(text.len().saturating_sub(8)).unwrap();
    if format!("{:08x}", crc32fast::hash(content.as_bytes())) != checksum {
        return Err(format!("half-written, or by halves: {text}"));
    }
    Ok(content.split_once(':').unwrap().0.to_owned())
}

#[test]
fn a_value_shows_when_a_part_is_missing() {
    let value = new("3-1-4", 100);
    assert_eq!(name(&value).unwrap(), "3-1-4");
    assert!(name(&value.slice(..50)).is_err());
    assert!(name(&value.slice(50..)).is_err());
    assert!(name(&Bytes::new()).is_err());
}
