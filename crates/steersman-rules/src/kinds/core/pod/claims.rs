//! Claims: of devices, which a pod lists, and of volumes, which templates describe.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::{FieldError, NOWHERE};
use crate::kinds::core::persistent_volume_claim;
use crate::names;
use crate::rules::at::{At, Errors};

/// What of metadata a template has no say in, and how complaints call it.
const NOT_IN_TEMPLATES: &[(&str, &str)] = &[
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

/// The names of a pod's resource claims.
pub(super) fn names<'v>(list: &At<'v, '_>) -> Vec<&'v str> {
    let names = list.list().iter().filter_map(|claim| claim["name"].as_str());
    names.filter(|name| !name.is_empty()).collect()
}

/// The mistakes in a pod's resource claims.
pub(super) fn pod_claims(list: &At<'_, '_>, metadata: &Value, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for claim in list.items() {
        if !metadata["annotations"]["kubernetes.io/config.mirror"].is_null() {
            let why = "static pods do not support resource claims";
            errors.push(FieldError::forbidden(NOWHERE, why));
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
                errors.push(claim.invalid_as("PodResourceClaim", why));
            }
            0 => {
                let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                errors.push(claim.invalid_as("PodResourceClaim", why));
            }
            _ => {}
        }
        for source in sources.iter().filter(|source| source.is_set()) {
            source.follows(names::dns1123_subdomain, errors);
        }
    }
}

/// The mistakes in the template of a volume claim.
pub(super) fn volume_template(template: &At<'_, '_>, errors: &mut Errors) {
    template_metadata(&template.at("metadata"), errors);
    persistent_volume_claim::check_spec(&template.at("spec"), &Value::Null, errors);
}

/// The mistakes in what a template says about what is made from it.
pub(in crate::kinds) fn template_metadata(metadata: &At<'_, '_>, errors: &mut Errors) {
    let annotations = metadata.at("annotations");
    errors.extend(names::validate_annotations(annotations.value, &annotations.path()));
    metadata.at("labels").labels(errors);
    let given = NOT_IN_TEMPLATES.iter().filter(|(field, _)| !metadata.at(field).is_empty());
    errors.extend(given.map(|(_, shown)| metadata.named(shown).forbidden("cannot be set")));
}
