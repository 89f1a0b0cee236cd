//! Durations as Go writes them, such as `1m30s` or `1.5h`, and Go's words for what is none.

use std::time::Duration;

/// The units, in seconds.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("\u{3bc}s", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// The longest that Go can tell, in seconds.
const SECONDS_MAX: f64 = 9_223_372_036.0;

/// Reads a duration; negative ones are zero. The error is what Go says.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, behind) = number(rest).ok_or_else(invalid)?;
        let end = behind.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, length) =
            known.ok_or_else(|| format!("time: unknown unit {unit:?} in duration {text:?}"))?;
        seconds += number * length;
        rest = behind;
    }
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return Err(invalid());
    }
    let seconds = if negative { 0.0 } else { seconds };
    Duration::try_from_secs_f64(seconds).map_err(|_| invalid())
}

/// The number that a text begins with, digits with at most one point among them.
fn number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let whole = digits(text);
    let end = match text[whole..].strip_prefix('.') {
        Some(fraction) => whole + 1 + digits(fraction),
        None => whole,
    };
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn what_is_no_duration_is_told_in_the_words_of_go() {
        for (text, expected) in [
            ("invalid", "time: invalid duration \"invalid\""),
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            ("s", "time: invalid duration \"s\""),
            (".s", "time: invalid duration \".s\""),
            ("9999999h", "time: invalid duration \"9999999h\""),
            ("5", "time: missing unit in duration \"5\""),
            ("1s2", "time: missing unit in duration \"1s2\""),
            ("1.5.5s", "time: missing unit in duration \"1.5.5s\""),
            ("5x", "time: unknown unit \"x\" in duration \"5x\""),
            ("1minute", "time: unknown unit \"minute\" in duration \"1minute\""),
            ("1s-1s", "time: unknown unit \"s-\" in duration \"1s-1s\""),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()));
        }
        for (text, seconds) in [("0", 0.0), ("-5s", 0.0), ("1m30s", 90.0), ("+.5h", 1800.0)] {
            assert!((parse(text).unwrap().as_secs_f64() - seconds).abs() < 1e-9, "{text}");
        }
    }
}
