//! Leases: who does something now, and until when.

use serde_json::Value;

use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{remove, within_existing};
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

const RULES: Rules = Rules {
    create: |lease| drop_strategy(&Value::Null, lease),
    keep: drop_strategy,
    check: |lease, _, errors| check(&lease.at("spec"), errors),
    ..Rules::NONE
};

/// Coordinated election is off in Kubernetes unless somebody asks for it: what it needs is dropped,
/// except where it stands already.
fn drop_strategy(old: &Value, lease: &mut Value) {
    within_existing(lease, "spec", |spec| {
        for field in ["strategy", "preferredHolder"] {
            if old["spec"][field].is_null() {
                remove(spec, field);
            }
        }
    });
}

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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::RULES;

    #[test]
    fn what_coordinated_election_needs_is_dropped_unless_it_is_there() {
        let wished =
            json!({"spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "a"}});
        let mut new = wished.clone();
        RULES.prepare_create(&mut new);
        assert_eq!(new, json!({"spec": {}}));
        for (before, kept) in [
            (json!({}), json!({})),
            (json!({"strategy": "OldestEmulationVersion"}), wished["spec"]["strategy"].clone()),
        ] {
            let mut new = wished.clone();
            RULES.prepare_update(&json!({"spec": before}), &mut new);
            let expected = match kept {
                Value::String(_) => json!({"spec": {"strategy": kept}}),
                _ => json!({"spec": {}}),
            };
            assert_eq!(new, expected);
        }
        let mut bare = json!({});
        RULES.prepare_create(&mut bare);
        assert_eq!(bare, json!({}));
    }
}
