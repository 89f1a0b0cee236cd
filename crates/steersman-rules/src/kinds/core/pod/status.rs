//! The status of a pod, which its node writes.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{container_status, disabled};
use crate::field::FieldError;
use crate::names;
use crate::rules::address;
use crate::rules::at::{At, Errors};
use crate::rules::document::{by_name, fill_text, items, set, text, within};

/// Puts back what a writer of the status did not know of: what the server itself has found.
pub(super) fn prepare(old: &Value, new: &mut Value) {
    let before = &old["status"];
    within(new, "status", |status| {
        let class = text(&before["qosClass"]);
        if !class.is_empty() {
            fill_text(status, "qosClass", class);
        }
        keep_generation(before, status);
        keep_generations_of_conditions(before, status);
        addresses(status, "podIP", "podIPs");
        disabled::drop_of_status(status, before);
    });
}

/// Several conditions may be of one type: the first follows the first, the second the second.
fn keep_generations_of_conditions(old: &Value, new: &mut Value) {
    let mut known: HashMap<&str, Vec<&Value>> = HashMap::new();
    for condition in items(&old["conditions"]).iter().rev() {
        known.entry(text(&condition["type"])).or_default().push(condition);
    }
    let conditions = new.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let before = known.get_mut(text(&condition["type"])).and_then(Vec::pop);
        if let Some(before) = before {
            keep_generation(before, condition);
        }
    }
}

fn keep_generation(old: &Value, new: &mut Value) {
    const KEY: &str = "observedGeneration";
    if new[KEY].as_i64().unwrap_or(0) == 0 && old[KEY].as_i64().unwrap_or(0) != 0 {
        set(new, KEY, old[KEY].clone());
    }
}

/// The first of the addresses is also told alone, for those who know no more than one.
fn addresses(status: &mut Value, one: &str, all: &str) {
    let first = text(&status[all][0]["ip"]).to_owned();
    let own = text(&status[one]).to_owned();
    if !own.is_empty() && own != first {
        set(status, all, json!([{"ip": own}]));
    } else if own.is_empty() && !first.is_empty() {
        set(status, one, first);
    }
}

/// The mistakes in a new status.
pub(super) fn validate(old: &Value, new: &Value, errors: &mut Errors) {
    let spec = &old["spec"];
    let before = &old["status"];
    let at = At::new(&new["status"], "status");
    conditions(&at.at("conditions"), errors);
    let nominated = at.at("nominatedNodeName");
    if nominated.value != &before["nominatedNodeName"] && !nominated.text().is_empty() {
        nominated.follows(names::dns1123_subdomain, errors);
        if !text(&spec["nodeName"]).is_empty() {
            let why = "may not be set on pods that are already bound to a node";
            errors.push(nominated.forbidden(why));
        }
    }
    generation(&at, errors);
    at.at("qosClass").unchanged(&before["qosClass"], errors);
    for (list, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        transitions(&at.at(list), &before[list], spec, containers, errors);
    }
    claims(&at.at("resourceClaimStatuses"), spec, errors);
    let extended = at.at("extendedResourceClaimStatus");
    if extended.is_set() {
        extended_claim(&extended, spec, errors);
    }
    ips(&at, before, errors);
    container_status::validate(&at, spec, errors);
}

fn generation(at: &At<'_, '_>, errors: &mut Errors) {
    let generation = at.at("observedGeneration");
    if generation.number().is_some_and(|number| number < 0) {
        errors.push(generation.invalid("must be a non-negative integer"));
    }
}

fn conditions(list: &At<'_, '_>, errors: &mut Errors) {
    for condition in list.items() {
        generation(&condition, errors);
        let kind = condition.at("type");
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind.text()) {
            condition.named("Type").with(kind.value).follows(names::qualified_name, errors);
        }
    }
}

/// A container that has ended stays so, unless it may start again.
fn transitions(new: &At<'_, '_>, old: &Value, spec: &Value, containers: &str, errors: &mut Errors) {
    let containers_by_name = by_name(items(&spec[containers]));
    let new_by_name = by_name(new.list());
    for (i, status) in items(old).iter().enumerate() {
        let Some(code) = exit_code(status) else { continue };
        let container = containers_by_name.get(text(&status["name"])).copied();
        if !containers.is_empty() && restarts(spec, container, code) {
            continue;
        }
        let now = new_by_name.get(text(&status["name"]));
        if now.is_some_and(|now| now["state"]["terminated"].is_null()) {
            let field = format!("{}[{i}].state", new.path());
            let why = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(field, why));
        }
    }
}

