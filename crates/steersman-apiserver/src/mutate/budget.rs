//! Disruption budgets: whether one more pod may be evicted, and what is written down if so.
//!
//! Pure decisions over documents; [`super::eviction`] reads and writes them.

use serde_json::{Value, json};
use steersman_rules::metadata;
use steersman_rules::resource::Named;
use steersman_rules::selector::LabelSelector;

use crate::status::{Cause, Details, Status};

/// How many evictions may wait for the controller to notice them.
const DISRUPTED_PODS_MAX: usize = 2000;

/// When to try again while the budget is still being computed.
const RETRY_SECONDS: u32 = 10;

const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// What a budget means for the eviction of a pod that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The eviction must be granted by the budget.
    Guarded,
    /// The pod is not ready and does not count; it may go as long as it stays so.
    Unhealthy,
}

/// Whether a pod may be evicted without asking any budget: it has ended, has not begun, or is
/// on its way out.
pub(super) fn is_beyond_budgets(pod: &Value) -> bool {
    has_ended(pod) || pod["status"]["phase"] == "Pending"
}

/// Whether a pod cannot become healthy any more.
pub(super) fn has_ended(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or("");
    matches!(phase, "Succeeded" | "Failed") || metadata::is_deleting(pod)
}

/// Whether a budget covers a pod of its namespace.
pub(super) fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = &budget["spec"]["selector"];
    let labels = &pod["metadata"]["labels"];
    selector.is_object() && LabelSelector::of_document(selector).matches(|key| labels[key].as_str())
}

/// What a budget means for a pod that it covers.
pub(super) fn claim(budget: &Value, pod: &Value) -> Claim {
    if is_ready(pod) {
        return Claim::Guarded;
    }
    let healthy = number(budget, "currentHealthy");
    let desired = number(budget, "desiredHealthy");
    let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
    if always || (healthy >= desired && desired > 0) { Claim::Unhealthy } else { Claim::Guarded }
}

/// The budget after one more eviction, or why there may be none.
pub(super) fn grant(budget: &Value, pod: &str, now: &str) -> Result<Value, Status> {
    let name = metadata::text(budget, "name");
    let generation = metadata::number(budget, "generation").unwrap_or(0);
    if number(budget, "observedGeneration") < generation {
        return Err(still_processed(name));
    }
    let allowed = number(budget, "disruptionsAllowed");
    let forbidden = |why: &str| {
        let what = Named { group: "policy", resource: "poddisruptionbudget", name };
        Err(Status::forbidden(what, why, Vec::new()))
    };
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    let waiting = budget["status"]["disruptedPods"].as_object().map_or(0, serde_json::Map::len);
    if waiting > DISRUPTED_PODS_MAX {
        return forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        );
    }
    if allowed == 0 {
        return Err(too_many_requests(0, exhausted(budget, name)));
    }
    let mut granted = budget.clone();
    granted["status"]["disruptionsAllowed"] = (allowed - 1).into();
    if !granted["status"]["disruptedPods"].is_object() {
        granted["status"]["disruptedPods"] = json!({});
    }
    granted["status"]["disruptedPods"][pod] = now.into();
    if allowed == 1 {
        say_exhausted(&mut granted, now);
    }
    Ok(granted)
}

/// The refusal while a budget is not up to date.
pub(super) fn still_processed(name: &str) -> Status {
    let message = format!("The disruption budget {name} is still being processed by the server.");
    too_many_requests(RETRY_SECONDS, message)
}

fn too_many_requests(retry_after_seconds: u32, cause: String) -> Status {
    let causes = vec![budget_cause(cause)];
    let details = Details { causes, retry_after_seconds, ..Details::default() };
    Status {
        code: 429,
        reason: "TooManyRequests".into(),
        message: VIOLATES.to_owned(),
        details: Some(Box::new(details)),
        continue_token: None,
    }
}

fn budget_cause(message: String) -> Cause {
    Cause { reason: "DisruptionBudget".to_owned(), message, field: String::new() }
}

/// Why a budget allows nothing, as well as its status tells.
fn exhausted(budget: &Value, name: &str) -> String {
    let conditions = budget["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let condition = conditions.iter().find(|c| c["type"] == "DisruptionAllowed");
    let text = |field: &str| {
        condition.filter(|c| c["status"] == "False").and_then(|c| c[field].as_str()).unwrap_or("")
    };
    let reason = text("reason");
    let message = text("message");
    let healthy = number(budget, "currentHealthy");
    let desired = number(budget, "desiredHealthy");
    let refusal = format!("The disruption budget {name} does not allow evicting pods currently");
    if !message.is_empty() && reason == "SyncFailed" {
        format!("{refusal} because it failed sync: {message}")
    } else if healthy <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    } else if message.is_empty() {
        refusal
    } else {
        format!("{refusal} ({reason}): {message}")
    }
}

/// Says of a budget that its last disruption was granted. If it said so already, it says since when.
fn say_exhausted(budget: &mut Value, now: &str) {
    let mut condition = json!({
        "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "observedGeneration": number(budget, "observedGeneration"), "lastTransitionTime": now,
    });
    if !budget["status"]["conditions"].is_array() {
        budget["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = budget["status"]["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|c| c["type"] == "DisruptionAllowed") {
        Some(known) => {
            if known["status"] == "False" {
                condition["lastTransitionTime"] = known["lastTransitionTime"].take();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn number(budget: &Value, field: &str) -> i64 {
    budget["status"][field].as_i64().unwrap_or(0)
}
