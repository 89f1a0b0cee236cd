//! What containers and pods ask for and may have at most.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::context::Pod;
use crate::field::FieldError;
use crate::names;
use crate::quantity::Quantity;
use crate::rules::at::{At, Errors};
use crate::rules::document::{is_empty, items, set};
use crate::rules::resource_name::{self, HUGE_PAGES, is_native};

type NameRule = fn(&str, &At<'_, '_>, &mut Errors);

/// The mistakes in the resources of a container.
pub(super) fn of_container(at: &At<'_, '_>, claims: &[&str], errors: &mut Errors) {
    if at.is_set() {
        requirements(at, container_resource, errors);
        claim_names(&at.at("claims"), claims, errors);
    }
}

/// The mistakes in what running the pod costs besides its containers. They are told as if the
/// amounts were the limits of a container.
pub(in crate::kinds) fn overhead(at: &At<'_, '_>, errors: &mut Errors) {
    let limits = at.named("limits");
    for (name, amount) in limits.entries() {
        container_resource(name, &amount, errors);
        value(name, &amount, errors);
    }
    let has = |wanted: fn(&str) -> bool| limits.entries().any(|(name, _)| wanted(name));
    if has(|name| name.starts_with(HUGE_PAGES)) && !has(|name| ["cpu", "memory"].contains(&name)) {
        errors.push(at.forbidden("HugePages require cpu or memory"));
    }
}

/// The mistakes in the resources of the pod as a whole.
pub(super) fn of_pod(spec: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    let at = spec.at("resources");
    if at.is_absent() {
        return;
    }
    if pod.os == "windows" {
        errors.push(at.forbidden("may not be set for a windows pod"));
        return;
    }
    if at.at("claims").is_set() {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(at.at("claims").forbidden(why));
    }
    requirements(&at, pod_resource, errors);
    for (name, amount) in at.at("requests").entries() {
        let asked = Quantity::of(amount.value);
        if let (Some(asked), Some(sum)) = (asked, of_containers(spec.value, "requests", name))
            && sum > asked
        {
            let why =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.push(amount.invalid(&why));
        }
    }
    huge_page_limits(spec, &at.at("limits"), errors);
    for container in spec.each("containers") {
        for (name, limit) in container.at("resources.limits").entries() {
            let most = Quantity::of(&at.value["limits"][name]);
            if let (Some(limit), Some(most)) = (Quantity::of(limit.value), most)
                && limit > most
            {
                let why = format!("must be less than or equal to pod limits of {most}");
                let path = container.path().replacen("containers", "resources.containers", 1);
                let field = format!("{path}[{name}].limits");
                errors.push(FieldError::invalid(field, &limit.to_string().into(), &why));
            }
        }
    }
}

/// Fills in the resources of the pod as a whole, where it has any, once its containers have theirs.
pub(super) fn default_of_pod(spec: &mut Value) {
    if !spec["resources"].is_null() {
        default_limits(spec);
        default_requests(spec);
    }
}

/// The huge pages that the containers of a pod may have, unless it asks for some itself.
fn default_limits(spec: &mut Value) {
    let whole = &spec["resources"];
    if is_empty(&whole["limits"]) && is_empty(&whole["requests"]) {
        return;
    }
    let containers = ["containers", "initContainers"].iter().flat_map(|list| items(&spec[*list]));
    let limits = containers.filter_map(|container| container["resources"]["limits"].as_object());
    let names: BTreeSet<&String> = limits.flat_map(Map::keys).collect();
    let mut limits = whole["limits"].as_object().cloned().unwrap_or_default();
    for name in names.into_iter().filter(|name| name.starts_with(HUGE_PAGES)) {
        let known = limits.contains_key(name) || !whole["requests"][name].is_null();
        if !known && let Some(sum) = of_containers(spec, "limits", name) {
            limits.insert(name.clone(), sum.to_string().into());
        }
    }
    if !limits.is_empty() {
        set(&mut spec["resources"], "limits", limits);
    }
}

/// What a pod with limits asks for without saying so: what its containers ask for, or its limits.
fn default_requests(spec: &mut Value) {
    let limits = spec["resources"]["limits"].as_object().cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let mut requests = spec["resources"]["requests"].as_object().cloned().unwrap_or_default();
    for name in ["cpu", "memory"] {
        if !requests.contains_key(name)
            && let Some(sum) = of_containers(spec, "requests", name)
        {
            requests.insert(name.to_owned(), sum.to_string().into());
        }
    }
    for (name, limit) in limits.into_iter().filter(|(name, _)| is_of_pods(name)) {
        requests.entry(name).or_insert(limit);
    }
    if !requests.is_empty() {
        set(&mut spec["resources"], "requests", requests);
    }
}

/// Whether a pod as a whole can have a resource.
fn is_of_pods(name: &str) -> bool {
    ["cpu", "memory"].contains(&name) || name.starts_with(HUGE_PAGES)
}

/// Huge pages cannot be promised twice, so those of the containers must fit into the pod's.
fn huge_page_limits(spec: &At<'_, '_>, limits: &At<'_, '_>, errors: &mut Errors) {
    for (name, most) in limits.entries().filter(|(name, _)| name.starts_with(HUGE_PAGES)) {
        let sum = of_containers(spec.value, "limits", name);
        if let (Some(sum), Some(amount)) = (sum, Quantity::of(most.value))
            && sum > amount
        {
            let why =
                format!("must be greater than or equal to aggregate container limits of {sum}");
            errors.push(most.invalid(&why));
        }
    }
}