fn exit_code(status: &Value) -> Option<i64> {
    let terminated = &status["state"]["terminated"];
    terminated.is_object().then(|| terminated["exitCode"].as_i64().unwrap_or(0))
}

/// Whether a container starts again after an exit code: by its rules, its policy, its pod's.
fn restarts(spec: &Value, container: Option<&Value>, code: i64) -> bool {
    let all = ["containers", "initContainers"];
    let rules = |container: &Value| items(&container["restartPolicyRules"]).to_vec();
    let any_restarts_all = all.iter().flat_map(|list| items(&spec[*list])).any(|container| {
        rules(container).iter().any(|rule| rule["action"] == "RestartAllContainers")
    });
    if any_restarts_all {
        return true;
    }
    // Of a container that nobody knows, nothing says that it may.
    let Some(container) = container else { return false };
    for rule in rules(container) {
        let listed = items(&rule["exitCodes"]["values"]).contains(&code.into());
        if listed == (rule["exitCodes"]["operator"] == "In") {
            return true;
        }
    }
    let own = text(&container["restartPolicy"]);
    let policy = if own.is_empty() { text(&spec["restartPolicy"]) } else { own };
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn claims(list: &At<'_, '_>, spec: &Value, errors: &mut Errors) {
    let known = by_name(items(&spec["resourceClaims"]));
    let mut seen = HashSet::new();
    for status in list.items() {
        let name = status.at("name");
        if !known.contains_key(name.text()) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(name.invalid(why));
        }
        if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
        let claim = status.at("resourceClaimName");
        if claim.is_set() {
            claim.follows(names::dns1123_subdomain, errors);
        }
    }
}

/// By which claim containers get extended resources, and by which of its requests.
fn extended_claim(status: &At<'_, '_>, spec: &Value, errors: &mut Errors) {
    let containers = items(&spec["initContainers"]).iter().chain(items(&spec["containers"]));
    let containers: HashMap<&str, &Value> =
        containers.map(|container| (text(&container["name"]), container)).collect();
    let mappings = status.at("requestMappings");
    mappings.require_because("at least one request mapping is required", errors);
    let mut seen = HashSet::new();
    for mapping in mappings.items() {
        let of = ["containerName", "resourceName", "requestName"].map(|key| mapping.at(key));
        let [container, resource, request] = &of;
        match containers.get(container.text()) {
            Some(known) if known["resources"]["requests"][resource.text()].is_null() => {
                let why = "must match the extended resource name of an entry in \
                           spec.initContainers.resources.requests or \
                           spec.containers.resources.requests";
                errors.push(resource.invalid(why));
            }
            Some(_) => {}
            None => {
                let why = "must match the name of an entry in spec.initContainers.name or \
                           spec.containers.name";
                errors.push(container.invalid(why));
            }
        }
        // Kubernetes does not say in which of the mappings it stands.
        status.at("requestName").with(request.value).follows(names::dns1123_label, errors);
        if !seen.insert(of.each_ref().map(At::text)) {
            errors.extend(of.iter().map(At::duplicate));
        }
    }
    status.at("resourceClaimName").requires(names::dns1123_subdomain, errors);
}

fn ips(status: &At<'_, '_>, before: &Value, errors: &mut Errors) {
    families(&status.at("podIPs"), &before["podIPs"], errors);
    let hosts = status.at("hostIPs");
    let own = status.at("hostIP").text();
    if let Some(first) = hosts.items().next().filter(|first| first.at("ip").text() != own) {
        errors.push(first.at("ip").invalid("must be equal to `hostIP`"));
    }
    families(&hosts, &before["hostIPs"], errors);
}

/// At most one address of each family, all of them sound but those that were there before.
fn families(list: &At<'_, '_>, before: &Value, errors: &mut Errors) {
    let known: HashSet<&str> = items(before).iter().map(|item| text(&item["ip"])).collect();
    for item in list.items().filter(|item| !known.contains(text(&item.value["ip"]))) {
        address::strict_ip(&item.with(&item.value["ip"]), errors);
    }
    if list.len() < 2 {
        return;
    }
    let is_six =
        |item: &Value| address::parse_ip(text(&item["ip"])).map(|ip| ip.to_canonical().is_ipv6());
    let six: Vec<Option<bool>> = list.list().iter().map(is_six).collect();
    if let Some(i) = six.iter().position(Option::is_none) {
        let ip = text(&list.value[i]["ip"]);
        let why = format!("failed to check for dual stack with error:invalid IP[{i}]: {ip}");
        errors.push(list.internal_error(&why));
    }
    if !matches!(six[..], [Some(one), Some(other)] if one != other) {
        let why = "may specify no more than one IP for each IP family";
        errors.push(list.invalid_as("[]PodIP", why));
    }
}
