//! Persistent volume claims: they may be bound and may grow; the rest stands.

use serde_json::{Value, json};

use super::persistent_volume::columns::{access_modes as shown_modes, claimed_class, phase};
use super::persistent_volume::{VOLUME_MODES, known_access_modes, not_below_zero};
use crate::field::FieldError;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::quantity::Quantity;
use crate::rules::Rules;
use crate::rules::amounts::fraction;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_text, remove, same, set, text, within, within_existing};
use crate::rules::internal;
use crate::rules::label_selector::label_selector;
use crate::rules::resource_name::is_native;
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
    create: |claim| within_existing(claim, "spec", |spec| drop_foreign_source(&Value::Null, spec)),
    keep: |old, claim| {
        within_existing(claim, "spec", |spec| {
            drop_foreign_source(&old["spec"], spec);
            keep_source(&old["spec"], spec);
        });
    },
    warn: |claim, _| warnings(&At::root(claim)),
    ..Rules::NONE
};

/// A source of data in one field is meant in the other, too. The older field on its own only ever
/// took claims and snapshots; what else stands there is passed over, as it always was.
fn defaults(spec: &mut Value) {
    fill(spec, "volumeMode", "Filesystem");
    let source = &spec["dataSource"];
    let old_kinds = [("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")];
    let old_kind = old_kinds.contains(&(text(&source["apiGroup"]), text(&source["kind"])));
    if !old_kind && spec["dataSourceRef"].is_null() {
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

/// A source in another namespace takes a feature that is off (`CrossNamespaceVolumeDataSource`), so
/// it is dropped unless the claim had one in that field.
fn drop_foreign_source(old: &Value, spec: &mut Value) {
    if old["dataSourceRef"].is_null() && !text(&spec["dataSourceRef"]["namespace"]).is_empty() {
        remove(spec, "dataSourceRef");
    }
}

/// Older clients leave out the newer field of a claim that has a source; they mean the same one.
fn keep_source(old: &Value, spec: &mut Value) {
    let had = !old["dataSource"].is_null() || !old["dataSourceRef"].is_null();
    let source = spec["dataSource"].clone();
    if had && !source.is_null() {
        fill(spec, "dataSourceRef", source);
    }
}

fn warnings(claim: &At<'_, '_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let annotations = claim.at("metadata.annotations");
    let class = annotations.entry(CLASS_ANNOTATION);
    if class.is_set() {
        let why = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        warnings.push(format!("{}: {why}", class.path()));
    }
    warn_of_spec(&claim.at("spec"), &mut warnings);
    warnings
}

/// The warnings about what a claim asks for; also of claims inside other kinds.
pub(in crate::kinds) fn warn_of_spec(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    for list in ["resources.requests", "resources.limits"] {
        fraction(&spec.at(list), "storage", warnings);
    }
}

/// The mistakes in what a claim asks for; also of claims inside other kinds.
pub(in crate::kinds) fn check_spec(spec: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    spec.at("accessModes").require_because("at least 1 access mode is required", errors);
    label_selector(&spec.at("selector"), errors);
    known_access_modes(spec, errors);
    let requested = &spec.value["resources"]["requests"]["storage"];
    let amount = Quantity::of(requested);
    let resources = spec.at("resources");
    let request = resources.entry("storage").with(requested);
    if request.is_absent() {
        errors.push(request.required(""));
    } else if amount.is_some_and(|amount| !amount.is_positive()) {
        errors.push(request.invalid("must be greater than zero"));
    }
    spec.at("storageClassName").may_follow(names::dns1123_subdomain, errors);
    spec.at("volumeMode").one_of(VOLUME_MODES, errors);
    data_sources(spec, old, errors);
    spec.at("volumeAttributesClassName").may_follow(names::dns1123_subdomain, errors);
}

fn data_sources(spec: &At<'_, '_>, old: &Value, errors: &mut Errors) {
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
    let kind = text(&source.value["kind"]);
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(source.invalid_value(kind, detail));
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
    let [class, had] =
        [claim.value, old].map(|claim| text(&claim["metadata"]["annotations"][CLASS_ANNOTATION]));
    if class != had && !takes_class_of_annotation(claim.value, old) {
        let field = format!("metadata.annotations.{CLASS_ANNOTATION}");
        errors.push(FieldError::invalid(field, &class.into(), "field is immutable"));
    }
    let [was, is] = fixed(old, claim.value);
    if !same(&is, &was) {
        let changes = internal::diff("PersistentVolumeClaimSpec", &was, &is);
        errors.push(spec.forbidden(&format!(
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims\n{changes}"
        )));
    }
    let size = |claim: &Value| Quantity::of(&claim["resources"]["requests"]["storage"]);
    let has = Quantity::of(&old["status"]["capacity"]["storage"]).unwrap_or(Quantity::ZERO);
    let [before, after] =
        [&old["spec"], spec.value].map(|spec| size(spec).unwrap_or(Quantity::ZERO));
    if after < before && after <= has {
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

/// Whether a claim that had its class in an annotation now has the same one in the field.
fn takes_class_of_annotation(claim: &Value, old: &Value) -> bool {
    let was = &old["metadata"]["annotations"][CLASS_ANNOTATION];
    let is = &claim["metadata"]["annotations"][CLASS_ANNOTATION];
    !was.is_null()
        && old["spec"]["storageClassName"].is_null()
        && claim["spec"]["storageClassName"] == *was
        && (is.is_null() || is == was)
}

/// The specs before and after, each equal to the other in what may change.
fn fixed(old: &Value, claim: &Value) -> [Value; 2] {
    let mut was = old["spec"].clone();
    let mut is = claim["spec"].clone();
    if text(&was["volumeName"]).is_empty() {
        take(&mut was, "volumeName", &is);
    }
    let annotated = &old["metadata"]["annotations"][CLASS_ANNOTATION];
    // A claim without a class may be given one, that of its annotation if it has one.
    if was["storageClassName"].is_null()
        && (annotated.is_null() || is["storageClassName"] == *annotated)
    {
        remove(&mut is, "storageClassName");
    }
    if claim["status"]["phase"] == "Bound" {
        take(&mut is, "volumeAttributesClassName", &was);
        within_existing(&mut is, "resources", |resources| {
            within_existing(resources, "requests", |requests| {
                take(requests, "storage", &was["resources"]["requests"]);
            });
        });
    }
    [was, is]
}

/// Makes a field what it is in another object.
fn take(object: &mut Value, key: &str, other: &Value) {
    match &other[key] {
        Value::Null => drop(remove(object, key)),
        value => set(object, key, value.clone()),
    }
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
    for (_, amount) in status.at("capacity").entries() {
        not_below_zero(&amount, errors);
    }
    let states = status.at("allocatedResourceStatuses");
    for (name, state) in states.entries() {
        resource_of_claim(name, &states, errors);
        if !RESIZE_STATES.contains(&state.text()) {
            let name = Value::from(name);
            errors.push(FieldError::not_supported(states.path(), &name, RESIZE_STATES));
        }
    }
    let allocated = status.at("allocatedResources");
    for (name, amount) in allocated.entries() {
        if resource_of_claim(name, &allocated, errors) {
            not_below_zero(&amount, errors);
        }
    }
}

/// Complains about a resource that a claim cannot have; whether it can. Of Kubernetes' own it has
/// storage alone.
fn resource_of_claim(name: &str, list: &At<'_, '_>, errors: &mut Errors) -> bool {
    let complaints = names::qualified_name(name);
    errors.extend(complaints.iter().map(|why| list.invalid_value(name, why)));
    let known = !is_native(name) || name == "storage";
    if complaints.is_empty() && !known {
        errors.push(FieldError::not_supported(list.path(), &name.into(), &["storage"]));
    }
    complaints.is_empty() && known
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

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(spec: &Value) -> Value {
        let mut claim = json!({"metadata": {"name": "c"}, "spec": spec, "status": {}});
        RULES.fill_in(&mut claim);
        claim
    }

    fn plain() -> Value {
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        });
        claim(&spec)
    }

    #[test]
    fn a_source_of_any_kind_stays_where_both_fields_have_one() {
        let foo = |name: &str| json!({"apiGroup": "foo.io", "kind": "Foo", "name": name});
        let both = claim(&json!({"dataSource": foo("x"), "dataSourceRef": foo("y")}));
        assert_eq!(both["spec"]["dataSource"], foo("x"));
        let older = claim(&json!({"dataSource": foo("x")}));
        assert_eq!(older["spec"]["dataSource"], Value::Null);
        // A claim that had it may be written by a client that does not know the newer field.
        let mut again = json!({"spec": {"dataSource": foo("x")}});
        RULES.prepare_update(&claim(&json!({"dataSourceRef": foo("x")})), &mut again);
        RULES.fill_in(&mut again);
        assert_eq!(again["spec"]["dataSource"], foo("x"));
        assert_eq!(again["spec"]["dataSourceRef"], foo("x"));
    }

    #[test]
    fn a_source_in_another_namespace_is_dropped_unless_the_claim_had_one() {
        let kind = json!({"kind": "PersistentVolumeClaim", "name": "c"});
        let mut foreign = kind.clone();
        foreign["namespace"] = json!("other");
        let given = json!({"spec": {"dataSourceRef": foreign}});
        let mut new = given.clone();
        RULES.prepare_create(&mut new);
        assert_eq!(new["spec"], json!({}));
        let mut new = given.clone();
        RULES.prepare_update(&json!({"spec": {}}), &mut new);
        assert_eq!(new["spec"], json!({}));
        let mut new = given.clone();
        RULES.prepare_update(&json!({"spec": {"dataSourceRef": kind}}), &mut new);
        assert_eq!(new, given);
        let mut own = json!({"spec": {"dataSourceRef": kind}});
        RULES.prepare_create(&mut own);
        assert_eq!(own["spec"]["dataSourceRef"], kind);
    }

    #[test]
    fn the_diff_of_a_bound_claim_shows_what_it_asked_for() {
        let mut old = plain();
        old["status"]["phase"] = json!("Bound");
        let mut new = old.clone();
        new["spec"]["resources"]["requests"]["storage"] = json!("2Gi");
        assert_eq!(RULES.validate_update(&old, &new).len(), 0);
        new["spec"]["resources"]["limits"] = json!({"storage": "3Gi"});
        let errors = RULES.validate_update(&old, &new);
        let shown = errors[0].message();
        assert!(shown.contains("\"storage\": \"1Gi\"") && !shown.contains("2Gi"), "{shown}");
    }

    #[test]
    fn the_class_moves_from_the_annotation_to_the_field() {
        let mut old = plain();
        old["metadata"]["annotations"] = json!({CLASS_ANNOTATION: "gold"});
        let mut new = plain();
        new["spec"]["storageClassName"] = json!("gold");
        assert_eq!(RULES.validate_update(&old, &new).len(), 0);
        let errors = RULES.validate_update(&old, &plain());
        let expected = "metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid \
                        value: \"\": field is immutable";
        assert_eq!(errors[0].message(), expected);
        assert_eq!(errors.len(), 1);
    }

    #[test]
    fn a_status_speaks_of_storage() {
        let mut new = plain();
        new["status"] = json!({
            "capacity": {"storage": "-5"},
            "allocatedResourceStatuses": {"cpu": "NodeResizePending"},
            "allocatedResources": {"a.b/c": "1", "cpu": "1", "storage": "1500m"},
        });
        let errors = RULES.validate_status_update(&plain(), &new);
        let shown: Vec<_> = errors.iter().map(FieldError::message).collect();
        let expected = [
            "status.capacity[storage]: Invalid value: -5: must be a valid resource quantity",
            "status.allocatedResourceStatuses: Unsupported value: \"cpu\": supported values: \
             \"storage\"",
            "status.allocatedResources: Unsupported value: \"cpu\": supported values: \"storage\"",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_part_of_a_byte_and_the_old_annotation_are_warned_of() {
        let mut new = plain();
        new["metadata"]["annotations"] = json!({CLASS_ANNOTATION: "gold"});
        new["spec"]["resources"]["requests"]["storage"] = json!("1500m");
        assert_eq!(RULES.validate_create(&new).len(), 0);
        let expected = [
            "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; \
             use \"storageClassName\" attribute instead",
            "spec.resources.requests[storage]: fractional byte value \"1500m\" is invalid, must be \
             an integer",
        ];
        assert_eq!(RULES.warnings(&new, None), expected);
    }
}
