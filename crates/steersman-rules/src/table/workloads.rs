//! Deployments, sets, jobs and what scales them.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{
    at_most, condition, items, joined, labels, len, number, or_none, printed, selector, text,
};
use super::{Column, age, duration};
use crate::versions;

pub(super) fn columns(group: &str, kind: &str) -> Option<Vec<Column>> {
    let mut columns = match (group, kind) {
        ("apps", "Deployment") => vec![
            Column::text("Ready", ready_of_wanted),
            Column::number("Up-to-date", "status.updatedReplicas").called_text(),
            Column::number("Available", "status.availableReplicas").called_text(),
            age(),
        ],
        ("apps", "ReplicaSet") | ("", "ReplicationController") => vec![
            Column::number("Desired", "spec.replicas"),
            Column::number("Current", "status.replicas"),
            Column::number("Ready", "status.readyReplicas"),
            age(),
        ],
        ("apps", "StatefulSet") => vec![Column::text("Ready", ready_of_wanted), age()],
        ("apps", "DaemonSet") => vec![
            Column::number("Desired", "status.desiredNumberScheduled"),
            Column::number("Current", "status.currentNumberScheduled"),
            Column::number("Ready", "status.numberReady"),
            Column::number("Up-to-date", "status.updatedNumberScheduled"),
            Column::number("Available", "status.numberAvailable"),
            Column::text("Node Selector", |set, _| {
                labels(&set["spec"]["template"]["spec"]["nodeSelector"]).into()
            }),
            age(),
        ],
        ("batch", "Job") => vec![
            Column::text("Status", job_status),
            Column::text("Completions", completions),
            Column::text("Duration", job_duration),
            age(),
        ],
        ("batch", "CronJob") => vec![
            Column::field("Schedule", "spec.schedule", ""),
            Column::field("Timezone", "spec.timeZone", "<none>"),
            Column {
                r#type: "boolean".into(),
                ..Column::text("Suspend", |job, _| yes_or_no(&job["spec"]["suspend"]))
            },
            Column::count("Active", |job, _| len(&job["status"]["active"]).into()),
            Column::text("Last Schedule", last_schedule),
            age(),
        ],
        _ => return single(group, kind),
    };
    columns.extend(containers(kind));
    Some(columns)
}

/// Kinds without a pod template to show with `-o wide`.
fn single(group: &str, kind: &str) -> Option<Vec<Column>> {
    Some(match (group, kind) {
        ("", "PodTemplate") => vec![
            Column::text("Containers", |t, _| joined(containers_of(t), "name").into()),
            Column::text("Images", |t, _| joined(containers_of(t), "image").into()),
            Column::text("Pod Labels", |t, _| labels(&t["template"]["metadata"]["labels"]).into()),
        ],
        ("apps", "ControllerRevision") => vec![
            Column::text("Controller", controller),
            Column::number("Revision", "revision").called_text(),
            age(),
        ],
        ("autoscaling", "HorizontalPodAutoscaler") => vec![
            Column::text("Reference", reference),
            Column::text("Targets", targets),
            Column::field("MinPods", "spec.minReplicas", "<unset>"),
            Column::number("MaxPods", "spec.maxReplicas").called_text(),
            Column::number("Replicas", "status.currentReplicas").called_text(),
            age(),
        ],
        ("autoscaling", "Scale") => vec![
            Column::field("Name", "metadata.name", ""),
            Column::number("Desired", "spec.replicas"),
            Column::number("Available", "status.replicas"),
            age(),
        ],
        ("policy", "PodDisruptionBudget") => vec![
            Column::field("Min Available", "spec.minAvailable", "N/A"),
            Column::field("Max Unavailable", "spec.maxUnavailable", "N/A"),
            Column::number("Allowed Disruptions", "status.disruptionsAllowed"),
            age(),
        ],
        _ => return None,
    })
}

