//! The addresses of a service and their families: what fits together, and what may change when a
//! service gains or loses its second family.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::FieldError;
use crate::rules::address;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, text};

const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];
const ONCE: &str = "may not change once set";

/// The mistakes in addresses, families and their policy; `old` is the spec before, or null.
pub(super) fn addresses(spec: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    if spec.value["type"] == "ExternalName" {
        return;
    }
    let ip = spec.at("clusterIP");
    let ips = spec.at("clusterIPs");
    match (ip.is_empty(), ips.is_empty()) {
        (false, true) => errors.push(ips.required("")),
        (false, false) if ips.value[0] != *ip.value => {
            errors.push(ips.invalid("first value must match `clusterIP`"));
        }
        (true, false) => {
            errors.push(ips.invalid("must be empty when `clusterIP` is not specified"));
        }
        _ => {}
    }
    let mut seen = HashSet::new();
    for family in spec.each("ipFamilies") {
        if !FAMILIES.contains(&family.text()) {
            errors.push(family.not_supported(FAMILIES));
        }
        if !seen.insert(family.text()) {
            errors.push(family.duplicate());
        }
    }
    spec.at("ipFamilyPolicy").one_of(POLICIES, errors);
    if each_address(spec, old, errors) {
        agreement(spec, errors);
    }
}

/// Checks addresses one by one; whether all of them can be read.
fn each_address(spec: &At<'_, '_>, old: &Value, errors: &mut Errors) -> bool {
    let ips = spec.at("clusterIPs");
    let mut sound = true;
    for (i, ip) in spec.each("clusterIPs").enumerate() {
        if i == 0 && ip.text() == "None" {
            if ips.len() > 1 {
                sound = false;
                errors.push(ips.invalid("'None' must be the first and only value"));
            }
            continue;
        }
        let known = items(&old["clusterIPs"]).contains(ip.value);
        sound &= known || address::legacy_ip(&ip, &Value::Null, errors).is_some();
    }
    if ips.len() > 2 {
        errors.push(ips.invalid("may only hold up to 2 values"));
    }
    sound
}

/// One address a family, in the order of the families.
fn agreement(spec: &At<'_, '_>, errors: &mut Errors) {
    let ips = spec.at("clusterIPs");
    let is_v6 = |value: &Value| address::is_ipv6(text(value));
    let all = items(ips.value);
    if all.len() > 1 && (!all.iter().any(is_v6) || all.iter().all(is_v6)) {
        errors.push(ips.invalid("may specify no more than one IP for each IP family"));
    }
    if all.len() == 1 && all[0] == "None" {
        return;
    }
    let families = items(&spec.value["ipFamilies"]);
    for (i, (ip, family)) in spec.each("clusterIPs").zip(families).enumerate() {
        let wrong = match text(family) {
            "IPv4" => is_v6(ip.value),
            "IPv6" => !is_v6(ip.value),
            _ => false,
        };
        if wrong {
            let family = text(family);
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
            errors.push(ip.invalid(&detail));
        }
    }
}

/// A second address or family goes only if the policy says so; `old` is the spec before, or null.
pub(super) fn released(old: &Value, new: &Value, errors: &mut Errors) {
    let policy = &new["ipFamilyPolicy"];
    let policy = if policy.is_null() { &old["ipFamilyPolicy"] } else { policy };
    if new["type"] == "ExternalName" || policy == "SingleStack" {
        return;
    }
    for (list, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let [before, after] = [old, new].map(|spec| items(&spec[list]).len());
        if after != 0 && after < before {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy, &detail));
        }
    }
}

/// The first address and family stay, unless a name outside takes over; a second one may come,
/// and may go if the policy says so.
pub(super) fn changes(old: &Value, new: &Value, errors: &mut Errors) {
    if old["type"] == "ExternalName" || new["type"] == "ExternalName" {
        return;
    }
    let headless =
        |spec: &Value| items(&spec["clusterIPs"]).len() == 1 && spec["clusterIPs"][0] == "None";
    if !(headless(old) && headless(new)) {
        changed_addresses(old, new, errors);
    }
    if !headless(old) && !headless(new) {
        changed_families(old, new, errors);
    }
}

fn changed_addresses(old: &Value, new: &Value, errors: &mut Errors) {
    let shown = &new["clusterIPs"];
    let (before, after) = (items(&old["clusterIPs"]), items(shown));
    let at = |index: usize, detail: &str| {
        FieldError::invalid(format!("spec.clusterIPs[{index}]"), shown, detail)
    };
    if before.len() == after.len() {
        let changed = (0..before.len()).filter(|i| before[*i] != after[*i]);
        errors.extend(changed.map(|i| at(i, ONCE)));
    } else if after.is_empty() {
        errors.push(at(0, "primary clusterIP can not be unset"));
    } else if before.first().is_some_and(|first| *first != after[0]) {
        errors.push(at(0, ONCE));
    }
}

/// Kubernetes names the first family whichever has changed, and shows the addresses where there are
/// more or fewer families than before.
fn changed_families(old: &Value, new: &Value, errors: &mut Errors) {
    let (before, after) = (items(&old["ipFamilies"]), items(&new["ipFamilies"]));
    let at = |shown: &str| FieldError::invalid("spec.ipFamilies[0]", &new[shown], ONCE);
    if before.len() == after.len() {
        let changed = before.iter().zip(after).filter(|(before, after)| before != after);
        errors.extend(changed.map(|_| at("ipFamilies")));
    } else if let (Some(before), Some(after)) = (before.first(), after.first())
        && before != after
    {
        errors.push(at("clusterIPs"));
    }
}
