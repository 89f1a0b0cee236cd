//! Times as Go reads them: RFC 3339 to the letter, and nothing that only resembles it. What it
//! says of others, it says of the first piece of its layout that does not fit.

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

/// Whether a text surely is a time in whole seconds as the server itself writes it. Nearly all are,
/// and to see it takes a hundredth of reading one; the last days of months are left to [`parse`].
pub(super) fn is_plain(text: &str) -> bool {
    let is_within = |from: usize, least: &str, most: &str| {
        text.get(from..from + least.len()).is_some_and(|piece| least <= piece && piece <= most)
    };
    text.len() == SECONDS_END + 1
        && has_form(text, "0000-00-00T00:00:00Z")
        && is_within(0, "0001", "9998")
        && is_within(5, "01", "12")
        && is_within(8, "01", "28")
        && is_within(11, "00", "23")
        && is_within(14, "00", "59")
        && is_within(17, "00", "59")
}

/// What a time is written like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// `Time`.
    Seconds,
    /// `MicroTime`, with all six digits of its fraction.
    Micros,
}

/// Why a piece of a time does not fit.
enum Misfit {
    Form,
    Range(&'static str),
}

/// What Go says of a text that is not a time; `None` if it is one.
pub(super) fn mistake(text: &str, layout: Layout) -> Option<String> {
    if layout == Layout::Seconds && is_plain(text) {
        return None;
    }
    let misfit = pieces_mistake(text, layout);
    if misfit.is_some() || parse(text).is_some() {
        return misfit;
    }
    Some(out_of_range(text, "day"))
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }

    /// What stands before each piece, and the piece.
    fn pieces(self) -> &'static [(&'static str, &'static str)] {
        const MICROS: [(&str, &str); 8] = [
            ("", "2006"),
            ("-", "01"),
            ("-", "02"),
            ("T", "15"),
            (":", "04"),
            (":", "05"),
            ("", ".000000"),
            ("", "Z07:00"),
        ];
        const SECONDS: [(&str, &str); 7] =
            [MICROS[0], MICROS[1], MICROS[2], MICROS[3], MICROS[4], MICROS[5], MICROS[7]];
        if self == Self::Micros { &MICROS } else { &SECONDS }
    }
}

fn pieces_mistake(text: &str, layout: Layout) -> Option<String> {
    let cannot = |rest: &str, piece: &str| {
        let text = quoted(text);
        let layout = layout.text();
        let rest = quoted(rest);
        let piece = quoted(piece);
        format!("parsing time {text} as \"{layout}\": cannot parse {rest} as {piece}")
    };
    let mut rest = text;
    for (before, piece) in layout.pieces() {
        let Some(here) = rest.strip_prefix(before) else { return Some(cannot(rest, before)) };
        rest = match after(here, piece) {
            Ok(after) => after,
            Err(Misfit::Form) => return Some(cannot(here, piece)),
            Err(Misfit::Range(unit)) => return Some(out_of_range(text, unit)),
        };
        if *piece == "05" && layout == Layout::Seconds {
            rest = after_fraction(rest);
        }
    }
    let extra = || format!("parsing time {}: extra text: {}", quoted(text), quoted(rest));
    (!rest.is_empty()).then(extra)
}

fn out_of_range(text: &str, unit: &str) -> String {
    format!("parsing time {}: {unit} out of range", quoted(text))
}

/// What follows a piece of a layout.
fn after<'a>(text: &'a str, piece: &str) -> Result<&'a str, Misfit> {
    let fits = |form| {
        let (head, rest) = text.split_at_checked(str::len(form)).ok_or(Misfit::Form)?;
        if has_form(head, form) { Ok((head, rest)) } else { Err(Misfit::Form) }
    };
    let unit = match piece {
        "2006" => return fits("0000").map(|(_, rest)| rest),
        ".000000" => return fits(".000000").map(|(_, rest)| rest),
        "Z07:00" => return after_offset(text),
        "01" => ("month", "01", "12"),
        // Whether a month has such a day is asked at the end.
        "02" => ("day", "00", "99"),
        "15" => ("hour", "00", "23"),
        "04" => ("minute", "00", "59"),
        _ => ("second", "00", "59"),
    };
    let ((name, least, most), (head, rest)) = (unit, fits("00")?);
    if (least..=most).contains(&head) { Ok(rest) } else { Err(Misfit::Range(name)) }
}

