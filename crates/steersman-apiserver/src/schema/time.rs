//! Times as Go reads them: RFC 3339 to the letter, and nothing that only resembles it.

use jiff::Timestamp;
use jiff::civil::DateTime;

/// Where the fraction or the offset begins.
const SECONDS_END: usize = "2006-01-02T15:04:05".len();

/// Reads a time with its offset. What lies behind the last moment that clients can represent is
/// that moment: `9999-12-31T23:59:59Z` is often written and means "never".
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let (moment, rest) = text.split_at_checked(SECONDS_END)?;
    let digits = rest
        .strip_prefix('.')
        .map_or(0, |rest| rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    let offset = if digits > 0 { &rest[digits + 1..] } else { rest };
    if !has_form(moment, "0000-00-00T00:00:00") || &moment[17..] > "59" || !is_offset(offset) {
        return None;
    }
    // No clock is finer than a billionth of a second.
    let fraction = &rest[..if digits > 0 { digits.min(9) + 1 } else { 0 }];
    let exact = format!("{moment}{fraction}{offset}").parse();
    let never = || moment.starts_with("9999-12-3") && moment.parse::<DateTime>().is_ok();
    exact.ok().or_else(|| never().then_some(Timestamp::MAX))
}

fn is_offset(text: &str) -> bool {
    let hours_and_minutes =
        |text: &str| has_form(text, "00:00") && text[..2] < *"24" && text[3..] < *"60";
    text == "Z" || text.strip_prefix(['+', '-']).is_some_and(hours_and_minutes)
}

/// Whether a text has a digit where the form has one, and else the same characters.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte == form,
        })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_time_is_read_as_go_reads_it() {
        for (text, expected) in [
            ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
            ("2025-01-01T02:00:00+02:00", "2025-01-01T00:00:00Z"),
            ("2025-01-01T00:00:00.5Z", "2025-01-01T00:00:00.5Z"),
            ("2025-01-01T00:00:00.1234567891Z", "2025-01-01T00:00:00.123456789Z"),
            ("9999-01-01T00:00:00Z", "9999-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-30T22:00:00.999999999Z"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_only_resembles_a_time_is_none() {
        for text in [
            "",
            "2025-01-01",
            "2025-01-01t00:00:00Z",
            "2025-01-01T00:00:00z",
            "2025-01-01 00:00:00Z",
            "2025-01-01T00:00:60Z",
            "2025-02-30T00:00:00Z",
            "2025-01-01T00:00:00",
            "2025-01-01T00:00:00.Z",
            "2025-01-01T00:00:00+02",
            "2025-01-01T00:00:00Z[UTC]",
            "9999-12-32T00:00:00Z",
            "2025-01-01T00:00:0\u{e9}Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
