//! Claims: of devices, which a pod lists, and of volumes, which templates describe.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::FieldError;
use crate::names;
use crate::quantity::Quantity;
use crate::strategy::at::At;
use crate::strategy::template::validate_selector_at;

const ACCESS_MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// The names of a pod's resource claims.
pub(super) fn names<'v>(list: &At<'v, '_>) -> Vec<&'v str> {
    let names = list.list().iter().filter_map(|claim| claim["name"].as_str());
    names.filter(|name| !name.is_empty()).collect()
}

/// The mistakes in a pod's resource claims.
pub(super) fn pod_claims(list: &At<'_, '_>, metadata: &Value, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for claim in list.items() {
        if !metadata["annotations"]["kubernetes.io/config.mirror"].is_null() {
            let why = "static pods do not support resource claims";
            errors.push(FieldError::forbidden("", why));
            continue;
        }
        let name = claim.at("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else if seen.insert(name.text()) {
            name.follows(names::dns1123_label, errors);
        } else {
            errors.push(name.duplicate());
        }
        let sources = [claim.at("resourceClaimName"), claim.at("resourceClaimTemplateName")];
        match sources.iter().filter(|source| source.is_set()).count() {
            2 => {
                let why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may \
                           be specified";
                errors.push(claim.invalid(why));
            }
            0 => {
                let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                errors.push(claim.invalid(why));
            }
            _ => {}
        }
        for source in sources.iter().filter(|source| source.is_set()) {
            source.follows(names::dns1123_subdomain, errors);
        }
    }
}

/// The mistakes in the template of a volume claim.
pub(super) fn volume_template(template: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    let metadata = template.at("metadata");
    metadata.at("labels").labels(errors);
    for (field, value) in metadata.value.as_object().into_iter().flatten() {
        if !["annotations", "labels", "creationTimestamp"].contains(&field.as_str())
            && !value.is_null()
        {
            errors.push(metadata.at(field).forbidden("cannot be set"));
        }
    }
    volume_claim(&template.at("spec"), errors);
}

/// The mistakes in the spec of a volume claim.
pub(in crate::strategy) fn volume_claim(spec: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    let modes = spec.at("accessModes");
    if modes.list().is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    if spec.at("selector").is_set() {
        validate_selector_at(&spec.at("selector"), errors);
    }
    access_modes(&modes, errors);
    storage(spec, errors);
    spec.at("storageClassName").may_follow(names::dns1123_subdomain, errors);
    spec.at("volumeMode").one_of(&["Block", "Filesystem"], errors);
    for source in ["dataSource", "dataSourceRef"] {
        let source = spec.at(source);
        if source.is_set() {
            data_source(&source, errors);
        }
    }
    spec.at("volumeAttributesClassName").may_follow(names::dns1123_subdomain, errors);
}

fn access_modes(modes: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    for mode in modes.list() {
        if !ACCESS_MODES.contains(&mode.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(modes.path(), mode, ACCESS_MODES));
        }
    }
    let known = modes.list().iter().filter_map(Value::as_str);
    let (alone, shared): (Vec<_>, Vec<_>) =
        known.filter(|m| ACCESS_MODES.contains(m)).partition(|m| *m == "ReadWriteOncePod");
    if !alone.is_empty() && !shared.is_empty() {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(modes.forbidden(why));
    }
}

fn storage(spec: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    let amount = &spec.value["resources"]["requests"]["storage"];
    let place = spec.at("resources[storage]");
    match Quantity::of(amount) {
        None => errors.push(place.required("")),
        Some(quantity) if !quantity.is_positive() => {
            errors.push(place.invalid_value(amount.clone(), "must be greater than zero"));
        }
        Some(_) => {}
    }
}

fn data_source(source: &At<'_, '_>, errors: &mut Vec<FieldError>) {
    source.require_all(&["name", "kind"], errors);
    let group = source.at("apiGroup");
    if group.text().is_empty() {
        if source.at("kind").text() != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(source.invalid_value(source.at("kind").text(), why));
        }
    } else {
        group.follows(names::dns1123_subdomain, errors);
    }
}
