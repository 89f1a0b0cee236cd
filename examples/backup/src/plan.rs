//! What is to be done for a Backup at a moment. Pure: objects and the time go in, a plan comes out.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::Backup;
use crate::schedule::Schedule;

/// What is to be done now, and when to look again.
#[derive(Debug)]
pub struct Plan {
    /// The due time for which a run is to be started.
    pub start: Option<Timestamp>,
    /// The run that is not over although the next one is due, which is not started before.
    pub late: Option<Arc<Pod>>,
    /// Finished runs that are not kept.
    pub retired: Vec<Arc<Pod>>,
    /// The last run that finished, if it failed.
    pub failed: Option<Arc<Pod>>,
    /// The next due time.
    pub next: Timestamp,
}

impl Plan {
    /// The plan for a Backup that has these Pods.
    ///
    /// Only the last due time counts: an operator that was away for a day does not start a day's
    /// runs at once. A time that was due before the Backup was made is none of its own.
    pub fn new(backup: &Backup, schedule: Schedule, pods: Vec<Arc<Pod>>, now: Timestamp) -> Self {
        let started = backup.status.as_ref().and_then(|it| it.last_schedule_time.as_ref());
        let since = started.or(backup.metadata.creation_timestamp.as_ref()).map(|time| time.0);
        let due = schedule.last(now);

        let due = Some(due).filter(|due| since.is_none_or(|since| *due > since));
        let (mut kept, running): (Vec<_>, Vec<_>) = pods.into_iter().partition(is_over);
        kept.retain(|pod| pod.metadata.deletion_timestamp.is_none()); // or it is retired already
        let late = running.into_iter().next().filter(|_| due.is_some());
        kept.sort_by_key(|pod| Reverse(pod.name_any())); // by due time, the last one first
        let keep = usize::try_from(backup.spec.keep).unwrap_or(usize::MAX);
        let retired = kept.split_off(keep.min(kept.len()));

        Self {
            start: due.filter(|_| late.is_none()),
            late,
            retired,
            failed: kept.into_iter().next().filter(|pod| phase(pod) == "Failed"),
            next: schedule.next(now),
        }
    }
}

/// Whether a run is over.
fn is_over(pod: &Arc<Pod>) -> bool {
    ["Succeeded", "Failed"].contains(&phase(pod))
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;
    use crate::{BackupSpec, BackupStatus};

    fn at(clock: &str) -> Timestamp {
        format!("2030-01-01T{clock}Z").parse().unwrap()
    }

    /// Made at two o'clock.
    fn hourly(last: Option<&str>) -> Backup {
        let spec = BackupSpec { image: "b".into(), every: "1h".into(), keep: 2, secret: None };
        let mut backup = Backup::new("db", spec);
        backup.metadata.creation_timestamp = Some(Time(at("02:00:00")));
        let last_schedule_time = last.map(|last| Time(at(last)));
        backup.status = Some(BackupStatus { last_schedule_time, ..BackupStatus::default() });
        backup
    }

    fn plan(backup: &Backup, pods: &[(&str, &str)], now: &str) -> Plan {
        let pod = |(name, phase): &(&str, &str)| {
            let pod = json!({"metadata": {"name": name}, "status": {"phase": phase}});
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        let schedule = backup.spec.every.parse().unwrap();
        Plan::new(backup, schedule, pods.iter().map(pod).collect(), at(now))
    }

    #[test]
    fn a_run_starts_once_for_the_last_due_time_since_the_backup_was_made() {
        for (last, now, start) in [
            (None, "02:00:00", None),
            (None, "02:59:59", None),
            (None, "03:00:00", Some("03:00:00")),
            (None, "05:30:00", Some("05:00:00")),
            (Some("03:00:00"), "03:59:59", None),
            (Some("03:00:00"), "04:00:00", Some("04:00:00")),
        ] {
            let plan = plan(&hourly(last), &[], now);
            assert_eq!(plan.start, start.map(at), "{last:?}, {now}");
        }
    }

    #[test]
    fn a_run_that_is_not_over_keeps_the_next_one_waiting() {
        let pods = [("db-20300101-0300", "Pending")];
        let early = plan(&hourly(Some("03:00:00")), &pods, "03:59:59");
        assert!(early.late.is_none() && early.start.is_none());
        let late = plan(&hourly(Some("03:00:00")), &pods, "04:00:00");
        assert_eq!((late.late.unwrap().name_any(), late.start), (pods[0].0.into(), None));
    }

    #[test]
    fn the_oldest_finished_runs_are_retired() {
        let pods = [
            ("db-20300101-0300", "Running"),
            ("db-20300101-0600", "Succeeded"),
            ("db-20300101-0500", "Failed"),
            ("db-20300101-0400", "Succeeded"),
            ("db-20300101-0700", "Pending"),
        ];
        let plan = plan(&hourly(Some("07:00:00")), &pods, "07:30:00");
        let names: Vec<_> = plan.retired.iter().map(|pod| pod.name_any()).collect();
        assert_eq!(names, ["db-20300101-0400"]);
        assert!(plan.failed.is_none());
        assert_eq!(plan.next, at("08:00:00"));
    }

    #[test]
    fn only_the_last_finished_run_can_have_failed() {
        let pods = [("db-20300101-0500", "Succeeded"), ("db-20300101-0600", "Failed")];
        let plan = plan(&hourly(Some("06:00:00")), &pods, "06:30:00");
        assert_eq!(plan.failed.unwrap().name_any(), "db-20300101-0600");
    }
}
