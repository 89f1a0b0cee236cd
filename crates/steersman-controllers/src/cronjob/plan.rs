//! Whether a CronJob starts a Job now, and when to look again.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use steersman::ownership;

use super::schedule::Schedule;

/// Looks a moment after the time: clocks differ.
const DELTA: Duration = Duration::from_millis(100);
/// More schedules than this were missed: something is wrong.
const MISSED_MAX: i64 = 100;
/// When a Job was to be started, in the time zone of its CronJob.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// What a CronJob does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing is due.
    Early,
    /// It is too late for what was due.
    TooLate(Timestamp),
    /// What is due has been started.
    Done,
    /// What was started before still runs, and may not run twice.
    Forbidden,
    /// A Job is started for this time.
    Start(Timestamp),
}

/// A decision, and whether so much was missed that people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) decision: Decision,
    pub(super) many_missed: bool,
}

/// Why a schedule makes no sense.
pub(super) const INVALID: &str = "time difference between two schedules is less than 1 second";

/// What was due last.
struct Due {
    earliest: Timestamp,
    last: Option<Timestamp>,
    missed: i64,
}

/// What was due last since the last start, or since there is this CronJob or its schedule.
fn due(
    job: &CronJob,
    status: &CronJobStatus,
    schedule: &Schedule,
    changed: Option<Timestamp>,
    now: Timestamp,
    within_deadline: bool,
) -> Result<Due, &'static str> {
    let created = job.metadata.creation_timestamp.as_ref();
    let since = status.last_schedule_time.as_ref().or(created);
    let earliest = since.map_or(now, |time| time.0);
    let mut earliest = changed.map_or(earliest, |changed| earliest.max(changed));
    let deadline = job.spec.starting_deadline_seconds;
    if let Some(deadline) = deadline.filter(|_| within_deadline)
        && let Ok(limit) = now.checked_sub(SignedDuration::from_secs(deadline))
    {
        earliest = earliest.max(limit);
    }
    let first = schedule.next(earliest).ok_or(INVALID)?;
    if now < first {
        return Ok(Due { earliest, last: None, missed: 0 });
    }
    let second = schedule.next(first).ok_or(INVALID)?;
    if now < second {
        return Ok(Due { earliest, last: Some(first), missed: 0 });
    }
    let between = second.duration_since(first).as_secs();
    if between < 1 {
        return Err(INVALID);
    }
    let missed = now.duration_since(first).as_secs() / between + 1;
    // Not every schedule is regular, so the last times are found one by one, from a little before.
    let back = SignedDuration::from_secs((missed - 2).saturating_mul(between));
    let mut next = schedule.next(first.checked_add(back).map_err(|_| INVALID)?);
    let mut last = None;
    while let Some(time) = next.filter(|time| *time <= now) {
        last = Some(time);
        next = schedule.next(time);
    }
    Ok(Due { earliest, last, missed })
}

/// Decides whether a Job is started now. `changed` is when the schedule was changed, if it was.
pub(super) fn plan(
    job: &CronJob,
    status: &CronJobStatus,
    schedule: &Schedule,
    changed: Option<Timestamp>,
    now: Timestamp,
) -> Result<Plan, &'static str> {
    let spec = &job.spec;
    let due = due(job, status, schedule, changed, now, true)?;
    let many_missed = due.last.is_some() && due.missed > MISSED_MAX;
    let decision = match due.last {
        None => Decision::Early,
        Some(time) if is_too_late(spec, time, now) => Decision::TooLate(time),
        Some(time) if is_done(job, status, time) => Decision::Done,
        Some(_) if spec.concurrency_policy.as_deref() == Some("Forbid") && is_active(status) => {
            Decision::Forbidden
        }
        Some(time) => Decision::Start(time),
    };
    Ok(Plan { decision, many_missed })
}

fn is_active(status: &CronJobStatus) -> bool {
    status.active.as_ref().is_some_and(|active| !active.is_empty())
}

fn is_too_late(spec: &CronJobSpec, time: Timestamp, now: Timestamp) -> bool {
    let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    deadline.is_some_and(|deadline| time.checked_add(deadline).is_ok_and(|end| end < now))
}

fn is_done(job: &CronJob, status: &CronJobStatus, time: Timestamp) -> bool {
    let name = job_name(job, time);
    let mut active = status.active.iter().flatten();
    active.any(|it| it.name.as_deref() == Some(&name))
        || status.last_schedule_time.as_ref().is_some_and(|last| last.0 == time)
}

/// After how long to look again.
pub(super) fn next_look(
    job: &CronJob,
    status: &CronJobStatus,
    schedule: &Schedule,
    changed: Option<Timestamp>,
    now: Timestamp,
) -> Option<Duration> {
    let from = match due(job, status, schedule, changed, now, false) {
        Err(_) => now,
        Ok(Due { last: Some(last), .. }) => last,
        Ok(Due { missed: 0, earliest, .. }) => earliest,
        Ok(_) => now,
    };
    let next = schedule.next(from)?;
    Some(Duration::try_from(next.duration_since(now)).unwrap_or_default() + DELTA)
}

/// The name of the Job for a time: the same whoever starts it, so that it is started once.
pub(super) fn job_name(job: &CronJob, time: Timestamp) -> String {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    format!("{name}-{}", time.as_second() / 60)
}

/// The Job for a time.
pub(super) fn new_job(job: &CronJob, zone: &TimeZone, time: Timestamp) -> Job {
    let template = &job.spec.job_template;
    let meta = template.metadata.clone().unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED.into(), shown(time, zone));
    Job {
        metadata: ObjectMeta {
            name: Some(job_name(job, time)),
            namespace: job.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: Some(annotations),
            owner_references: ownership::controller_reference(job).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// A time with its offset: `2030-03-31T03:30:00+02:00`.
fn shown(time: Timestamp, zone: &TimeZone) -> String {
    let zoned = time.to_zoned(zone.clone());
    let format =
        if zoned.offset().seconds() == 0 { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    zoned.strftime(format).to_string()
}

/// The finished Jobs that are kept no longer, the oldest first.
pub(super) fn outlived<'a, J: AsRef<Job>>(spec: &CronJobSpec, jobs: &'a [J]) -> Vec<&'a J> {
    let of = |type_: &str, limit: Option<i32>| -> Vec<&'a J> {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
            return Vec::new();
        };
        let finished = |job: &&J| {
            crate::job::finished(job.as_ref()).is_some_and(|condition| condition.type_ == type_)
        };
        let mut jobs: Vec<&J> = jobs.iter().filter(finished).collect();
        jobs.sort_by_cached_key(|job| {
            let job = job.as_ref();
            let started = job.status.as_ref().and_then(|status| status.start_time.as_ref());
            (started.map_or(Timestamp::MAX, |time| time.0), job.metadata.name.clone())
        });
        let surplus = jobs.len().saturating_sub(limit);
        jobs.truncate(surplus);
        jobs
    };
    let mut old = of("Complete", spec.successful_jobs_history_limit);
    old.extend(of("Failed", spec.failed_jobs_history_limit));
    old
}