/// What the containers of a pod have together of a resource, by their `requests` or `limits`;
/// `None` where none of them names it. Those that start one by one have it besides the sidecars
/// that started before them.
fn of_containers(spec: &Value, part: &str, name: &str) -> Option<Quantity> {
    let amount = |container: &Value| Quantity::of(&container["resources"][part][name]);
    let plus = |a: Option<Quantity>, b: Option<Quantity>| match (a, b) {
        (Some(a), Some(b)) => a.checked_add(b),
        (a, b) => a.or(b),
    };
    let mut running = items(&spec["containers"]).iter().map(amount).fold(None, plus);
    let mut sidecars = None;
    let mut starting = None;
    for container in items(&spec["initContainers"]) {
        if container["restartPolicy"] == "Always" {
            running = plus(running, amount(container));
            sidecars = plus(sidecars, amount(container));
            starting = starting.max(sidecars);
        } else {
            starting = starting.max(plus(amount(container), sidecars));
        }
    }
    running.max(starting)
}

fn requirements(at: &At<'_, '_>, rule: NameRule, errors: &mut Errors) {
    let limits = at.at("limits");
    let requests = at.at("requests");
    let mut huge = false;
    let mut compute = false;
    let mut note = |name: &str| {
        huge |= name.starts_with(HUGE_PAGES);
        compute |= ["cpu", "memory"].contains(&name);
    };
    for (name, amount) in limits.entries() {
        rule(name, &amount, errors);
        value(name, &amount, errors);
        note(name);
    }
    for (name, amount) in requests.entries() {
        rule(name, &amount, errors);
        value(name, &amount, errors);
        note(name);
        let Some(asked) = Quantity::of(amount.value) else { continue };
        let overcommits = is_native(name) && !name.starts_with(HUGE_PAGES);
        match Quantity::of(&limits.value[name]) {
            Some(limit) if asked != limit && !overcommits => {
                let why = format!("must be equal to {name} limit of {limit}");
                errors.push(requests.invalid_value(asked.to_string(), &why));
            }
            Some(limit) if asked > limit => {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(requests.invalid_value(asked.to_string(), &why));
            }
            None if !overcommits => {
                let why = "Limit must be set for non overcommitable resources";
                errors.push(limits.required(why));
            }
            _ => {}
        }
    }
    if huge && !compute {
        errors.push(at.forbidden("HugePages require cpu or memory"));
    }
}

/// The mistakes in an amount of a resource.
fn value(name: &str, at: &At<'_, '_>, errors: &mut Errors) {
    resource_name::check_amount(name, at, errors);
    let Some(amount) = Quantity::of(at.value) else { return };
    if let Some(size) = name.strip_prefix(HUGE_PAGES) {
        let fits = Quantity::parse(size)
            .is_ok_and(|size| size.is_positive() && amount.is_multiple_of(size));
        if !fits {
            let why = format!("{amount} is not positive integer multiple of {name}");
            errors.push(at.invalid(&why));
        }
    }
}

/// Complains about a resource that a container cannot have.
pub(in crate::kinds) fn container_resource(name: &str, at: &At<'_, '_>, errors: &mut Errors) {
    resource_name::check(name, at, errors);
    resource_name::check_of_container(name, at, errors);
}

fn pod_resource(name: &str, at: &At<'_, '_>, errors: &mut Errors) {
    let before = errors.len();
    resource_name::check(name, at, errors);
    if errors.len() == before && !is_of_pods(name) {
        let supported = ["cpu", "hugepages-", "memory"];
        errors.push(FieldError::not_supported(at.path(), &name.into(), &supported));
    }
}

/// Complains about a claim that a container uses already, or a request of it; `used` has those
/// requests, an empty one for all.
fn repeated<'v>(claim: &At<'v, '_>, used: &mut HashSet<&'v str>, errors: &mut Errors) {
    let name = claim.at("name").text();
    let request = claim.at("request");
    if used.contains("") {
        errors.push(claim.duplicate_value(name));
        return;
    }
    request.may_follow(names::dns1123_label, errors);
    if request.is_empty() {
        errors.extend(used.iter().map(|_| claim.duplicate_value(name)));
    } else if used.contains(request.text()) {
        errors.push(claim.duplicate_value(format!("{name}/{}", request.text())));
    }
    used.insert(request.text());
}

/// The mistakes in which of the pod's claims a container uses.
fn claim_names(list: &At<'_, '_>, known: &[&str], errors: &mut Errors) {
    let mut used: HashMap<&str, HashSet<&str>> = HashMap::new();
    let all: HashSet<&str> = known.iter().copied().collect();
    for claim in list.items() {
        let name = claim.at("name").text();
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        repeated(&claim, used.entry(name).or_default(), errors);
        // The mistake tells all names that there are.
        if !all.contains(name) && !errors.is_full() {
            let mut sorted = known.to_vec();
            sorted.sort_unstable();
            let which = match sorted[..] {
                [] => " which is empty".to_owned(),
                _ => format!(": {}", sorted.join(", ")),
            };
            let mut error = claim.with(&claim.value["name"]).not_found();
            error.text += &format!(": must be one of the names in pod.spec.resourceClaims{which}");
            errors.push(error);
        }
    }
}
