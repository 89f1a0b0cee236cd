//! Durations as kubectl prints them: two or three figures, no more.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Seconds as words: `90s`, `5m`, `2d3h`, `400d`.
///
/// Each range has its precision: below ten minutes seconds matter, above two days minutes do not.
pub fn human(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, (MINUTE, "m"), (1, "s")),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, (HOUR, "h"), (MINUTE, "m")),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, (DAY, "d"), (HOUR, "h")),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(seconds: i64, large: (i64, &str), small: (i64, &str)) -> String {
    let rest = seconds % large.0 / small.0;
    let head = format!("{}{}", seconds / large.0, large.1);
    if rest == 0 { head } else { format!("{head}{rest}{}", small.1) }
}

/// How long ago a timestamp on an object was.
pub(crate) fn since(time: &str, now: Timestamp) -> String {
    match (time, time.parse::<Timestamp>()) {
        ("", _) => "<unknown>".to_owned(),
        (_, Ok(time)) => human(between(time, now)),
        (_, Err(_)) => "<invalid>".to_owned(),
    }
}

/// Whole seconds from one time to another.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_secs()
}

/// The cell of every AGE column.
pub(crate) fn age(object: &Value, now: Timestamp) -> Value {
    since(object["metadata"]["creationTimestamp"].as_str().unwrap_or_default(), now).into()
}
