//! ReplicaSets: so many pods of one template.

use serde_json::{Value, json};

use super::deployment::NAMES;
use crate::kinds::core::pod::template;
use crate::kinds::core::pod::{defaults, disabled};
use crate::kinds::core::replication_controller::{COUNTS, replicas};
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, within};
use crate::table::Column;
use crate::table::template::containers_and_selector;

/// What is said of ReplicaSets.
pub(super) const KIND: Kind = Kind {
    plural: "replicasets",
    name: "ReplicaSet",
    short_names: &["rs"],
    traits: &[Trait::All, Trait::Generation, Trait::Scale, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |set| {
        within(set, "spec", |spec| {
            fill(spec, "replicas", 1);
            within(spec, "template", defaults::template);
        });
    },
    status: Some(|| json!({"replicas": 0})),
    create: |set| disabled::drop_of_template(set, "/spec/template", &Value::Null),
    keep: |old, set| disabled::drop_of_template(set, "/spec/template", old),
    check,
    change: |set, old, errors| {
        set.at("spec.selector").unchanged_as("*raw", &old["spec"]["selector"], errors);
    },
    check_status: |set, old, errors| COUNTS.check(set, old, errors),
    warn: template::warnings_of_replicas,
    ..Rules::NONE
};

fn columns() -> Vec<Column> {
    let mut columns = replicas();
    columns.extend(containers_and_selector());
    columns
}

fn check(set: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = set.at("spec");
    spec.at("replicas").not_negative(errors);
    spec.at("minReadySeconds").not_negative(errors);
    // Kubernetes says "deployment" here as well.
    template::validate(&spec, NAMES, errors);
}
