//! CronJobs start Jobs on a schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::Cluster;

use crate::events::told;
use crate::objects::{all, counted, object};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn cron(name: &str, image: &str, spec: &Value) -> CronJob {
    let mut cron = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": image}],
        }}}}},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        cron["spec"][key] = value.clone();
    }
    object(cron)
}

async fn names(cluster: &Cluster) -> Result<Vec<String>> {
    let jobs: Vec<Job> = all(cluster).await?;
    Ok(jobs.into_iter().filter_map(|job| job.metadata.name).collect())
}

#[steersman::test]
async fn a_cron_job_starts_a_job_every_hour_and_keeps_the_last_ones(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&cron("report", "steersman.dev/exit:0-after-30s", &json!({}))).await?;
    cluster.advance(59 * MINUTE).await;
    assert!(names(&cluster).await?.is_empty());
    cluster.advance(MINUTE + Duration::from_secs(1)).await;
    // 2030-01-01T01:00:00Z, in minutes since 1970.
    assert_eq!(names(&cluster).await?, ["report-31557660"]);
    let report: CronJob = cluster.client().get("report").await?.unwrap();
    let status = report.status.unwrap();
    assert_eq!(status.last_schedule_time.unwrap().0.to_string(), "2030-01-01T01:00:00Z");
    let active = &status.active.unwrap()[0];
    assert_eq!(
        (active.kind.as_deref(), active.name.as_deref()),
        (Some("Job"), Some("report-31557660"))
    );
    cluster.advance(5 * HOUR + MINUTE).await;
    let last = ["report-31557840", "report-31557900", "report-31557960"];
    assert_eq!(names(&cluster).await?, last, "three that succeeded are kept");
    let report: CronJob = cluster.client().get("report").await?.unwrap();
    let status = report.status.unwrap();
    assert_eq!(status.active, None);
    assert_eq!(status.last_successful_time.unwrap().0.to_string(), "2030-01-01T06:00:30Z");
    let lines = told(&cluster, "CronJob").await?;
    for line in [
        "SuccessfulCreate: Created job report-31557960",
        "SawCompletedJob: Saw completed job: report-31557960, condition: Complete",
        "SuccessfulDelete: Deleted job report-31557780",
    ] {
        assert!(lines.contains(&format!("cronjob-controller Normal {line}")), "{line}: {lines:?}");
    }
    let skew = "cronjob_controller_job_creation_skew_duration_seconds";
    for name in [format!("{skew}_count"), format!(r#"{skew}_bucket{{le="1.0"}}"#)] {
        assert_eq!(counted(&cluster, &name).await?, Some(6.0), "{name}");
    }
    let half_past = Patch::Merge(json!({"spec": {"schedule": "30 * * * *"}}));
    cluster.client().patch::<CronJob, _>("report", &half_past).await?;
    cluster.advance(HOUR).await;
    assert_eq!(names(&cluster).await?[1..], ["report-31557960", "report-31557990"]);
    Ok(())
}

#[steersman::test]
async fn a_policy_says_what_becomes_of_a_job_that_still_runs(cluster: Cluster) -> Result<()> {
    for policy in ["Allow", "Forbid", "Replace"] {
        let name = policy.to_lowercase();
        let spec = json!({"concurrencyPolicy": policy});
        cluster.client().create(&cron(&name, "nginx", &spec)).await?;
    }
    cluster.advance(3 * HOUR + MINUTE).await;
    let names = names(&cluster).await?;
    let of =
        |name: &str| names.iter().filter(|it| it.starts_with(name)).cloned().collect::<Vec<_>>();
    assert_eq!(of("allow"), ["allow-31557660", "allow-31557720", "allow-31557780"]);
    assert_eq!(of("forbid"), ["forbid-31557660"]);
    assert_eq!(of("replace"), ["replace-31557780"]);
    let note = "cronjob-controller Normal JobAlreadyActive: Not starting job because prior execution \
                is running and concurrency policy is Forbid";
    assert!(told(&cluster, "CronJob").await?.contains(&note.to_owned()));
    Ok(())
}

#[steersman::test]
async fn a_suspended_cron_job_starts_only_what_was_due_last(cluster: Cluster) -> Result<()> {
    let asleep = cron("report", "steersman.dev/exit:0", &json!({"suspend": true}));
    cluster.client().create(&asleep).await?;
    cluster.advance(200 * HOUR + MINUTE).await;
    assert!(names(&cluster).await?.is_empty());
    let wake = Patch::Merge(json!({"spec": {"suspend": false}}));
    cluster.client().patch::<CronJob, _>("report", &wake).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(names(&cluster).await?.len(), 1);
    let note = "cronjob-controller Warning TooManyMissedTimes: too many missed start times. Set or \
                decrease .spec.startingDeadlineSeconds or check clock skew";
    assert!(told(&cluster, "CronJob").await?.contains(&note.to_owned()));
    Ok(())
}

