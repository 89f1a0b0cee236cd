//! The families of a service's addresses, as far as the cluster has them.

use serde_json::{Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::metadata;
use steersman_rules::resource::Named;
use steersman_values::IpFamily;

use super::holdings;
use crate::document::items;
use crate::state::service_ranges::ServiceRanges;
use crate::status::{Result, Status};

const POLICY: &str = "ipFamilyPolicy";
const FAMILIES: &str = "ipFamilies";
const SINGLE: &str = "SingleStack";
const REQUIRED: &str = "RequireDualStack";
const PREFERRED: &str = "PreferDualStack";

/// Fills in policy and families, and refuses what this cluster cannot give.
pub(super) fn fill(ranges: &ServiceRanges, old: Option<&Value>, new: &mut Value) -> Result<()> {
    if new["spec"]["type"] == "ExternalName" || old.is_some_and(|old| stays_preferred(old, new)) {
        return Ok(());
    }
    let mistakes = complete(ranges, old.map(|old| &old["spec"]), &mut new["spec"]);
    if mistakes.is_empty() {
        return Ok(());
    }
    let name = metadata::text(new, "name");
    Err(Status::invalid(Named { group: "", resource: "Service", name }, &mistakes))
}

/// Whether a service that takes what it gets asks for nothing else than before: then it keeps what it
/// has, whatever the cluster has come to offer.
fn stays_preferred(old: &Value, new: &Value) -> bool {
    let (old, new) = (&old["spec"], &new["spec"]);
    let same = |key: &str| old[key] == new[key];
    new[POLICY] == PREFERRED
        && same(POLICY)
        && same("type")
        && holdings::addresses(old) == holdings::addresses(new)
        && is_headless(old) == is_headless(new)
        && same(FAMILIES)
        && !is_empty(&new[FAMILIES])
}

fn complete(ranges: &ServiceRanges, old: Option<&Value>, spec: &mut Value) -> Vec<FieldError> {
    let unselected = is_headless(spec) && is_empty(&spec["selector"]);
    if spec[POLICY].is_null() {
        let before = old.map(|old| &old[POLICY]).filter(|policy| !policy.is_null());
        spec[POLICY] = match before {
            Some(before) => before.clone(),
            None if unselected => REQUIRED.into(),
            None => SINGLE.into(),
        };
    }
    let mut mistakes = Vec::new();
    if let Some(old) = old {
        reduce(old, spec);
    }
    single(spec, &mut mistakes);
    infer(ranges, spec, &mut mistakes);
    if mistakes.is_empty() && !unselected {
        offered(ranges, spec, &mut mistakes);
    }
    if !mistakes.is_empty() {
        return mistakes;
    }
    let default = ranges.primary().family();
    if is_empty(&spec[FAMILIES]) {
        spec[FAMILIES] = json!([default.name()]);
    }
    // Whoever finds the endpoints of an unselected service by itself may find both families.
    let takes_two = spec[POLICY] != SINGLE && (unselected || ranges.are_dual_stack());
    if takes_two && items(&spec[FAMILIES]).len() == 1 {
        let first =
            if spec[FAMILIES][0] == IpFamily::V4.name() { IpFamily::V4 } else { IpFamily::V6 };
        spec[FAMILIES] = json!([first.name(), first.other().name()]);
    }
    mistakes
}

/// Lets go of the second family of a service that wants one only. That nothing goes otherwise, the
/// rules of services have seen to.
fn reduce(old: &Value, spec: &mut Value) {
    for list in ["clusterIPs", FAMILIES] {
        let has_two = items(&spec[list]).len() > 1;
        if spec[POLICY] == SINGLE && has_two && old[list] == spec[list] {
            spec[list] = json!([spec[list][0]]);
        }
    }
}

/// One family means one of everything.
fn single(spec: &Value, mistakes: &mut Vec<FieldError>) {
    for (list, what) in [("clusterIPs", "cluster IPs"), (FAMILIES, "IP families")] {
        if spec[POLICY] == SINGLE && items(&spec[list]).len() > 1 {
            let why = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            mistakes.push(FieldError::invalid(format!("spec.{POLICY}"), &spec[POLICY], &why));
        }
    }
}

/// The families of addresses that a client has chosen, where it does not name them.
fn infer(ranges: &ServiceRanges, spec: &mut Value, mistakes: &mut Vec<FieldError>) {
    let given: Vec<Option<IpFamily>> = items(&spec["clusterIPs"])
        .iter()
        .map(|ip| ip.as_str().and_then(|ip| ip.parse().ok()).map(IpFamily::of))
        .collect();
    let named = items(&spec[FAMILIES]).len();
    for (i, family) in given.into_iter().enumerate().skip(named) {
        let Some(family) = family else { break };
        if ranges.of(family).is_some() {
            let mut families = items(&spec[FAMILIES]).to_vec();
            families.push(family.name().into());
            spec[FAMILIES] = families.into();
        } else {
            let why = format!("{} is not configured on this cluster", family.name());
            let field = format!("spec.clusterIPs[{i}]");
            mistakes.push(FieldError::invalid(field, &spec["clusterIPs"], &why));
        }
    }
}

/// Refuses what the cluster does not have.
fn offered(ranges: &ServiceRanges, spec: &Value, mistakes: &mut Vec<FieldError>) {
    if spec[POLICY] == REQUIRED && !ranges.are_dual_stack() {
        let why = "this cluster is not configured for dual-stack services";
        mistakes.push(FieldError::invalid(format!("spec.{POLICY}"), &spec[POLICY], why));
    }
    for (i, family) in items(&spec[FAMILIES]).iter().enumerate() {
        let known = IpFamily::ALL.into_iter().find(|known| family == known.name());
        if known.is_none_or(|known| ranges.of(known).is_none()) {
            let why = "not configured on this cluster";
            mistakes.push(FieldError::invalid(format!("spec.{FAMILIES}[{i}]"), family, why));
        }
    }
}

fn is_headless(spec: &Value) -> bool {
    spec["clusterIP"] == "None" || spec["clusterIPs"][0] == "None"
}

fn is_empty(value: &Value) -> bool {
    value.as_object().map_or_else(|| items(value).is_empty(), serde_json::Map::is_empty)
}
