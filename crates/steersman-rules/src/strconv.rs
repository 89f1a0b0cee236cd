//! Numbers as Go reads them, and its words for what is none, which reach clients.

use std::num::{IntErrorKind, ParseIntError};

/// A whole number, or why the text is none.
pub fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error| complaint("ParseInt", text, &error))
}

/// A whole number that is not negative, or why the text is none. A sign is not read.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    let digits = if text.starts_with('+') { "" } else { text };
    digits.parse().map_err(|error| complaint("ParseUint", text, &error))
}

fn complaint(function: &str, text: &str, error: &ParseIntError) -> String {
    let why = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {text:?}: {why}")
}

#[cfg(test)]
mod tests {
    use super::{parse_int, parse_uint};

    #[test]
    fn what_is_no_number_is_told_in_the_words_of_go() {
        assert_eq!(parse_uint("007"), Ok(7));
        assert_eq!(parse_int("-7"), Ok(-7));
        for (text, why) in [
            ("", "invalid syntax"),
            ("abc", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("+1", "invalid syntax"),
            (" 1", "invalid syntax"),
            ("99999999999999999999999", "value out of range"),
        ] {
            let expected = format!("strconv.ParseUint: parsing {text:?}: {why}");
            assert_eq!(parse_uint(text), Err(expected));
        }
        let huge = "-99999999999999999999999";
        let expected = format!("strconv.ParseInt: parsing {huge:?}: value out of range");
        assert_eq!(parse_int(huge), Err(expected));
    }
}
