//! Nodes register themselves, with a status of their own.

mod annotations;
mod config;
mod declared;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::address::{self, Cidr};
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, items, remove, set, text, within_existing};
use crate::rules::resource_name::check_amount;
use crate::table::cells::condition;
use crate::table::{Column, age};

/// What is said of `Node`.
pub(super) const KIND: Kind = Kind {
    plural: "nodes",
    name: "Node",
    short_names: &["no"],
    traits: &[Trait::Proxy, Trait::Status],
    storage_prefix: Some("minions"),
    selectable_fields: &["spec.unschedulable"],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const TAINT_EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

const RULES: Rules = Rules {
    default,
    keeps_status: true,
    create: |node| {
        within_existing(node, "spec", |spec| drop(remove(spec, "configSource")));
        within_existing(node, "status", |status| drop(remove(status, "config")));
    },
    check,
    change,
    prepare_status,
    check_status: change,
    warn: |node, _| warnings(&At::root(node)),
    ..Rules::NONE
};

/// A node that does not say what it can give away gives away what it has; the two fields
/// for the addresses of its pods say the same.
fn default(node: &mut Value) {
    within_existing(node, "status", |status| {
        if !status["capacity"].is_null() {
            let capacity = status["capacity"].clone();
            fill(status, "allocatable", capacity);
        }
    });
    within_existing(node, "spec", |spec| {
        let one = text(&spec["podCIDR"]).to_owned();
        let first = spec["podCIDRs"][0].clone();
        if one.is_empty() {
            if !first.is_null() {
                set(spec, "podCIDR", first);
            }
        } else if first != one.as_str() {
            // Who changes the one may not know of the many.
            set(spec, "podCIDRs", vec![one]);
        }
    });
}

/// Configuration that the cluster gives to nodes is no more: only where a node says of some already may
/// it say of any.
fn prepare_status(old: &Value, node: &mut Value) {
    default(node);
    if old["status"]["config"].is_null() {
        within_existing(node, "status", |status| drop(remove(status, "config")));
    }
}

fn check(node: &At<'_, '_>, _: &Value, errors: &mut Errors) {
    annotations::validate(node, errors);
    spec_taints(node, errors);
    resources(node, errors);
    swap(node, errors);
    declared::validate(&node.at("status.declaredFeatures"), errors);
    pod_ranges(&node.at("spec"), errors);
}

/// The path says `metadata`, as it does in Kubernetes.
fn swap(node: &At<'_, '_>, errors: &mut Errors) {
    let capacity = &node.value["status"]["nodeInfo"]["swap"]["capacity"];
    let capacity = At::new(capacity, "metadata.nodeSwapStatus.capacity");
    if capacity.number().is_some_and(|bytes| bytes <= 0) {
        errors.push(capacity.invalid("must be greater than zero"));
    }
}

/// One range of addresses for pods a family.
fn pod_ranges(spec: &At<'_, '_>, errors: &mut Errors) {
    for range in spec.each("podCIDRs") {
        address::strict_cidr(&range, range.text(), errors);
    }
    let ranges = spec.at("podCIDRs");
    if ranges.len() < 2 {
        return;
    }
    let is_six =
        |range: &Value| Cidr::parse(text(range)).map(|cidr| cidr.ip.to_canonical().is_ipv6());
    let six: Vec<Option<bool>> = ranges.list().iter().map(is_six).collect();
    if let Some(i) = six.iter().position(Option::is_none) {
        let range = text(&ranges.value[i]);
        errors.push(ranges.internal_error(&format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{i}]: <nil> \
             (invalid CIDR address: {range})"
        )));
    }
    if !matches!(six[..], [Some(one), Some(other)] if one != other) {
        errors.push(ranges.invalid("may specify no more than one CIDR for each IP family"));
    }
}

/// Kubernetes looks at some parts of a changed node twice, and so tells their mistakes twice.
fn change(node: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    annotations::validate(node, errors);
    resources(node, errors);
    declared::validate(&node.at("status.declaredFeatures"), errors);
    addresses(node, errors);
    let spec = node.at("spec");
    changed_ranges(&spec.at("podCIDRs"), items(&old["spec"]["podCIDRs"]), errors);
    let provider = spec.at("providerID");
    let before = text(&old["spec"]["providerID"]);
    let after = provider.text();
    if !before.is_empty() && before != after {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(provider.forbidden(detail));
    }
    config::validate(node, errors);
    spec_taints(node, errors);
    let external = spec.at("externalID");
    if external.text() != text(&old["spec"]["externalID"]) {
        errors.push(external.forbidden("may not be updated"));
    }
}

/// The ranges of a node stay once it has any. Of as many others, each is told.
fn changed_ranges(ranges: &At<'_, '_>, before: &[Value], errors: &mut Errors) {
    let changed = match before.len() {
        0 => 0,
        len if len != ranges.len() => 1,
        _ => before.iter().zip(ranges.list()).filter(|(before, now)| before != now).count(),
    };
    let why = "node updates may not change podCIDR except from \"\" to valid";
    errors.extend((0..changed).map(|_| ranges.forbidden(why)));
}

/// The path says `metadata`, as it does in Kubernetes.
fn spec_taints(node: &At<'_, '_>, errors: &mut Errors) {
    taints(&At::new(&node.value["spec"]["taints"], "metadata.taints"), errors);
}

fn taints(list: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for taint in list.items() {
        let key = taint.at("key");
        let value = taint.at("value");
        key.follows(names::qualified_name, errors);
        let complaints = names::label_value(value.text());
        if !complaints.is_empty() {
            errors.push(value.invalid(&complaints.join(";")));
        }
        taint.at("effect").requires_one_of(TAINT_EFFECTS, errors);
        if !seen.insert((key.text(), text(&taint.value["effect"]))) {
            let mut error = taint.duplicate_as("Taint");
            error.text.push_str(": taints must be unique by key and effect pair");
            errors.push(error);
        }
    }
}

fn resources(node: &At<'_, '_>, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        for (name, amount) in node.value["status"][list].as_object().into_iter().flatten() {
            let path = format!("status.{list}.{name}");
            check_amount(name, &At::new(amount, &path), errors);
        }
    }
}

fn addresses(node: &At<'_, '_>, errors: &mut Errors) {
    let status = node.at("status");
    let mut seen = HashSet::new();
    for address in status.each("addresses") {
        if !seen.insert(address.value.to_string()) {
            errors.push(address.duplicate_as("NodeAddress"));
        }
    }
}

fn warnings(node: &At<'_, '_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = node.at("spec");
    if spec.at("configSource").is_set() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.at("externalID").text().is_empty() {
        warnings.push(
            "spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned(),
        );
    }
    for range in spec.each("podCIDRs") {
        warnings.extend(address::cidr_warnings(&range.path(), range.text()));
    }
    warnings
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("Status", status),
        Column::text("Roles", roles),
        age(),
        Column::field("Version", "status.nodeInfo.kubeletVersion", ""),
        Column::text("Internal-IP", |node, _| address(node, "InternalIP")).wide(),
        Column::text("External-IP", |node, _| address(node, "ExternalIP")).wide(),
        Column::field("OS-Image", "status.nodeInfo.osImage", "<unknown>").wide(),
        Column::text("Kernel-Version", kernel).wide(),
        Column::field("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>")
            .wide(),
    ]
}

fn status(node: &Value, _: Timestamp) -> Value {
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
