//! Names of resources such as `cpu`, `hugepages-2Mi` or `example.com/gpu`, and amounts of them.

use super::at::{At, Errors};
use crate::names;
use crate::quantity::Quantity;

/// What stands before the size of huge pages.
pub(crate) const HUGE_PAGES: &str = "hugepages-";

/// What containers compute with.
const COMPUTE: &[&str] = &["cpu", "memory", "ephemeral-storage"];

/// Things that a quota counts one by one, and that cannot be halved.
const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Whether a resource is Kubernetes' own.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource is one that someone else brought, by a name that a quota can have, too.
pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// `cpu`, `requests.cpu` and `limits.cpu`.
pub(crate) fn is_compute(name: &str) -> bool {
    let bare = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits."));
    COMPUTE.contains(&bare.unwrap_or(name))
}

/// Whether a resource of Kubernetes can be limited by a quota.
pub(crate) fn is_quota_resource(name: &str) -> bool {
    let huge = name.strip_prefix("requests.").unwrap_or(name).starts_with(HUGE_PAGES);
    is_compute(name) || huge || name == "requests.storage" || COUNTED.contains(&name)
}

/// Complains about a name that is not well-formed, or neither known nor has a prefix.
pub(crate) fn check(name: &str, at: &At<'_, '_>, errors: &mut Errors) {
    let complaints = names::qualified_name(name);
    errors.extend(complaints.iter().map(|why| at.invalid_value(name, why)));
    let is_known = is_quota_resource(name) || name == "storage";
    if complaints.is_empty() && !name.contains('/') && !is_known {
        let why = "must be a standard resource type or fully qualified";
        errors.push(at.invalid_value(name, why));
    }
}

/// Complains about a resource that a container cannot have.
pub(crate) fn check_of_container(name: &str, at: &At<'_, '_>, errors: &mut Errors) {
    let why = match name.contains('/') {
        false if !COMPUTE.contains(&name) && !name.starts_with(HUGE_PAGES) => {
            "must be a standard resource for containers"
        }
        true if !is_native(name) && !is_extended(name) => {
            "doesn't follow extended resource name standard"
        }
        _ => return,
    };
    errors.push(at.invalid_value(name, why));
}

/// Complains about an amount below zero, and about a part of what cannot be divided.
pub(crate) fn check_amount(name: &str, at: &At<'_, '_>, errors: &mut Errors) {
    let Some(amount) = Quantity::of(at.value) else { return };
    if amount.is_negative() {
        errors.push(at.invalid("must be greater than or equal to 0"));
    }
    if (COUNTED.contains(&name) || is_extended(name)) && !amount.is_integer() {
        errors.push(at.invalid("must be an integer"));
    }
}