#[steersman::test]
async fn a_changed_schedule_starts_nothing_before_its_next_time(cluster: Cluster) -> Result<()> {
    let daily = json!({"schedule": "0 3 * * *"});
    cluster.client().create(&cron("report", "steersman.dev/exit:0", &daily)).await?;
    cluster.advance(10 * HOUR).await;
    let mut started = vec!["report-31557780"];
    assert_eq!(names(&cluster).await?, started);
    // At ten it is too late for five o'clock, and at eleven for five o'clock in New York.
    for (change, next) in [
        (json!({"schedule": "0 5 * * *"}), "report-31559340"),
        (json!({"timeZone": "America/New_York"}), "report-31561080"),
    ] {
        let change = Patch::Merge(json!({"spec": change}));
        cluster.client().patch::<CronJob, _>("report", &change).await?;
        cluster.advance(HOUR).await;
        assert_eq!(names(&cluster).await?, started, "nothing was missed");
        cluster.advance(24 * HOUR).await;
        started.push(next);
        assert_eq!(names(&cluster).await?, started);
    }
    Ok(())
}

/// Who is needed for a year: that of everybody else would take longer, above all that of the
/// garbage collector, which watches every kind.
const FEW: &str = "job-controller,cronjob-controller,kube-scheduler";

/// When, how far to go before looking which Jobs there are, and how many there are in 364 days. Every
/// night, but without optimisation, where a run costs thirty times as much, on Sundays.
const YEAR: (&str, u32, usize) =
    if cfg!(debug_assertions) { ("30 2 * * sun", 14, 52) } else { ("30 2 * * *", 2, 364) };

#[steersman::test(limit = "400d", nodes = 1, which = FEW.parse().unwrap())]
async fn a_year_of_nights_has_its_daylight_saving(cluster: Cluster) -> Result<()> {
    // In Berlin 2030-03-31 has no 02:30, and 2030-10-27 has two of them.
    let (schedule, days, expected) = YEAR;
    let spec = json!({"schedule": schedule, "timeZone": "Europe/Berlin"});
    cluster.client().create(&cron("nightly", "steersman.dev/exit:0", &spec)).await?;
    let key = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    let mut times = BTreeSet::new();
    let before = requests(&cluster).await?;
    for _ in 0..364 / days {
        cluster.advance(days * (24 * HOUR)).await;
        let jobs: Vec<Job> = all(&cluster).await?;
        assert!(jobs.len() <= 3, "only the last ones are kept");
        times.extend(jobs.into_iter().map(|job| job.metadata.annotations.unwrap()[key].clone()));
    }
    // A Job and its Pod are 19 requests, 9 of them Events; the test itself lists Jobs.
    let asked = requests(&cluster).await? - before - f64::from(364 / days);
    let runs = u32::try_from(expected).unwrap();
    let by_kind = requests_by_kind(&cluster).await?;
    assert!(asked < f64::from(20 * runs), "{asked} requests for {runs} runs: {by_kind:#?}");
    let of = |day: &str| times.iter().filter(|time| time.starts_with(day)).collect::<Vec<_>>();
    assert_eq!(times.len(), expected, "one night has none, and one has two");
    assert_eq!(of("2030-03-31"), [""; 0]);
    assert_eq!(of("2030-04-07"), ["2030-04-07T02:30:00+02:00"]);
    assert_eq!(of("2030-10-27"), ["2030-10-27T02:30:00+01:00", "2030-10-27T02:30:00+02:00"]);
    assert!(times.iter().all(|time| time.contains("T02:30:00+")));
    let nightly: CronJob = cluster.client().get("nightly").await?.unwrap();
    assert_eq!(nightly.status.unwrap().active, None);
    Ok(())
}

/// How many requests the API server has answered.
async fn requests(cluster: &Cluster) -> Result<f64> {
    Ok(requests_by_kind(cluster).await?.values().sum())
}

/// The same by what was asked for.
async fn requests_by_kind(cluster: &Cluster) -> Result<BTreeMap<String, f64>> {
    let metrics = http::Request::get("/metrics").body(Vec::new())?;
    let metrics = cluster.client().kube().request_text(metrics).await?;
    let lines = metrics.lines().filter(|line| line.starts_with("apiserver_request_total"));
    // Watches begin anew every few weeks, whatever happens.
    let lines = lines.filter(|line| !line.contains("verb=\"WATCH\""));
    let mut counts = BTreeMap::new();
    for line in lines {
        if let Some((kind, count)) = line.rsplit_once(' ') {
            *counts.entry(kind.to_owned()).or_default() += count.parse::<f64>().unwrap_or(0.0);
        }
    }
    Ok(counts)
}
