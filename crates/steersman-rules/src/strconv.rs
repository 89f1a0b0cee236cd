//! Numbers as Go reads and shows them, and its words for what is none, which reach clients.

use std::num::{IntErrorKind, ParseIntError};

/// Why a text is no number; `function` is Go's that reads such numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// It is not written as a number is.
    #[error("strconv.{function}: parsing {text:?}: invalid syntax")]
    Syntax {
        /// `ParseInt` or `ParseUint`.
        function: &'static str,
        /// What was to be read.
        text: String,
    },
    /// It is too small or too large.
    #[error("strconv.{function}: parsing {text:?}: value out of range")]
    Range {
        /// `ParseInt` or `ParseUint`.
        function: &'static str,
        /// What was to be read.
        text: String,
    },
}

/// A whole number, or why the text is none.
pub fn parse_int(text: &str) -> Result<i64, NumberError> {
    text.parse().map_err(|error| complaint("ParseInt", text, &error))
}

/// A whole number that is not negative, or why the text is none. A sign is not read.
pub fn parse_uint(text: &str) -> Result<u64, NumberError> {
    let digits = if text.starts_with('+') { "" } else { text };
    digits.parse().map_err(|error| complaint("ParseUint", text, &error))
}

/// A floating point number as Go's `%v` shows it: the shortest digits, with an exponent below -4 and from
/// 6 on.
pub fn shown_float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}

fn complaint(function: &'static str, text: &str, error: &ParseIntError) -> NumberError {
    let text = text.to_owned();
    match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
            NumberError::Range { function, text }
        }
        _ => NumberError::Syntax { function, text },
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_int, parse_uint, shown_float};

    #[test]
    fn a_floating_point_number_is_shown_as_go_shows_it() {
        for (number, shown) in [
            (0.0, "0"),
            (3.0, "3"),
            (-1.5, "-1.5"),
            (123_456.0, "123456"),
            (1_000_000.0, "1e+06"),
            (1_234_567.5, "1.2345675e+06"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(shown_float(number), shown);
        }
    }

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
            assert_eq!(parse_uint(text).unwrap_err().to_string(), expected);
        }
        let huge = "-99999999999999999999999";
        let expected = format!("strconv.ParseInt: parsing {huge:?}: value out of range");
        assert_eq!(parse_int(huge).unwrap_err().to_string(), expected);
    }
}
