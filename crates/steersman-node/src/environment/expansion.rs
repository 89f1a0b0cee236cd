//! `$(NAME)` in values, commands and paths.
//!
//! A reference to a variable that does not exist stays as it is, `$$` is one `$`, and any other `$`
//! stands for itself. What was filled in is not looked at again.

/// A text with the variables that `lookup` knows filled in.
pub(crate) fn expand<'a>(text: &str, mut lookup: impl FnMut(&str) -> Option<&'a [u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let after = &rest[at + 1..];
        rest = if let Some(escaped) = after.strip_prefix('$') {
            out.push(b'$');
            escaped
        } else if let Some((name, behind)) =
            after.strip_prefix('(').and_then(|inside| inside.split_once(')'))
        {
            match lookup(name) {
                Some(value) => out.extend_from_slice(value),
                None => out.extend_from_slice(format!("$({name})").as_bytes()),
            }
            behind
        } else {
            out.push(b'$');
            after
        };
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn references_are_filled_in_once() {
        let lookup = |name: &str| match name {
            "A" => Some(b"a".as_slice()),
            "EMPTY" => Some(b"".as_slice()),
            "REFERS" => Some(b"$(A)".as_slice()),
            _ => None,
        };
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("$(A)", "a"),
            ("x$(A)y$(A)", "xaya"),
            ("$(EMPTY)", ""),
            ("$(REFERS)", "$(A)"),
            // What does not exist stays.
            ("$(B)-$(A)", "$(B)-a"),
            ("$()", "$()"),
            // `$$` escapes.
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$a"),
            ("$$$$(A)", "$$(A)"),
            // What is no reference stays.
            ("$A", "$A"),
            ("$", "$"),
            ("A$", "A$"),
            ("$(A", "$(A"),
            ("$(A$(A)", "$(A$(A)"),
            ("$é$(A)", "$éa"),
            ("$ (A)", "$ (A)"),
            ("$(A))", "a)"),
            ("$((A))", "$((A))"),
        ] {
            let found = String::from_utf8(expand(text, lookup)).unwrap();
            assert_eq!(found, expected, "{text}");
        }
    }
}
