use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use serde_json::{Value, json};

use super::plan::{Decision, INVALID, new_job, next_look, outlived, plan};
use super::schedule::{Schedule, time_zone};

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn schedule(text: &str, zone: &str) -> Schedule {
    Schedule::parse(text, time_zone(zone).unwrap()).unwrap()
}

#[test]
fn a_schedule_tells_what_comes_next() {
    for (text, after, next) in [
        ("* * * * *", "2030-01-01T00:00:00Z", "2030-01-01T00:01:00Z"),
        ("* * * * *", "2030-01-01T00:00:59.9Z", "2030-01-01T00:01:00Z"),
        ("*/15 * * * *", "2030-01-01T00:15:00Z", "2030-01-01T00:30:00Z"),
        ("0 0 29 2 *", "2030-01-01T00:00:00Z", "2032-02-29T00:00:00Z"),
        ("30 6-16/4 * * 1-5", "2030-01-04T14:30:00Z", "2030-01-07T06:30:00Z"),
        ("0 12 1 * mon", "2030-01-02T00:00:00Z", "2030-01-07T12:00:00Z"),
        ("0 12 */2 * mon", "2030-01-02T00:00:00Z", "2030-01-03T12:00:00Z"),
        ("0 12 ? jan,MAR sun", "2030-01-27T12:00:00Z", "2030-03-03T12:00:00Z"),
        ("59 23 31 12 *", "2030-01-01T00:00:00Z", "2030-12-31T23:59:00Z"),
        ("@hourly", "2030-01-01T00:59:59Z", "2030-01-01T01:00:00Z"),
        ("@weekly", "2030-01-01T00:00:00Z", "2030-01-06T00:00:00Z"),
        ("@yearly", "2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"),
        ("@every 1h30m", "2030-01-01T00:00:10.5Z", "2030-01-01T01:30:10Z"),
    ] {
        assert_eq!(schedule(text, "UTC").next(time(after)), Some(time(next)), "{text} {after}");
    }
    assert_eq!(schedule("0 0 31 2 *", "UTC").next(time("2030-01-01T00:00:00Z")), None);
}

#[test]
fn a_schedule_that_says_nothing_is_refused() {
    for (text, why) in [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* 5-1 * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        (
            "TZ=Mars/Olympus * * * * *",
            "provided bad location Mars/Olympus: unknown time zone Mars/Olympus",
        ),
    ] {
        assert_eq!(Schedule::parse(text, TimeZone::UTC).unwrap_err(), why, "{text}");
    }
}

#[test]
fn daylight_saving_leaves_out_what_a_day_does_not_have_and_repeats_what_it_has_twice() {
    let next =
        |text: &str, zone: &str, after: &str| schedule(text, zone).next(time(after)).unwrap();
    // In Berlin, 2030-03-31 has no 02:30, and 2030-10-27 has it twice.
    let berlin = "Europe/Berlin";
    assert_eq!(next("30 2 * * *", berlin, "2030-03-30T01:30:00Z"), time("2030-04-01T00:30:00Z"));
    assert_eq!(next("30 2 * * *", berlin, "2030-10-26T00:30:00Z"), time("2030-10-27T00:30:00Z"));
    assert_eq!(next("30 2 * * *", berlin, "2030-10-27T00:30:00Z"), time("2030-10-27T01:30:00Z"));
    assert_eq!(next("30 2 * * *", berlin, "2030-10-27T01:30:00Z"), time("2030-10-28T01:30:00Z"));
    // Where the change is at midnight, a day may begin at one.
    let cairo = "Africa/Cairo";
    assert_eq!(next("0 0 * * *", cairo, "2030-04-24T22:00:00Z"), time("2030-04-26T21:00:00Z"));
    assert_eq!(
        next("0 * * * *", "Australia/Lord_Howe", "2030-04-06T15:00:00Z"),
        time("2030-04-06T15:30:00Z")
    );
}

