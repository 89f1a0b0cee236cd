//! Nodes, namespaces, events, and the small things every cluster is made of.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{condition, items, len, number, printed, text};
use super::{Column, age, duration};

pub(super) fn columns(group: &str, kind: &str) -> Option<Vec<Column>> {
    Some(match (group, kind) {
        ("", "Node") => vec![
            Column::text("Status", node_status),
            Column::text("Roles", roles),
            age(),
            Column::field("Version", "status.nodeInfo.kubeletVersion", ""),
            Column::text("Internal-IP", |node, _| address(node, "InternalIP")).wide(),
            Column::text("External-IP", |node, _| address(node, "ExternalIP")).wide(),
            Column::field("OS-Image", "status.nodeInfo.osImage", "<unknown>").wide(),
            Column::text("Kernel-Version", kernel).wide(),
            Column::field(
                "Container-Runtime",
                "status.nodeInfo.containerRuntimeVersion",
                "<unknown>",
            )
            .wide(),
        ],
        ("", "Namespace") => vec![Column::field("Status", "status.phase", ""), age()],
        ("", "ConfigMap") => vec![
            Column::count("Data", |map, _| (len(&map["data"]) + len(&map["binaryData"])).into())
                .called_text(),
            age(),
        ],
        ("", "Secret") => vec![
            Column::field("Type", "type", ""),
            Column::count("Data", |secret, _| len(&secret["data"]).into()).called_text(),
            age(),
        ],
        ("", "ServiceAccount") => vec![age()],
        ("", "ComponentStatus") => vec![
            Column::text("Status", component_status),
            Column::text("Message", |o, _| text(&healthy(o)["message"]).into()),
            Column::text("Error", |o, _| text(&healthy(o)["error"]).into()),
        ],
        ("", "ResourceQuota") => vec![
            Column::text("Request", |quota, _| usage(quota, false)),
            Column::text("Limit", |quota, _| usage(quota, true)),
            age(),
        ],
        ("" | "events.k8s.io", "Event") => event(),
        ("coordination.k8s.io", "Lease") => {
            vec![Column::field("Holder", "spec.holderIdentity", ""), age()]
        }
        ("scheduling.k8s.io", "PriorityClass") => vec![
            Column::number("Value", "value"),
            Column::switch("Global-Default", "globalDefault"),
            age(),
            Column::field("PreemptionPolicy", "preemptionPolicy", ""),
        ],
        ("node.k8s.io", "RuntimeClass") => vec![Column::field("Handler", "handler", ""), age()],
        _ => return None,
    })
}

fn event() -> Vec<Column> {
    vec![
        Column::text("Last Seen", |event, now| last_seen(event, now).into()),
        Column::field("Type", "type", ""),
        Column::field("Reason", "reason", ""),
        Column::text("Object", target),
        Column::text("Subobject", |event, _| text(&regarding(event)["fieldPath"]).into()).wide(),
        Column::text("Source", source).wide(),
        Column::text("Message", |event, _| {
            either(event, ["message", "note"]).as_str().unwrap_or_default().trim().into()
        }),
        Column::text("First Seen", |event, now| first_seen(event, now).into()).wide(),
        Column::text("Count", count).wide(),
        Column::field("Name", "metadata.name", "").called_name().wide(),
    ]
}

/// The one condition that the components of old have; null where they do not.
fn healthy(component: &Value) -> &Value {
    let conditions = items(&component["conditions"]).iter();
    conditions.into_iter().find(|c| c["type"] == "Healthy").unwrap_or(&Value::Null)
}

fn component_status(component: &Value, _: Timestamp) -> Value {
    match text(&healthy(component)["status"]) {
        "" => "Unknown".into(),
        "True" => "Healthy".into(),
        _ => "Unhealthy".into(),
    }
}

fn node_status(node: &Value, _: Timestamp) -> Value {
    let ready = match condition(node, "Ready") {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if node["spec"]["unschedulable"] == true {
        format!("{ready},SchedulingDisabled").into()
    } else {
        ready.into()
    }
}

fn roles(node: &Value, _: Timestamp) -> Value {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let role = |(key, value): (&String, &Value)| match key.as_str() {
        "kubernetes.io/role" => Some(text(value).to_owned()),
        key => key.strip_prefix("node-role.kubernetes.io/").map(str::to_owned),
    };
    let mut roles: Vec<_> = labels.filter_map(role).filter(|role| !role.is_empty()).collect();
    roles.sort();
    roles.dedup();
    if roles.is_empty() { "<none>".into() } else { roles.join(",").into() }
}

fn address(node: &Value, r#type: &str) -> Value {
    let addresses = items(&node["status"]["addresses"]);
    let found = addresses.iter().find(|address| address["type"] == r#type);
    found.map_or("<none>", |address| text(&address["address"])).into()
}

fn kernel(node: &Value, _: Timestamp) -> Value {
    let info = &node["status"]["nodeInfo"];
    let version = match text(&info["kernelVersion"]) {
        "" => "<unknown>",
        version => version,
    };
    match text(&info["architecture"]) {
        "" => version.into(),
        architecture => format!("{version} ({architecture})").into(),
    }
}

/// What a quota counts, as `name: used/hard`, limits apart from the rest.
fn usage(quota: &Value, limits: bool) -> Value {
    let status = &quota["status"];
    let hard = status["hard"].as_object().into_iter().flatten();
    let mut parts: Vec<_> = hard
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = match &status["used"][name] {
                Value::Null => "0".to_owned(),
                used => printed(used),
            };
            format!("{name}: {used}/{}", printed(hard))
        })
        .collect();
    parts.sort();
    parts.join(", ").into()
}

/// The first of two names of a field that the event has: its group decides which.
fn either<'a>(event: &'a Value, names: [&str; 2]) -> &'a Value {
    let [core, new] = names.map(|name| &event[name]);
    if core.is_null() { new } else { core }
}

fn regarding(event: &Value) -> &Value {
    either(event, ["involvedObject", "regarding"])
}

fn target(event: &Value, _: Timestamp) -> Value {
    let object = regarding(event);
    let kind = text(&object["kind"]).to_lowercase();
    match text(&object["name"]) {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn first_seen(event: &Value, now: Timestamp) -> String {
    let first = text(either(event, ["firstTimestamp", "deprecatedFirstTimestamp"]));
    duration::since(if first.is_empty() { text(&event["eventTime"]) } else { first }, now)
}

fn last_seen(event: &Value, now: Timestamp) -> String {
    let last = text(either(event, ["lastTimestamp", "deprecatedLastTimestamp"]));
    match (text(&event["series"]["lastObservedTime"]), last) {
        ("", "") => first_seen(event, now),
        ("", last) => duration::since(last, now),
        (observed, _) => duration::since(observed, now),
    }
}

fn count(event: &Value, _: Timestamp) -> Value {
    let series = &event["series"]["count"];
    let count = if series.is_null() { either(event, ["count", "deprecatedCount"]) } else { series };
    number(count).max(1).into()
}

fn source(event: &Value, _: Timestamp) -> Value {
    let source = either(event, ["source", "deprecatedSource"]);
    let first = |texts: [&Value; 2]| {
        texts.into_iter().map(text).find(|text| !text.is_empty()).unwrap_or_default().to_owned()
    };
    let reporter = either(event, ["reportingComponent", "reportingController"]);
    let component = first([&source["component"], reporter]);
    match first([&source["host"], &event["reportingInstance"]]).as_str() {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}
