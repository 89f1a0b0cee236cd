//! The query of a URL, decoded.

/// The pairs of a query, in order; a flag such as `verbose` has an empty value.
pub(crate) fn query(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (decoded(key), decoded(value)))
        .collect()
}

/// Undoes `%41` and `+`. What is not valid stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        bytes.push(match (first, hexadecimal(others)) {
            (b'+', _) => b' ',
            (b'%', Some(byte)) => {
                rest = &others[2..];
                byte
            }
            (byte, _) => *byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The byte that two digits stand for.
fn hexadecimal(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_and_nonsense_is_kept() {
        let pairs = query("verbose&key=default%2fa+b&&x=%&y=%zz&z=%C3%A4&e=");
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (&**key, &**value)).collect();
        let expected = [
            ("verbose", ""),
            ("key", "default/a b"),
            ("x", "%"),
            ("y", "%zz"),
            ("z", "ä"),
            ("e", ""),
        ];
        assert_eq!(pairs, expected);
    }
}
