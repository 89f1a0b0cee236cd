//! ReplicationControllers, the elder of ReplicaSets: their selector is a plain map, and may change.

use serde_json::{Value, json};

use crate::kinds::core::pod::template;
use crate::kinds::core::pod::{defaults, disabled};
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, is_empty, set, within, within_existing};
use crate::rules::label_selector::matches;
use crate::rules::rollout::Counts;
use crate::table::cells::labels;
use crate::table::template::containers;
use crate::table::{Column, age};

/// What is said of ReplicationControllers.
pub(super) const KIND: Kind = Kind {
    plural: "replicationcontrollers",
    name: "ReplicationController",
    short_names: &["rc"],
    traits: &[Trait::All, Trait::Generation, Trait::Scale, Trait::Status],
    storage_prefix: Some("controllers"),
    selectable_fields: &["status.replicas"],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default,
    status: Some(|| json!({"replicas": 0})),
    create: |controller| disabled::drop_of_template(controller, "/spec/template", &Value::Null),
    keep: |old, controller| disabled::drop_of_template(controller, "/spec/template", old),
    check,
    check_status: |controller, old, errors| COUNTS.check(controller, old, errors),
    warn,
    ..Rules::NONE
};

const NAMES: template::Kind =
    template::Kind { of_selector: "", of_deadline: "ReplicationController" };

/// What the status of a ReplicaSet counts, too.
pub(in crate::kinds) const COUNTS: Counts = Counts {
    numbers: &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ],
    parts: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    available: "cannot be greater than readyReplicas",
};

fn columns() -> Vec<Column> {
    let mut columns = replicas();
    columns.extend(containers());
    let show = |controller: &Value, _| labels(&controller["spec"]["selector"]).into();
    columns.push(Column::text("Selector", show).wide());
    columns
}

/// How many pods are wanted, there and ready; also of ReplicaSets.
pub(in crate::kinds) fn replicas() -> Vec<Column> {
    vec![
        Column::number("Desired", "spec.replicas"),
        Column::number("Current", "status.replicas"),
        Column::number("Ready", "status.readyReplicas"),
        age(),
    ]
}

fn default(controller: &mut Value) {
    let labels = template::labels(&controller["spec"]).clone();
    let copy = |object: &mut Value, key: &str| {
        if is_empty(&object[key]) && !is_empty(&labels) {
            set(object, key, labels.clone());
        }
    };
    within(controller, "metadata", |metadata| copy(metadata, "labels"));
    within(controller, "spec", |spec| {
        copy(spec, "selector");
        fill(spec, "replicas", 1);
        within_existing(spec, "template", defaults::template);
    });
}

/// When a controller changes, Kubernetes looks at the template that goes instead of the one that
/// comes.
fn warn(controller: &Value, old: Option<&Value>) -> Vec<String> {
    match old {
        None => template::warnings_of_replicas(controller, None),
        Some(before) if template::is_new_generation(controller, old) => {
            template::warnings_of(before, "spec.template", None)
        }
        Some(_) => Vec::new(),
    }
}

fn check(controller: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = controller.at("spec");
    spec.at("minReadySeconds").not_negative(errors);
    let selector = spec.at("selector");
    if selector.is_empty() {
        errors.push(selector.required(""));
    }
    spec.at("replicas").not_negative(errors);
    let template = spec.at("template");
    if template.value.is_null() {
        errors.push(template.required(""));
        return;
    }
    let wanted = json!({"matchLabels": selector.value});
    let matches = matches(&wanted, template::labels(spec.value));
    template::matching(&spec, matches, errors);
    template::validate_template(&template, errors);
    template::always_restarts(&template, NAMES, errors);
}
