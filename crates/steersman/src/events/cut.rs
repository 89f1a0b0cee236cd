//! What is too long for the API is cut short.

/// The longest beginning of `text` of at most `max` bytes.
pub(super) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
