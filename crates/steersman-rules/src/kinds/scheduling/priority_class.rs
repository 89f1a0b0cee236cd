//! PriorityClasses: which pods go first, and may push others out.

use serde_json::Value;

use crate::field::FieldError;
use crate::kinds::kind::Kind;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, set, text, within};
use crate::table::{Column, age};

/// What is said of PriorityClasses.
pub(super) const KIND: Kind = Kind {
    plural: "priorityclasses",
    name: "PriorityClass",
    short_names: &["pc"],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |class| fill(class, "preemptionPolicy", "PreemptLowerPriority"),
    // It is never raised.
    create: |class| within(class, "metadata", |metadata| set(metadata, "generation", 1)),
    check,
    change: |class, old, errors| {
        let value = class.at("value");
        if *value.value != old["value"] {
            errors.push(value.forbidden("may not be changed in an update."));
        }
        class.at("preemptionPolicy").unchanged(&old["preemptionPolicy"], errors);
    },
    ..Rules::NONE
};

const USER_PRIORITY_MAX: i64 = 1_000_000_000;

/// The priority classes that every cluster has, and their values.
const SYSTEM_CLASSES: &[(&str, i64)] =
    &[("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

fn columns() -> Vec<Column> {
    vec![
        Column::number("Value", "value"),
        Column::switch("Global-Default", "globalDefault"),
        age(),
        Column::field("PreemptionPolicy", "preemptionPolicy", ""),
    ]
}

fn check(class: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    if !old.is_null() {
        return;
    }
    let name = text(&class.value["metadata"]["name"]);
    let value = class.at("value");
    if name.starts_with("system-") {
        if let Some(why) = not_of_the_system(name, class.value) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. \
                 error: {why}"
            );
            errors.push(FieldError::forbidden("metadata.name", &detail));
        }
    } else if value.number_or_zero() > USER_PRIORITY_MAX {
        let most = "maximum allowed value of a user defined priority is";
        errors.push(value.forbidden(&format!("{most} {USER_PRIORITY_MAX}")));
    }
    let policy = class.at("preemptionPolicy");
    if policy.is_set() {
        policy.requires_one_of(&["PreemptLowerPriority", "Never"], errors);
    }
}

fn not_of_the_system(name: &str, class: &Value) -> Option<String> {
    match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, value)) if class["value"] != *value => {
            Some(format!("value of {name} PriorityClass must be {value}"))
        }
        Some(_) if class["globalDefault"] == true => {
            Some(format!("globalDefault of {name} PriorityClass must be false"))
        }
        Some(_) => None,
    }
}
