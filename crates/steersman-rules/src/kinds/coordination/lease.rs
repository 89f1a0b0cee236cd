//! Leases: who does something now, and until when.

use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::table::{Column, age};

/// What is said of Leases.
pub(super) const KIND: Kind = Kind {
    plural: "leases",
    name: "Lease",
    traits: &[Trait::CreateOnUpdate, Trait::VersionedUpdate],
    rules: &RULES,
    columns: || vec![Column::field("Holder", "spec.holderIdentity", ""), age()],
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules =
    Rules { check: |lease, _, errors| check(&lease.at("spec"), errors), ..Rules::NONE };

fn check(spec: &At<'_, '_>, errors: &mut Errors) {
    let seconds = spec.at("leaseDurationSeconds");
    if seconds.is_set() {
        seconds.positive(errors);
    }
    spec.at("leaseTransitions").not_negative(errors);
    let strategy = spec.at("strategy");
    if strategy.is_set() {
        // The path is doubled, as it is in Kubernetes.
        let path = format!("{}.strategy", strategy.path());
        let strategy = At::new(strategy.value, &path);
        if strategy.text().contains('/') {
            strategy.follows(names::qualified_name, errors);
        } else if strategy.text() != "OldestEmulationVersion" {
            errors.push(strategy.not_supported(&["OldestEmulationVersion"]));
        }
    }
    let preferred = spec.at("preferredHolder");
    if !preferred.is_empty() && strategy.is_empty() {
        errors.push(preferred.forbidden("may only be specified if `strategy` is defined"));
    }
}
