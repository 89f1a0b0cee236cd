//! Namespaces: a life of their own, which only `finalize` ends.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_text, is_empty, set, text, within};
use crate::table::{Column, age};

/// What is said of `Namespace`.
pub(super) const KIND: Kind = Kind {
    plural: "namespaces",
    name: "Namespace",
    short_names: &["ns"],
    traits: &[Trait::OneByOne, Trait::Finalize, Trait::Status],
    selectable_fields: &["status.phase"],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

const RULES: Rules = Rules {
    default,
    status: Some(|| json!({"phase": "Active"})),
    create,
    keep: |old, new| {
        within(new, "spec", |spec| set(spec, "finalizers", old["spec"]["finalizers"].clone()));
        set(new, "status", old["status"].clone());
    },
    check,
    prepare_status: |_, namespace| {
        label(namespace);
        within(namespace, "status", |status| fill_text(status, "phase", "Active"));
    },
    check_status,
    begin_deletion: |namespace| {
        within(namespace, "status", |status| set(status, "phase", "Terminating"));
    },
    holds_deletion: |namespace| !is_empty(&namespace["spec"]["finalizers"]),
    ..Rules::NONE
};

fn default(namespace: &mut Value) {
    label(namespace);
    within(namespace, "status", |status| fill(status, "phase", "Active"));
}

/// Its name is always there to be selected by, whichever way it is written.
fn label(namespace: &mut Value) {
    let name = text(&namespace["metadata"]["name"]).to_owned();
    if !name.is_empty() {
        within(namespace, "metadata", |metadata| {
            within(metadata, "labels", |labels| set(labels, NAME_LABEL, name));
        });
    }
}

/// The finalizer of the server holds a namespace until nothing is left in it.
fn create(namespace: &mut Value) {
    within(namespace, "spec", |spec| {
        fill(spec, "finalizers", json!([]));
        if let Some(finalizers) = spec["finalizers"].as_array_mut()
            && !finalizers.iter().any(|name| name == "kubernetes")
        {
            finalizers.push("kubernetes".into());
        }
    });
}

/// An update cannot change the finalizers, so only those of a new namespace are looked at.
fn check(namespace: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    if !old.is_null() {
        return;
    }
    let finalizers = namespace.at("spec.finalizers");
    for name in finalizers.list() {
        errors.extend(names::finalizer(&finalizers.path(), text(name)));
    }
}

fn check_status(namespace: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let deleting = namespace.at("metadata.deletionTimestamp").is_set();
    let (wanted, detail) = if deleting {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    let phase = &namespace.value["status"]["phase"];
    if phase != wanted {
        // The path is spelled as Kubernetes spells it.
        errors.push(FieldError::invalid("status.Phase", phase, detail));
    }
}

fn columns() -> Vec<Column> {
    vec![Column::field("Status", "status.phase", ""), age()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_active_labelled_and_held_by_a_finalizer() {
        let mut namespace = json!({"metadata": {"name": "shop"}});
        RULES.fill_in(&mut namespace);
        RULES.prepare_create(&mut namespace);
        assert_eq!(
            namespace,
            json!({
                "metadata": {"name": "shop", "labels": {NAME_LABEL: "shop"}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            })
        );
    }

    #[test]
    fn a_deleted_namespace_terminates_until_it_is_finalized() {
        let mut namespace = json!({"spec": {"finalizers": ["kubernetes"]}});
        RULES.begin_deletion(&mut namespace);
        assert_eq!(namespace["status"]["phase"], "Terminating");
        assert!(RULES.holds_deletion(&namespace));
        assert!(!RULES.holds_deletion(&json!({"spec": {"finalizers": []}})));
    }

    #[test]
    fn the_phase_follows_deletion() {
        for (deleted, phase, fine) in [
            (Value::Null, "Active", true),
            (Value::Null, "Terminating", false),
            (json!("2026-01-01T00:00:00Z"), "Terminating", true),
            (json!("2026-01-01T00:00:00Z"), "Active", false),
        ] {
            let new = json!({
                "metadata": {"deletionTimestamp": deleted}, "status": {"phase": phase},
            });
            assert_eq!(RULES.validate_status_update(&Value::Null, &new).is_empty(), fine);
        }
    }

    #[test]
    fn an_update_cannot_drop_the_finalizer() {
        let old = json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        let mut new = json!({"spec": {"finalizers": []}});
        RULES.prepare_update(&old, &mut new);
        assert_eq!(new, old);
    }
}
