//! Patterns in which `*` stands for any text.

/// Whether a text fits a pattern.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, fit) in [
            ("pods", "pods", true),
            ("pods", "pods/x", false),
            ("pods/*", "pods/get/x", true),
            ("*/get/*", "pods/get/x", true),
            ("*/get", "pods/get/x", false),
            ("*", "", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*bb", "ab", false),
        ] {
            assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
        }
    }
}
