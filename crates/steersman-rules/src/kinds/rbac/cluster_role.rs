//! `ClusterRole`: what may be done in the cluster, told by rules or gathered from other roles by
//! their labels.

use serde_json::Value;

use super::policy_rule::{self, Scope};
use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::label_selector::label_selector;

/// What is said of `ClusterRole`.
pub(super) const KIND: Kind = Kind {
    plural: "clusterroles",
    name: "ClusterRole",
    traits: &[Trait::CreateOnUpdate],
    effect: Some(Effect::Permission),
    rules: &RULES,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules { check, ..Rules::NONE };

fn check(role: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    role.each("rules").for_each(|rule| policy_rule::check(&rule, Scope::Cluster, errors));
    let aggregation = role.at("aggregationRule");
    if aggregation.is_absent() {
        return;
    }
    let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
    aggregation.at("clusterRoleSelectors").require_because(detail, errors);
    for selector in aggregation.each("clusterRoleSelectors") {
        let before = errors.len();
        label_selector(&selector, errors);
        if errors.len() > before {
            // Kubernetes shows what it read, which is nothing.
            let nothing = Value::Null;
            errors.push(FieldError::invalid(selector.path(), &nothing, "invalid label selector."));
        }
    }
}
