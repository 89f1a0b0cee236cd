//! What a Pod uses: itself for as long as it is stored, and while it is at work what its
//! containers ask for and may use.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::amounts::Amounts;
use super::measure::Measure;
use super::pod_resources;
use super::scopes::Traits;
use crate::metadata;
use crate::quantity::Quantity;
use crate::rules::document::{is_empty, items, text};
use crate::rules::resource_name::{HUGE_PAGES, is_extended, is_native};

const COUNT: &str = "count/pods";

/// What is counted by what is asked for, and by what may be used.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// What a quota wants every container to say if it counts it.
const SAID: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// What stands before the name of a device class where it is asked for like a resource.
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// Whether Pods count under this name.
pub(super) fn counts(name: &str) -> bool {
    let bare = name.strip_prefix("requests.");
    let compute = bare.or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    let extended = bare.is_some_and(|bare| !is_native(name) || bare.starts_with(DEVICE_CLASS));
    [COUNT, "pods"].contains(&name)
        || COMPUTE.contains(&compute)
        || bare.unwrap_or(name).starts_with(HUGE_PAGES)
        || extended
}

pub(super) fn measure(pod: &Value) -> Measure {
    let mut stored = Amounts::default();
    stored.set(COUNT, Quantity::ONE);
    let mut measure = Measure { traits: traits(pod), ..Measure::stored(stored) };
    if !["Failed", "Succeeded"].contains(&text(&pod["status"]["phase"])) {
        let requests = pod_resources::requests(pod);
        measure.at_work = compute(&requests, &pod_resources::limits(pod));
        measure.ends = ends(pod);
    }
    measure
}

/// When a Pod that is being deleted counts as gone, whoever may be unable to say so: its node may
/// be lost.
fn ends(pod: &Value) -> Option<Timestamp> {
    let deleted: Timestamp = metadata::text(pod, "deletionTimestamp").parse().ok()?;
    let grace = metadata::number(pod, "deletionGracePeriodSeconds")?;
    Some(deleted.checked_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX))
}

/// The names under which requests and limits count.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::default();
    used.set("pods", Quantity::ONE);
    for name in COMPUTE {
        if let Some(request) = requests.get(name) {
            used.set(name, request);
            used.set(format!("requests.{name}"), request);
        }
        if let Some(limit) = limits.get(name) {
            used.set(format!("limits.{name}"), limit);
        }
    }
    for (name, request) in requests.iter() {
        if name.starts_with(HUGE_PAGES) {
            used.set(name, request);
            used.set(format!("requests.{name}"), request);
        }
        if is_extended(name) || name.starts_with(DEVICE_CLASS) {
            used.set(format!("requests.{name}"), request);
        }
    }
    used
}

/// What containers leave unsaid of the names that a quota counts. Nobody asks where the Pod says
/// it for all of them.
pub(super) fn missing(names: &[&str], pod: &Value) -> Option<String> {
    let spec = &pod["spec"];
    if pod_resources::says_for_all(spec) {
        return None;
    }
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for container in items(&spec["containers"]).iter().chain(items(&spec["initContainers"])) {
        let resources = &container["resources"];
        let said =
            compute(&Amounts::of(&resources["requests"]), &Amounts::of(&resources["limits"]));
        for name in names.iter().filter(|name| SAID.contains(*name) && said.get(name).is_none()) {
            missing.entry(name).or_default().push(text(&container["name"]));
        }
    }
    let parts = missing.into_iter().map(|(name, mut containers)| {
        containers.sort_unstable();
        containers.dedup();
        format!("{name} for: {}", containers.join(","))
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| format!("must specify {}", parts.join("; ")))
}

/// Whether a Pod's time is limited.
pub(super) fn is_terminating(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

fn traits(pod: &Value) -> Traits {
    Traits::Pod {
        is_terminating: is_terminating(pod),
        is_best_effort: is_best_effort(pod),
        priority_class: text(&pod["spec"]["priorityClassName"]).to_owned(),
        looks_across_namespaces: looks_across_namespaces(&pod["spec"]["affinity"]),
    }
}

fn is_best_effort(pod: &Value) -> bool {
    let class = text(&pod["status"]["qosClass"]);
    if !class.is_empty() {
        return class == "BestEffort";
    }
    let spec = &pod["spec"];
    let asks = |resources: &Value| {
        ["requests", "limits"].iter().any(|list| {
            let amounts = Amounts::of(&resources[list]);
            ["cpu", "memory"]
                .iter()
                .any(|name| amounts.get(name).is_some_and(Quantity::is_positive))
        })
    };
    if spec["resources"].is_object() {
        return !asks(&spec["resources"]);
    }
    let mut containers = items(&spec["containers"]).iter().chain(items(&spec["initContainers"]));
    !containers.any(|container| asks(&container["resources"]))
}

fn looks_across_namespaces(affinity: &Value) -> bool {
    let across =
        |term: &Value| !is_empty(&term["namespaces"]) || term["namespaceSelector"].is_object();
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = &affinity[kind];
        let required = items(&terms["requiredDuringSchedulingIgnoredDuringExecution"]).iter();
        let preferred = items(&terms["preferredDuringSchedulingIgnoredDuringExecution"]).iter();
        required.chain(preferred.map(|weighted| &weighted["podAffinityTerm"])).any(across)
    })
}