/// A layout of whole seconds allows a fraction all the same.
fn after_fraction(text: &str) -> &str {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    match text.strip_prefix(['.', ',']) {
        Some(fraction) if digits(fraction) > 0 => &fraction[digits(fraction)..],
        _ => text,
    }
}

fn after_offset(text: &str) -> Result<&str, Misfit> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Ok(rest);
    }
    let (offset, rest) = text.split_at_checked("-07:00".len()).ok_or(Misfit::Form)?;
    let hours_and_minutes = offset.strip_prefix(['+', '-']).ok_or(Misfit::Form)?;
    match hours_and_minutes {
        text if !has_form(text, "00:00") => Err(Misfit::Form),
        text if text[..2] > *"24" => Err(Misfit::Range("time zone offset hour")),
        text if text[3..] > *"60" => Err(Misfit::Range("time zone offset minute")),
        _ => Ok(rest),
    }
}

/// As Go's clock quotes: what is not printable ASCII is told byte by byte.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', byte.into()]),
            b' '..0x80 => out.push(byte.into()),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
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
    use super::{Layout, is_plain, mistake, parse};

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
    fn a_plain_time_is_one_that_is_read_and_written_as_it_stands() {
        for text in ["2025-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9998-12-28T23:59:59Z"] {
            assert!(is_plain(text), "{text}");
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for text in [
            "2025-01-29T00:00:00Z",
            "2025-00-01T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-01-00T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01T00:60:00Z",
            "2025-01-01T00:00:60Z",
            "2025-01-01T00:00:00z",
            "2025-01-01T00:00:00.5Z",
            "0000-01-01T00:00:00Z",
            "9999-01-01T00:00:00Z",
            "2025-01-01T00:00:0٠Z",
            "",
        ] {
            assert!(!is_plain(text), "{text}");
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

    #[test]
    fn what_is_not_a_time_is_told_as_go_tells_it() {
        let seconds = r#" as "2006-01-02T15:04:05Z07:00": cannot parse "#;
        let micros = r#" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "#;
        for (layout, text, expected) in [
            (Layout::Seconds, "", format!(r#"""{seconds}"" as "2006""#)),
            (Layout::Seconds, "x y", format!(r#""x y"{seconds}"x y" as "2006""#)),
            (Layout::Seconds, "2025-01-01", format!(r#""2025-01-01"{seconds}"" as "T""#)),
            (Layout::Seconds, "2025-1-01", format!(r#""2025-1-01"{seconds}"1-01" as "01""#)),
            (
                Layout::Seconds,
                "2025-01-01T00:00:00.5",
                format!(r#""2025-01-01T00:00:00.5"{seconds}"" as "Z07:00""#),
            ),
            (
                Layout::Seconds,
                "\u{e9}\"",
                format!(r#""\xc3\xa9\""{seconds}"\xc3\xa9\"" as "2006""#),
            ),
            (
                Layout::Seconds,
                "2025-13-01T00:00:00Z",
                r#""2025-13-01T00:00:00Z": month out of range"#.to_owned(),
            ),
            (
                Layout::Seconds,
                "2025-02-30T00:00:00Z",
                r#""2025-02-30T00:00:00Z": day out of range"#.to_owned(),
            ),
            (
                Layout::Seconds,
                "2025-01-01T00:00:00ZZ",
                r#""2025-01-01T00:00:00ZZ": extra text: "Z""#.to_owned(),
            ),
            (
                Layout::Micros,
                "2025-01-01T00:00:00Z",
                format!(r#""2025-01-01T00:00:00Z"{micros}"Z" as ".000000""#),
            ),
        ] {
            let expected = format!("parsing time {expected}");
            assert_eq!(mistake(text, layout).as_deref(), Some(&*expected), "{text}");
        }
        assert_eq!(mistake("2025-01-01T00:00:00.5+02:00", Layout::Seconds), None);
        assert_eq!(mistake("2025-01-01T00:00:00.123456Z", Layout::Micros), None);
    }
}
