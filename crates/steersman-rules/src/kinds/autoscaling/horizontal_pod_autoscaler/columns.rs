//! What `kubectl get hpa` shows.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use crate::table::cells::{at_most, items, printed, text};
use crate::table::{Column, age};
use crate::versions;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("Reference", reference),
        Column::text("Targets", targets),
        Column::field("MinPods", "spec.minReplicas", "<unset>"),
        Column::number("MaxPods", "spec.maxReplicas").called_text(),
        Column::number("Replicas", "status.currentReplicas").called_text(),
        age(),
    ]
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