#[test]
fn a_year_has_as_many_times_as_its_clock_shows() {
    for (zone, count) in [("UTC", 365), ("Europe/Berlin", 365), ("America/New_York", 364)] {
        let daily = schedule("0 2 * * *", zone);
        let mut at = time("2029-12-31T23:59:00Z");
        let mut times = 0;
        while let Some(next) = daily.next(at).filter(|next| *next < time("2030-12-31T23:30:00Z")) {
            at = next;
            times += 1;
        }
        // In spring a day has no two o'clock; in autumn one has it twice in Berlin, but not in New York.
        assert_eq!(times, count, "{zone}");
    }
}

fn cron(spec: &Value) -> CronJob {
    let mut whole = json!({
        "metadata": {
            "name": "report", "namespace": "default", "uid": "c1",
            "creationTimestamp": "2030-01-01T00:00:30Z",
        },
        "spec": {"schedule": "0 * * * *", "jobTemplate": {
            "metadata": {"labels": {"app": "report"}}, "spec": {"template": {}},
        }},
    });
    for (key, value) in spec.as_object().unwrap() {
        whole["spec"][key] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}

fn decided(cron: &CronJob, status: &Value, now: &str) -> Result<(Decision, bool), &'static str> {
    let status = serde_json::from_value(status.clone()).unwrap();
    let planned = plan(cron, &status, &schedule(&cron.spec.schedule, "UTC"), None, time(now))?;
    Ok((planned.decision, planned.many_missed))
}

#[test]
fn a_cron_job_starts_what_is_due_once() {
    let hourly = cron(&json!({}));
    let one = time("2030-01-01T01:00:00Z");
    let done = json!({"lastScheduleTime": "2030-01-01T01:00:00Z"});
    let listed = json!({"active": [{"name": "report-31557660", "namespace": "default"}]});
    for (status, now, expected) in [
        (json!({}), "2030-01-01T00:59:59Z", Decision::Early),
        (json!({}), "2030-01-01T01:00:00Z", Decision::Start(one)),
        (json!({}), "2030-01-01T01:59:59Z", Decision::Start(one)),
        (done.clone(), "2030-01-01T01:30:00Z", Decision::Early),
        (listed, "2030-01-01T01:30:00Z", Decision::Done),
        (json!({}), "2030-01-01T04:10:00Z", Decision::Start(time("2030-01-01T04:00:00Z"))),
    ] {
        assert_eq!(decided(&hourly, &status, now), Ok((expected, false)), "{status} {now}");
    }
    let (decision, many) = decided(&hourly, &done, "2030-01-09T01:30:00Z").unwrap();
    assert_eq!((decision, many), (Decision::Start(time("2030-01-09T01:00:00Z")), true));
    let never = cron(&json!({"schedule": "0 0 31 2 *"}));
    assert_eq!(decided(&never, &json!({}), "2031-01-01T00:00:00Z"), Err(INVALID));
}

#[test]
fn what_a_new_schedule_would_have_started_before_the_change_was_not_missed() {
    let cron = cron(&json!({"schedule": "0 5 * * *"}));
    let schedule = schedule("0 5 * * *", "UTC");
    let status = json!({"lastScheduleTime": "2030-01-02T03:00:00Z"});
    let status = serde_json::from_value(status).unwrap();
    let ten = time("2030-01-02T10:00:00Z");
    let decided = |changed: Option<Timestamp>, now: Timestamp| {
        plan(&cron, &status, &schedule, changed, now).unwrap().decision
    };
    let (today, tomorrow) = (time("2030-01-02T05:00:00Z"), time("2030-01-03T05:00:00Z"));
    assert_eq!(decided(None, ten), Decision::Start(today), "who did not see it catches up");
    assert_eq!(decided(Some(ten), ten), Decision::Early);
    assert_eq!(decided(Some(ten), tomorrow), Decision::Start(tomorrow));
    assert_eq!(decided(Some(time("2030-01-02T04:00:00Z")), ten), Decision::Start(today));
    let look = next_look(&cron, &status, &schedule, Some(ten), ten).unwrap();
    assert_eq!(look.as_millis(), 19 * 3_600_000 + 100);
}

