//! When a Backup is due: at every multiple of its period since 1970, UTC. So `1h` is due on the
//! hour and `24h` at midnight, and nothing need be remembered to know it.

use std::str::FromStr;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The due times of a Backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Of the period; at least one.
    minutes: i64,
}

/// What `spec.every` must not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be hours and minutes, such as 1h30m, and a minute at least")]
pub struct InvalidSchedule;

impl FromStr for Schedule {
    type Err = InvalidSchedule;

    fn from_str(every: &str) -> Result<Self, InvalidSchedule> {
        let period: SignedDuration = every.parse().map_err(|_| InvalidSchedule)?;
        let minutes = period.as_mins();
        if minutes < 1 || SignedDuration::from_mins(minutes) != period {
            return Err(InvalidSchedule);
        }
        Ok(Self { minutes })
    }
}

impl Schedule {
    /// The last due time that is not after `now`.
    pub fn last(self, now: Timestamp) -> Timestamp {
        let period = self.minutes * 60;
        at_second(now.as_second().div_euclid(period) * period)
    }

    /// The first due time after `now`.
    pub fn next(self, now: Timestamp) -> Timestamp {
        at_second(self.last(now).as_second().saturating_add(self.minutes * 60))
    }
}

/// There are no due times after the end of time.
fn at_second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_hours_and_minutes() {
        for (every, minutes) in [("1h", 60), ("90m", 90), ("1h30m", 90), ("24h", 24 * 60)] {
            assert_eq!(every.parse(), Ok(Schedule { minutes }), "{every}");
        }
        for wrong in ["", "1", "hourly", "30s", "1m30s", "0m", "-1h"] {
            assert_eq!(wrong.parse::<Schedule>(), Err(InvalidSchedule), "{wrong}");
        }
    }

    #[test]
    fn due_times_are_multiples_of_the_period() {
        for (every, now, last, next) in [
            ("1h", "2030-01-01T07:59:59Z", "2030-01-01T07:00:00Z", "2030-01-01T08:00:00Z"),
            ("1h", "2030-01-01T08:00:00Z", "2030-01-01T08:00:00Z", "2030-01-01T09:00:00Z"),
            ("24h", "2030-01-01T08:00:00Z", "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"),
        ] {
            let schedule: Schedule = every.parse().unwrap();
            let now: Timestamp = now.parse().unwrap();
            assert_eq!(schedule.last(now).to_string(), last);
            assert_eq!(schedule.next(now).to_string(), next);
        }
    }
}
