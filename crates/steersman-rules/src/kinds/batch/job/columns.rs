//! What `kubectl get jobs` shows.

use jiff::Timestamp;
use serde_json::Value;

use crate::table::cells::{condition, number};
use crate::table::template::containers_and_selector;
use crate::table::{Column, age, duration};

pub(super) fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::text("Status", status),
        Column::text("Completions", completions),
        Column::text("Duration", run_time),
        age(),
    ];
    columns.extend(containers_and_selector());
    columns
}

fn status(job: &Value, _: Timestamp) -> Value {
    let holds = |r#type: &str| condition(job, r#type).is_some_and(|c| c["status"] == "True");
    if holds("Complete") {
        "Complete".into()
    } else if holds("Failed") {
        "Failed".into()
    } else if !job["metadata"]["deletionTimestamp"].is_null() {
        "Terminating".into()
    } else {
        let later = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
        later.into_iter().find(|t| holds(t)).unwrap_or("Running").into()
    }
}

fn completions(job: &Value, _: Timestamp) -> Value {
    let succeeded = number(&job["status"]["succeeded"]);
    let parallelism = number(&job["spec"]["parallelism"]);
    match job["spec"]["completions"].as_i64() {
        Some(wanted) => format!("{succeeded}/{wanted}").into(),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}").into(),
        None => format!("{succeeded}/1").into(),
    }
}

fn run_time(job: &Value, now: Timestamp) -> Value {
    let time = |key: &str| job["status"][key].as_str()?.parse::<Timestamp>().ok();
    let Some(start) = time("startTime") else { return "".into() };
    let end = time("completionTime").unwrap_or(now);
    duration::human(duration::between(start, end)).into()
}