#[test]
fn a_deadline_and_a_policy_can_keep_a_job_from_being_started() {
    let one = time("2030-01-01T01:00:00Z");
    let strict = cron(&json!({"startingDeadlineSeconds": 100}));
    let at = |now: &str| decided(&strict, &json!({}), now).unwrap().0;
    assert_eq!(at("2030-01-01T01:01:00Z"), Decision::Start(one));
    assert_eq!(at("2030-01-01T01:05:00Z"), Decision::Early, "the time before the deadline is over");
    let alone = cron(&json!({"concurrencyPolicy": "Forbid"}));
    let active = json!({"active": [{"name": "before", "namespace": "default"}]});
    let at = |status: &Value| decided(&alone, status, "2030-01-01T01:00:00Z").unwrap().0;
    assert_eq!((at(&json!({})), at(&active)), (Decision::Start(one), Decision::Forbidden));
}

#[test]
fn a_cron_job_looks_again_a_moment_after_the_next_time() {
    let hourly = cron(&json!({}));
    let schedule = schedule("0 * * * *", "UTC");
    let in_millis = |status: Value, now: &str| {
        let status = serde_json::from_value(status).unwrap();
        next_look(&hourly, &status, &schedule, None, time(now)).unwrap().as_millis()
    };
    assert_eq!(in_millis(json!({}), "2030-01-01T00:59:00Z"), 60_100);
    let done = json!({"lastScheduleTime": "2030-01-01T01:00:00Z"});
    assert_eq!(in_millis(done, "2030-01-01T01:00:00Z"), 3_600_100);
}

#[test]
fn a_job_is_named_after_its_minute_and_knows_its_time() {
    let cron = cron(&json!({}));
    let zone = time_zone("Europe/Berlin").unwrap();
    let job = |zone: &TimeZone| new_job(&cron, zone, time("2030-01-01T01:00:00Z"));
    let made = job(&zone);
    assert_eq!(made.metadata.name.as_deref(), Some("report-31557660"));
    assert_eq!(made.metadata.labels.unwrap()["app"], "report");
    let key = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    assert_eq!(made.metadata.annotations.unwrap()[key], "2030-01-01T02:00:00+01:00");
    let utc = job(&TimeZone::UTC).metadata.annotations.unwrap();
    assert_eq!(utc[key], "2030-01-01T01:00:00Z");
}

#[test]
fn only_so_many_finished_jobs_are_kept() {
    let job = |name: &str, type_: &str, hour: u32| -> std::sync::Arc<Job> {
        let job = json!({
            "metadata": {"name": name},
            "spec": {"template": {}},
            "status": {
                "startTime": format!("2030-01-01T{hour:02}:00:00Z"),
                "conditions": [{"type": type_, "status": "True"}],
            },
        });
        std::sync::Arc::new(serde_json::from_value(job).unwrap())
    };
    let jobs = [
        job("c", "Complete", 3),
        job("a", "Complete", 1),
        job("b", "Complete", 2),
        job("x", "Failed", 1),
        job("y", "Failed", 2),
        job("z", "Suspended", 0),
    ];
    let old = |spec: Value| -> Vec<String> {
        let cron = cron(&spec);
        let old = outlived(&cron.spec, &jobs);
        old.into_iter().map(|job| job.metadata.name.clone().unwrap()).collect()
    };
    let limits = |good: i32, bad: i32| {
        old(json!({"successfulJobsHistoryLimit": good, "failedJobsHistoryLimit": bad}))
    };
    assert_eq!(limits(1, 1), ["a", "b", "x"]);
    assert_eq!(limits(0, 2), ["a", "b", "c"]);
    assert!(old(json!({})).is_empty());
}
