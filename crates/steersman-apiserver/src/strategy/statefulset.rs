//! `StatefulSets`.

use serde_json::{Value, json};

use super::document::{each, fill, fill_text, not_negative, set, text, within};
use super::pod::defaults;
use super::{Strategy, template};
use crate::field::FieldError;
use crate::names;

/// What of a stateful set may change once it exists.
const MUTABLE: &[&str] = &[
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

/// The strategy of stateful sets.
#[derive(Debug)]
pub(super) struct StatefulSet;

impl Strategy for StatefulSet {
    fn default(&self, set: &mut Value) {
        within(set, "spec", |spec| {
            fill(spec, "replicas", 1);
            fill(spec, "revisionHistoryLimit", 10);
            fill_text(spec, "podManagementPolicy", "OrderedReady");
            within(spec, "updateStrategy", |strategy| {
                fill_text(strategy, "type", "RollingUpdate");
                if strategy["type"] == "RollingUpdate" {
                    within(strategy, "rollingUpdate", |rolling| fill(rolling, "partition", 0));
                }
            });
            within(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
                fill_text(policy, "whenDeleted", "Retain");
                fill_text(policy, "whenScaled", "Retain");
            });
            each(spec, "volumeClaimTemplates", |claim| {
                fill_text(claim, "apiVersion", "v1");
                fill_text(claim, "kind", "PersistentVolumeClaim");
                within(claim, "spec", |spec| fill(spec, "volumeMode", "Filesystem"));
                within(claim, "status", |status| fill_text(status, "phase", "Pending"));
            });
            within(spec, "template", defaults::template);
        });
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"replicas": 0, "availableReplicas": 0}));
    }

    fn validate_create(&self, set: &Value) -> Vec<FieldError> {
        let spec = &set["spec"];
        let mut errors = policies(spec);
        for key in ["replicas", "minReadySeconds"] {
            errors.extend(not_negative(spec, "spec", key));
        }
        errors.extend(not_negative(&spec["ordinals"], "spec.ordinals", "start"));
        let service = text(&spec["serviceName"]);
        if !service.is_empty() {
            errors.extend(names::invalid("spec.serviceName", service, names::dns1123_label));
        }
        errors.extend(template::validate(&with_claims_as_volumes(spec), "statefulset"));
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        if frozen(&old["spec"]) != frozen(&new["spec"]) {
            let detail = "updates to statefulset spec for fields other than 'replicas', \
                          'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
                          'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are \
                          forbidden";
            errors.push(FieldError::forbidden("spec", detail));
        }
        errors
    }
}

fn policies(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !["OrderedReady", "Parallel"].contains(&text(&spec["podManagementPolicy"])) {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        let value = &spec["podManagementPolicy"];
        errors.push(FieldError::invalid("spec.podManagementPolicy", value, detail));
    }
    let strategy = &spec["updateStrategy"];
    match text(&strategy["type"]) {
        "RollingUpdate" => {
            let path = "spec.updateStrategy.rollingUpdate";
            errors.extend(not_negative(&strategy["rollingUpdate"], path, "partition"));
        }
        "OnDelete" if !strategy["rollingUpdate"].is_null() => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            let field = "spec.updateStrategy.rollingUpdate";
            errors.push(FieldError::invalid(field, &strategy["rollingUpdate"], detail));
        }
        "OnDelete" => {}
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::invalid("spec.updateStrategy", strategy, detail));
        }
    }
    errors
}

/// Containers may mount the claims of the set as if they were volumes of the template.
fn with_claims_as_volumes(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let claims = spec["volumeClaimTemplates"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = claims.iter().map(|claim| claim["metadata"]["name"].clone()).collect();
    within(&mut spec, "template", |template| {
        within(template, "spec", |pod| {
            let mut volumes = pod["volumes"].as_array().cloned().unwrap_or_default();
            volumes.retain(|volume| !names.contains(&volume["name"]));
            volumes.extend(names.iter().map(|name| json!({"name": name})));
            set(pod, "volumes", volumes);
        });
    });
    spec
}

fn frozen(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|key, value| !MUTABLE.contains(&key.as_str()) && !value.is_null());
    }
    spec
}
