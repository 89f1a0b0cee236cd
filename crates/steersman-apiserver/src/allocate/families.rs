//! The families of a service's addresses, on a cluster that has IPv4 alone.

use serde_json::{Value, json};
use steersman_rules::field::FieldError;

use super::invalid;
use crate::document::items;
use crate::status::Result;

const POLICY: &str = "ipFamilyPolicy";
const FAMILIES: &str = "ipFamilies";

/// Fills in policy and families, and refuses what this cluster cannot give.
pub(super) fn fill(old: Option<&Value>, new: &mut Value) -> Result<()> {
    if new["spec"]["type"] == "ExternalName" {
        return Ok(());
    }
    let unselected = is_headless(&new["spec"]) && is_empty(&new["spec"]["selector"]);
    if new["spec"][POLICY].is_null() {
        let before = old.map(|old| &old["spec"][POLICY]).filter(|policy| !policy.is_null());
        let policy = match before {
            Some(before) => before.clone(),
            None if unselected => "RequireDualStack".into(),
            None => "SingleStack".into(),
        };
        new["spec"][POLICY] = policy;
    }
    if let Some(error) = mistake(&new["spec"], unselected) {
        return Err(invalid(new, error));
    }
    if is_empty(&new["spec"][FAMILIES]) {
        new["spec"][FAMILIES] = json!(["IPv4"]);
    }
    // Whoever finds the endpoints of such a service by itself may find both families.
    if unselected && new["spec"][POLICY] != "SingleStack" && items(&new["spec"][FAMILIES]).len() < 2
    {
        let other = if new["spec"][FAMILIES][0] == "IPv4" { "IPv6" } else { "IPv4" };
        let first = new["spec"][FAMILIES][0].clone();
        new["spec"][FAMILIES] = json!([first, other]);
    }
    Ok(())
}

fn mistake(spec: &Value, unselected: bool) -> Option<FieldError> {
    let field = |name: &str| format!("spec.{name}");
    let policy = &spec[POLICY];
    let several = |what: &str| {
        format!(
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
        )
    };
    if policy == "SingleStack" && items(&spec["clusterIPs"]).len() > 1 {
        return Some(FieldError::invalid(field(POLICY), policy, &several("cluster IPs")));
    }
    if policy == "SingleStack" && items(&spec[FAMILIES]).len() > 1 {
        return Some(FieldError::invalid(field(POLICY), policy, &several("IP families")));
    }
    if unselected {
        return None;
    }
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        return Some(FieldError::invalid(field(POLICY), policy, why));
    }
    let families = items(&spec[FAMILIES]);
    let foreign = families.iter().position(|family| family != "IPv4")?;
    let why = "not configured on this cluster";
    Some(FieldError::invalid(format!("spec.{FAMILIES}[{foreign}]"), &families[foreign], why))
}

fn is_headless(spec: &Value) -> bool {
    spec["clusterIP"] == "None" || spec["clusterIPs"][0] == "None"
}

fn is_empty(value: &Value) -> bool {
    value.as_object().map_or_else(|| items(value).is_empty(), serde_json::Map::is_empty)
}
