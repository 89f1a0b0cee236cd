//! Persistent volume claims: they may be bound and may grow; the rest stands.

use serde_json::{Value, json};

use super::persistent_volume::columns::{access_modes as shown_modes, claimed_class, phase};
use super::persistent_volume::{VOLUME_MODES, access_modes};
use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::quantity::Quantity;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_text, remove, set, text, within, within_existing};
use crate::rules::internal;
use crate::rules::label_selector::label_selector;
use crate::table::cells::printed;
use crate::table::{Column, age};

/// What is said of `PersistentVolumeClaim`.
pub(super) const KIND: Kind = Kind {
    plural: "persistentvolumeclaims",
    name: "PersistentVolumeClaim",
    short_names: &["pvc"],
    traits: &[Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const RESIZE_STATES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

const RULES: Rules = Rules {
    default: |claim| within(claim, "spec", defaults),
    status: Some(|| json!({"phase": "Pending"})),
    check: |claim, old, errors| check_spec(&claim.at("spec"), &old["spec"], errors),
    change,
    check_status: status,
    prepare_status: |_, claim| {
        within(claim, "status", |status| fill_text(status, "phase", "Pending"));
    },
    ..Rules::NONE
};

/// A source of data in one field is meant in the other, too. The older field only ever took
/// claims and snapshots; what else stands there is passed over, as it always was.
fn defaults(spec: &mut Value) {
    fill(spec, "volumeMode", "Filesystem");
    let source = &spec["dataSource"];
    let old_kinds = [("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")];
    if !old_kinds.contains(&(text(&source["apiGroup"]), text(&source["kind"]))) {
        remove(spec, "dataSource");
    }
    let source = spec["dataSource"].clone();
    let reference = spec["dataSourceRef"].clone();
    let elsewhere = !text(&reference["namespace"]).is_empty();
    if source.is_object() && reference.is_null() {
        set(spec, "dataSourceRef", source);
    } else if source.is_null() && reference.is_object() && !elsewhere {
        set(spec, "dataSource", reference);
        within_existing(spec, "dataSource", |source| drop(remove(source, "namespace")));
    }
}

/// The mistakes in what a claim asks for; also of claims inside other kinds.
pub(in crate::kinds) fn check_spec(spec: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    access_modes(spec, "at least 1 access mode is required", errors);
    label_selector(&spec.at("selector"), errors);
    let requested = &spec.value["resources"]["requests"]["storage"];
    let amount = Quantity::of(requested);
    let resources = spec.at("resources");
    let request = resources.entry("storage").with(requested);
    if request.is_absent() {
        errors.push(request.required(""));
    } else if amount.is_some_and(|amount| !amount.is_positive()) {
        errors.push(request.invalid("must be greater than zero"));
    } else if amount.is_some_and(|amount| !amount.is_integer()) {
        errors.push(request.invalid("must be an integer"));
    }
    for key in ["storageClassName", "volumeAttributesClassName"] {
        let class = spec.at(key);
        if !class.is_empty() {
            class.follows(names::dns1123_subdomain, errors);
        }
    }
    spec.at("volumeMode").one_of(VOLUME_MODES, errors);
    let source = spec.at("dataSource");
    let reference = spec.at("dataSourceRef");
    data_source(&source, old, errors);
    data_source(&reference, old, errors);
    if source.is_absent() || reference.is_absent() {
        return;
    }
    let shown = json!({});
    let same = ["apiGroup", "kind", "name"].iter().all(|k| source.value[k] == reference.value[k]);
    if !text(&reference.value["namespace"]).is_empty() {
        let detail = "may not be specified when dataSourceRef.namespace is specified";
        errors.push(FieldError::invalid(spec.path(), &shown, detail));
    } else if !same {
        errors.push(FieldError::invalid(spec.path(), &shown, "must match dataSourceRef"));
    }
}

fn data_source(source: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    if source.is_absent() {
        return;
    }
    source.at("name").require(errors);
    source.at("kind").require(errors);
    let group = source.at("apiGroup");
    let kind = &source.value["kind"];
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(source.path(), kind, detail));
    }
    let known = ["dataSource", "dataSourceRef"].iter().any(|k| !old[*k]["apiGroup"].is_null());
    if !group.is_empty() && !known {
        group.follows(names::dns1123_subdomain, errors);
    }
    let namespace = source.at("namespace");
    if !namespace.is_empty() {
        namespace.follows(names::dns1123_label, errors);
    }
}

