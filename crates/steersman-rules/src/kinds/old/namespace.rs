//! Namespaces: a life of their own, which only `finalize` ends.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::names;
use crate::rules::Strategy;
use crate::rules::document::{fill, fill_text, is_empty, items, set, text, within};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// What every cluster needs.
const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];

/// The strategy of namespaces.
#[derive(Debug)]
pub(in crate::kinds) struct Namespace;

impl Strategy for Namespace {
    fn default(&self, namespace: &mut Value) {
        let name = text(&namespace["metadata"]["name"]).to_owned();
        if !name.is_empty() {
            within(namespace, "metadata", |metadata| {
                within(metadata, "labels", |labels| set(labels, NAME_LABEL, name));
            });
        }
        within(namespace, "status", |status| fill(status, "phase", "Active"));
    }

    fn prepare_create(&self, namespace: &mut Value) {
        set(namespace, "status", json!({"phase": "Active"}));
        within(namespace, "spec", |spec| {
            fill(spec, "finalizers", json!([]));
            if let Some(finalizers) = spec["finalizers"].as_array_mut()
                && !finalizers.iter().any(|name| name == "kubernetes")
            {
                finalizers.push("kubernetes".into());
            }
        });
    }

    fn prepare_update(&self, old: &Value, new: &mut Value) {
        within(new, "spec", |spec| set(spec, "finalizers", old["spec"]["finalizers"].clone()));
        set(new, "status", old["status"].clone());
    }

    fn validate_create(&self, namespace: &Value) -> Vec<FieldError> {
        let field = "spec.finalizers";
        let all = items(&namespace["spec"]["finalizers"]).iter().map(text);
        all.flat_map(|name| names::finalizer(field, name)).collect()
    }

    fn validate_update(&self, _old: &Value, _new: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    fn prepare_status_update(&self, _old: &Value, new: &mut Value) {
        within(new, "status", |status| fill_text(status, "phase", "Active"));
    }

    fn validate_status_update(&self, _old: &Value, new: &Value) -> Vec<FieldError> {
        let deleting = !new["metadata"]["deletionTimestamp"].is_null();
        let phase = &new["status"]["phase"];
        let (wanted, detail) = if deleting {
            ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
        } else {
            ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
        };
        // The path is spelled as Kubernetes spells it.
        let error = || FieldError::invalid("status.Phase", phase, detail);
        (phase != wanted).then(error).into_iter().collect()
    }

    fn refuses_deletion(&self, namespace: &Value) -> Option<&'static str> {
        let name = text(&namespace["metadata"]["name"]);
        IMMORTAL.contains(&name).then_some("this namespace may not be deleted")
    }

    fn begin_deletion(&self, namespace: &mut Value) {
        within(namespace, "status", |status| set(status, "phase", "Terminating"));
    }

    fn holds_deletion(&self, namespace: &Value) -> bool {
        !is_empty(&namespace["spec"]["finalizers"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_active_labelled_and_held_by_a_finalizer() {
        let mut namespace = json!({"metadata": {"name": "shop"}});
        Namespace.default(&mut namespace);
        Namespace.prepare_create(&mut namespace);
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
        Namespace.begin_deletion(&mut namespace);
        assert_eq!(namespace["status"]["phase"], "Terminating");
        assert!(Namespace.holds_deletion(&namespace));
        assert!(!Namespace.holds_deletion(&json!({"spec": {"finalizers": []}})));
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
            assert_eq!(Namespace.validate_status_update(&Value::Null, &new).is_empty(), fine);
        }
    }

    #[test]
    fn an_update_cannot_drop_the_finalizer() {
        let old = json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        let mut new = json!({"spec": {"finalizers": []}});
        Namespace.prepare_update(&old, &mut new);
        assert_eq!(new, old);
    }
}
