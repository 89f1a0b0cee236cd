//! What a claim of devices uses: itself and, by class, the devices that it may get.
//!
//! Claims that the scheduler makes for extended resources of a Pod are charged like any other;
//! Kubernetes lets the Pod pay for those, if a device class has such a name.

use serde_json::Value;

use super::amounts::Amounts;
use super::measure::Measure;
use crate::quantity::Quantity;
use crate::rules::document::{items, text};

const COUNT: &str = "count/resourceclaims.resource.k8s.io";

/// What stands after the name of a device class.
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";

/// What stands before it where the devices of a class are asked for as an extended resource.
const IMPLICIT: &str = "requests.deviceclass.resource.kubernetes.io/";

/// As many devices as a claim can get at all.
const ALL: usize = 32;

/// Whether claims count under this name.
pub(super) fn counts(name: &str) -> bool {
    name == COUNT || name.ends_with(OF_CLASS)
}

pub(super) fn measure(claim: &Value) -> Measure {
    let mut used = Amounts::default();
    used.set(COUNT, Quantity::ONE);
    for request in items(&claim["spec"]["devices"]["requests"]) {
        let alternatives = items(&request["firstAvailable"]);
        if alternatives.is_empty() {
            // v1beta1 has the fields in the request itself.
            let exactly = Some(&request["exactly"]).filter(|exactly| exactly.is_object());
            used.add(&devices(exactly.unwrap_or(request)));
        } else {
            // Which of them it will be, nobody knows: of each class the most that it can be.
            let mut most = Amounts::default();
            alternatives.iter().for_each(|one| most.raise(&devices(one)));
            used.add(&most);
        }
    }
    Measure::stored(used)
}

fn devices(request: &Value) -> Amounts {
    let count = match text(&request["allocationMode"]) {
        "ExactCount" => request["count"].as_u64().and_then(|count| usize::try_from(count).ok()),
        "All" => Some(ALL),
        _ => None,
    };
    let mut used = Amounts::default();
    let class = text(&request["deviceClassName"]);
    if !class.is_empty() {
        let count = Quantity::units(count.unwrap_or(0));
        used.set(format!("{class}{OF_CLASS}"), count);
        used.set(format!("{IMPLICIT}{class}"), count);
    }
    used
}
