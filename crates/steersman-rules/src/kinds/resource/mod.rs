//! The kinds of `resource.k8s.io`: classes of devices, claims for them, and what drivers offer.

mod allocation;
mod attribute;
mod capacity;
mod claim_spec;
mod counters;
mod device;
mod device_class;
mod device_status;
mod device_taint_rule;
mod identifier;
mod nodes;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
mod selector;
mod taint;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "resource.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[
    device_class::KIND,
    resource_claim::KIND,
    resource_claim_template::KIND,
    resource_slice::KIND,
    device_taint_rule::KIND,
];