fn change(claim: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = claim.at("spec");
    let bound = claim.value["status"]["phase"] == "Bound";
    let [is, was] = [spec.value, &old["spec"]].map(|spec| frozen(spec, old, bound));
    if is != was {
        let changes = internal::diff("PersistentVolumeClaimSpec", &was, &is);
        errors.push(spec.forbidden(&format!(
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims\n{changes}"
        )));
    }
    let size = |claim: &Value| Quantity::of(&claim["resources"]["requests"]["storage"]);
    let has = Quantity::of(&old["status"]["capacity"]["storage"]).unwrap_or(Quantity::ZERO);
    if let (Some(before), Some(after)) = (size(&old["spec"]), size(spec.value))
        && after < before
        && after <= has
    {
        let field = "spec.resources.requests.storage";
        let detail = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden(field, detail));
    }
    if spec.value["volumeMode"] != old["spec"]["volumeMode"] {
        let mode = &spec.value["volumeMode"];
        errors.push(FieldError::invalid("volumeMode", mode, "field is immutable"));
    }
    class_change(&spec, old, errors);
}

/// A spec without what may change.
fn frozen(spec: &Value, old: &Value, bound: bool) -> Value {
    let mut spec = spec.clone();
    if text(&old["spec"]["volumeName"]).is_empty() {
        remove(&mut spec, "volumeName");
    }
    let before = &old["metadata"]["annotations"][CLASS_ANNOTATION];
    // A claim without a class may be given one, that of its annotation if it has one.
    if old["spec"]["storageClassName"].is_null()
        && (before.is_null() || spec["storageClassName"] == *before)
    {
        remove(&mut spec, "storageClassName");
    }
    if bound {
        remove(&mut spec, "volumeAttributesClassName");
        within_existing(&mut spec, "resources", |resources| {
            within_existing(resources, "requests", |requests| drop(remove(requests, "storage")));
        });
    }
    spec
}

fn class_change(spec: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let class = spec.at("volumeAttributesClassName");
    let current = &old["status"]["currentVolumeAttributesClassName"];
    if *class.value == old["spec"]["volumeAttributesClassName"] || current.is_null() {
        return;
    }
    if class.is_absent() {
        errors.push(class.forbidden(
            "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil",
        ));
    } else if class.is_empty() {
        errors.push(class.forbidden(
            "update to empty string is forbidden when status.currentVolumeAttributesClassName is \
             not nil",
        ));
    }
}

fn status(claim: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let status = claim.at("status");
    for list in ["capacity", "allocatedResources"] {
        for (_, amount) in status.at(list).entries() {
            if Quantity::of(amount.value).is_some_and(Quantity::is_negative) {
                errors.push(amount.invalid("must be a valid resource quantity"));
            }
        }
    }
    let states = status.at("allocatedResourceStatuses");
    for (name, state) in states.entries() {
        if !RESIZE_STATES.contains(&state.text()) {
            let name = Value::from(name);
            errors.push(FieldError::not_supported(states.path(), &name, RESIZE_STATES));
        }
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("Status", phase),
        Column::field("Volume", "spec.volumeName", ""),
        Column::text("Capacity", |pvc, _| {
            bound(pvc, capacity(&pvc["status"]["capacity"]["storage"]))
        }),
        Column::text("Access Modes", |pvc, _| {
            bound(pvc, shown_modes(&pvc["status"]["accessModes"]))
        }),
        Column::text("StorageClass", claimed_class),
        Column::field("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
        age(),
        Column::field("VolumeMode", "spec.volumeMode", "<unset>").wide(),
    ]
}

/// What is only true of a claim that has its volume.
fn bound(claim: &Value, value: Value) -> Value {
    if text(&claim["spec"]["volumeName"]).is_empty() { "".into() } else { value }
}

fn capacity(storage: &Value) -> Value {
    if storage.is_null() { "0".into() } else { printed(storage).into() }
}