/// The wide columns of every kind with a pod template.
fn containers(kind: &str) -> Vec<Column> {
    let mut columns = vec![
        Column::text("Containers", |o, _| joined(containers_of(o), "name").into()).wide(),
        Column::text("Images", |o, _| joined(containers_of(o), "image").into()).wide(),
    ];
    match kind {
        "StatefulSet" => {}
        "ReplicationController" => {
            let show = |o: &Value, _| labels(&o["spec"]["selector"]).into();
            columns.push(Column::text("Selector", show).wide());
        }
        "CronJob" => {
            let show =
                |o: &Value, _| selector(&o["spec"]["jobTemplate"]["spec"]["selector"]).into();
            columns.push(Column::text("Selector", show).wide());
        }
        _ => {
            let show = |o: &Value, _| selector(&o["spec"]["selector"]).into();
            columns.push(Column::text("Selector", show).wide());
        }
    }
    columns
}

/// Where a kind keeps its pod template, the containers in it.
fn containers_of(object: &Value) -> &Value {
    let job = &object["spec"]["jobTemplate"]["spec"]["template"];
    let own = &object["spec"]["template"];
    let template = [job, own, &object["template"]].into_iter().find(|t| !t.is_null());
    template.map_or(&Value::Null, |template| &template["spec"]["containers"])
}

fn ready_of_wanted(object: &Value, _: Timestamp) -> Value {
    let ready = number(&object["status"]["readyReplicas"]);
    format!("{ready}/{}", number(&object["spec"]["replicas"])).into()
}

fn job_status(job: &Value, _: Timestamp) -> Value {
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

fn job_duration(job: &Value, now: Timestamp) -> Value {
    let time = |key: &str| job["status"][key].as_str()?.parse::<Timestamp>().ok();
    let Some(start) = time("startTime") else { return "".into() };
    let end = time("completionTime").unwrap_or(now);
    duration::human(duration::between(start, end)).into()
}

fn last_schedule(job: &Value, now: Timestamp) -> Value {
    match text(&job["status"]["lastScheduleTime"]) {
        "" => "<none>".into(),
        time => duration::since(time, now).into(),
    }
}

fn yes_or_no(value: &Value) -> Value {
    value.as_bool().map_or("<unset>", |on| if on { "True" } else { "False" }).into()
}

fn controller(object: &Value, _: Timestamp) -> Value {
    let owners = items(&object["metadata"]["ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return or_none("");
    };
    let group = text(&owner["apiVersion"]).rsplit_once('/').map_or("", |(group, _)| group);
    let kind = text(&owner["kind"]).to_lowercase();
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{}", text(&owner["name"])).into()
}

fn reference(hpa: &Value, _: Timestamp) -> Value {
    let target = &hpa["spec"]["scaleTargetRef"];
    format!("{}/{}", text(&target["kind"]), text(&target["name"])).into()
}

/// What an autoscaler aims at, as `cpu: 20%/80%`; both versions of the kind.
fn targets(hpa: &Value, _: Timestamp) -> Value {
    let mut hpa = Cow::Borrowed(hpa);
    if hpa["apiVersion"] == "autoscaling/v1" {
        versions::to_api_version(hpa.to_mut(), "autoscaling/v2");
    }
    let current = items(&hpa["status"]["currentMetrics"]);
    let metrics = items(&hpa["spec"]["metrics"]).iter().enumerate();
    let all: Vec<_> = metrics.map(|(i, m)| metric(m, current.get(i))).collect();
    at_most(&all, 2).replace(',', ", ").into()
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (key, named) = match text(&spec["type"]) {
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "External" => ("external", false),
        _ => return "<unknown type>".to_owned(),
    };
    let target = &spec[key]["target"];
    let reads = ["averageValue", "averageUtilization", "value"];
    let field = reads.into_iter().find(|field| !target[*field].is_null());
    let shown = |value: &Value| match (field, value) {
        (_, Value::Null) => "<unknown>".to_owned(),
        (Some("averageUtilization"), value) => format!("{value}%"),
        (_, value) => printed(value),
    };
    let current = match (status, field) {
        (Some(status), Some(field)) => shown(&status[key]["current"][field]),
        _ => "<unknown>".to_owned(),
    };
    let wanted = field.map_or("<auto>".to_owned(), |field| shown(&target[field]));
    let average = !named && key != "pods" && field == Some("averageValue");
    let name = if named { format!("{}: ", text(&spec[key]["name"])) } else { String::new() };
    format!("{name}{current}/{wanted}{}", if average { " (avg)" } else { "" })
}
