//! What is asked of the server under attack, and whether it held.

use std::time::Duration;

use crate::caller::Who;
use crate::innocent::Suffering;
use crate::seen::Seen;

/// Megabytes above idle that strangers may make the server take.
const STRANGERS: f64 = 256.0;
/// Megabytes above idle that users may make the server take.
const USERS: f64 = 1024.0;
/// Megabytes above idle that may stay once an attack is over: history has a budget, too.
pub(crate) const LEFT: f64 = 160.0;
/// Milliseconds that one in a hundred requests of the innocent may take.
const SOON: f64 = 50.0;
/// How soon after an attack everything is to be as before.
pub(crate) const RECOVERY: Duration = Duration::from_secs(10);

/// What was measured of one attack. Memory is in megabytes.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) idle: f64,
    pub(crate) peak: f64,
    pub(crate) last: f64,
    pub(crate) suffering: Suffering,
    /// None if the server did not recover.
    pub(crate) recovery: Option<Duration>,
    /// How the process ended, or what it said, if it must not have.
    pub(crate) broken: Option<String>,
}

/// An attack and what came of it.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) by: Who,
    pub(crate) short: bool,
    pub(crate) seen: Seen,
    /// None of an attack that starts programs itself.
    pub(crate) measured: Option<Measured>,
}

impl Row {
    /// What does not hold.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = self.seen.faults.clone();
        if let Some(measured) = &self.measured {
            self.judge(measured, &mut faults);
        }
        faults
    }

    fn judge(&self, measured: &Measured, faults: &mut Vec<String>) {
        if let Some(broken) = &measured.broken {
            faults.push(broken.clone());
        }
        let goal = if self.by == Who::Stranger { STRANGERS } else { USERS };
        let above = measured.peak - measured.idle;
        if above > goal {
            faults.push(format!("{above:.0} MB above idle, {goal:.0} may be"));
        }
        let left = measured.last - measured.idle;
        if left > LEFT {
            faults.push(format!("{left:.0} MB stay, {LEFT:.0} may"));
        }
        match measured.recovery {
            Some(time) if time <= RECOVERY => {}
            Some(time) => faults.push(format!("recovered only after {:.0} s", time.as_secs_f64())),
            None => faults.push("did not recover".to_owned()),
        }
        // A machine that does other things as well says nothing about times.
        if !self.short {
            self.judge_suffering(&measured.suffering, faults);
        }
    }

    fn judge_suffering(&self, suffering: &Suffering, faults: &mut Vec<String>) {
        if let Some(first) = suffering.faults.first() {
            let count = suffering.faults.len();
            faults.push(format!("{count} requests of the innocent failed: {first}"));
        }
        if suffering.p99 > SOON {
            faults.push(format!("the innocent waited {:.0} ms, {SOON:.0} may be", suffering.p99));
        }
    }

    /// The row as it is printed, without its faults.
    pub(crate) fn described(&self) -> String {
        let verdict = if self.faults().is_empty() { "held" } else { "FAILED" };
        let answers = self.seen.described();
        let name = self.name;
        let Some(m) = &self.measured else {
            return format!(
                "{name:<21} {:>6} {:>6} {:>16} {:>6}  {verdict:<7} {answers}",
                "", "", "", ""
            );
        };
        let innocent =
            format!("{:.1} {:.1} {:.0}", m.suffering.p50, m.suffering.p99, m.suffering.max);
        let recovery = m.recovery.map_or("never".to_owned(), |t| format!("{:.1}", t.as_secs_f64()));
        let (peak, last) = (m.peak - m.idle, m.last - m.idle);
        format!(
            "{name:<21} {peak:>+6.0} {last:>+6.0} {innocent:>16} {recovery:>6}  {verdict:<7} {answers}"
        )
    }
}

/// What the columns are.
pub(crate) fn header() -> String {
    let columns = ("MB peak", "last", "ms p50 p99 max", "s rec.");
    format!(
        "{:<20} {:>7} {:>6} {:>16} {:>6}  {:<7} answers",
        "attack", columns.0, columns.1, columns.2, columns.3, "verdict"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(by: Who, short: bool, measured: Measured) -> Row {
        Row { name: "one", by, short, seen: Seen::default(), measured: Some(measured) }
    }

    fn calm() -> Measured {
        let recovery = Some(Duration::from_secs(1));
        Measured { idle: 50.0, peak: 60.0, last: 55.0, recovery, ..Measured::default() }
    }

    #[test]
    fn a_server_that_stays_calm_has_held() {
        assert_eq!(row(Who::Stranger, false, calm()).faults(), [""; 0]);
    }

    #[test]
    fn strangers_may_take_less_memory_than_users() {
        let peak = || Measured { peak: 400.0, ..calm() };
        assert_eq!(row(Who::Stranger, false, peak()).faults().len(), 1);
        assert_eq!(row(Who::Attacker, false, peak()).faults(), [""; 0]);
    }

    #[test]
    fn times_count_only_in_full() {
        let slow =
            || Measured { suffering: Suffering { p99: 80.0, ..Suffering::default() }, ..calm() };
        assert_eq!(row(Who::Attacker, false, slow()).faults().len(), 1);
        assert_eq!(row(Who::Attacker, true, slow()).faults(), [""; 0]);
    }

    #[test]
    fn an_end_and_no_recovery_are_faults() {
        let broken = Some("ended".to_owned());
        let measured = Measured { broken, recovery: None, ..calm() };
        assert_eq!(row(Who::Attacker, true, measured).faults().len(), 2);
    }
}
