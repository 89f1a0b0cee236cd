//! Storage classes, and what CSI drivers say about themselves, nodes and attachments.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::volume::driver_name;
use crate::field::FieldError;
use crate::names;
use crate::quantity::Quantity;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, is_empty, items, remove, set, text, within};
use crate::rules::label_selector::label_selector;

const PARAMETERS_MAX: usize = 512;
const PARAMETERS_MAX_BYTES: usize = 256 * 1024;
const ERROR_MAX_BYTES: usize = 1024;
const NODE_ID_MAX: usize = 256;
const TOKEN_SECONDS_MIN: i64 = 600;

/// The strategy of storage classes.
pub(in crate::kinds) const STORAGE_CLASS: Rules = Rules {
    default: |class| {
        fill(class, "reclaimPolicy", "Delete");
        fill(class, "volumeBindingMode", "Immediate");
    },
    check: storage_class,
    change: |class, old, errors| {
        forbid_changes(class, old, &["parameters", "provisioner", "reclaimPolicy"], errors);
        class.at("volumeBindingMode").unchanged(&old["volumeBindingMode"], errors);
    },
    ..Rules::NONE
};

/// The strategy of classes of volume attributes.
pub(in crate::kinds) const VOLUME_ATTRIBUTES_CLASS: Rules = Rules {
    check: |class, _, errors| {
        provisioner(&class.at("driverName"), errors);
        parameters(class, errors);
        class.at("parameters").require_because("must contain at least one key/value pair", errors);
    },
    change: |class, old, errors| {
        forbid_changes(class, old, &["driverName", "parameters"], errors);
    },
    ..Rules::NONE
};

/// The strategy of CSI drivers.
pub(in crate::kinds) const CSI_DRIVER: Rules = Rules {
    default: driver_defaults,
    check: |driver, _, errors| csi_driver(&driver.at("spec"), errors),
    change: |driver, old, errors| {
        let (new, old) = (&driver.value["spec"], &old["spec"]);
        // The path of the first is spelled as Kubernetes spells it.
        for (key, shown) in [
            ("attachRequired", "spec.attachedRequired"),
            ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
        ] {
            if new[key] != old[key] {
                errors.push(FieldError::invalid(shown, &new[key], "field is immutable"));
            }
        }
    },
    ..Rules::NONE
};

/// The strategy of what CSI drivers say of a node.
pub(in crate::kinds) const CSI_NODE: Rules = Rules {
    check: |node, _, errors| csi_node(&node.at("spec"), errors),
    change: |node, old, errors| {
        let known = items(&old["spec"]["drivers"]);
        for driver in items(&node.value["spec"]["drivers"]) {
            let before = known.iter().find(|before| before["name"] == driver["name"]);
            if let Some(before) = before
                && fixed(before) != fixed(driver)
            {
                let field = "spec.drivers";
                errors.push(FieldError::invalid(field, &fixed(driver), "field is immutable"));
            }
        }
    },
    ..Rules::NONE
};

/// The strategy of what a CSI driver says of the room that is left.
pub(in crate::kinds) const CSI_STORAGE_CAPACITY: Rules = Rules {
    check: |capacity, _, errors| {
        label_selector(&capacity.at("nodeTopology"), errors);
        capacity.at("storageClassName").follows(names::dns1123_subdomain, errors);
        let room = capacity.at("capacity");
        if Quantity::of(room.value).is_some_and(Quantity::is_negative) {
            errors.push(room.invalid("must be greater than or equal to 0"));
        }
    },
    change: |capacity, old, errors| {
        for key in ["nodeTopology", "storageClassName"] {
            capacity.at(key).unchanged(&old[key], errors);
        }
    },
    ..Rules::NONE
};

/// The strategy of attachments of volumes to nodes.
pub(in crate::kinds) const VOLUME_ATTACHMENT: Rules = Rules {
    status: Some(|| json!({"attached": false})),
    check: attachment,
    change: |attachment, old, errors| attachment.at("spec").unchanged(&old["spec"], errors),
    check_status: |attachment, _, errors| attachment_status(attachment, errors),
    ..Rules::NONE
};

fn forbid_changes(class: &At<'_, '_>, old: &Value, keys: &[&str], errors: &mut Errors) {
    for key in keys {
        let part = class.at(key);
        if *part.value != old[*key] {
            errors.push(part.forbidden(&format!("updates to {key} are forbidden.")));
        }
    }
}

fn storage_class(class: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    provisioner(&class.at("provisioner"), errors);
    parameters(class, errors);
    let policy = class.at("reclaimPolicy");
    if !policy.is_empty() {
        policy.requires_one_of(&["Delete", "Retain"], errors);
    }
    class.at("volumeBindingMode").requires_one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    let mut terms: Vec<&Value> = Vec::new();
    for term in class.each("allowedTopologies") {
        topology_term(&term, errors);
        if terms.contains(&&term.value["matchLabelExpressions"]) {
            let field = term.at("matchLabelExpressions").path();
            errors.push(FieldError::duplicate(field, &Value::from("")));
        }
        terms.push(&class.value["allowedTopologies"][terms.len()]["matchLabelExpressions"]);
    }
}

fn topology_term(term: &At<'_, '_>, errors: &mut Errors) {
    let mut keys: Vec<&str> = Vec::new();
    for requirement in term.each("matchLabelExpressions") {
        let mut seen: Vec<&str> = Vec::new();
        requirement.at("values").require(errors);
        for value in requirement.each("values") {
            if seen.contains(&text(value.value)) {
                errors.push(value.duplicate());
            }
            seen.push(value.value.as_str().unwrap_or_default());
        }
        let key = requirement.at("key");
        key.follows(names::qualified_name, errors);
        if keys.contains(&key.text()) {
            errors.push(key.duplicate());
        }
        keys.push(text(&requirement.value["key"]));
    }
}

fn provisioner(name: &At<'_, '_>, errors: &mut Errors) {
    if name.require(errors) {
        let lower = name.text().to_lowercase();
        errors.extend(names::invalid(&name.path(), &lower, names::qualified_name));
    }
}

fn parameters(class: &At<'_, '_>, errors: &mut Errors) {
    let all = class.at("parameters");
    if all.len() > PARAMETERS_MAX {
        errors.push(FieldError::too_long(all.path(), PARAMETERS_MAX));
        return;
    }
    let mut size = 0;
    for (key, value) in class.at("parameters").entries() {
        if key.is_empty() {
            let detail = "field can not be empty.";
            errors.push(FieldError::invalid(all.path(), &Value::from(""), detail));
        }
        size += key.len() + value.text().len();
    }
    if size > PARAMETERS_MAX_BYTES {
        errors.push(FieldError::too_long(all.path(), PARAMETERS_MAX_BYTES));
    }
}

fn driver_defaults(driver: &mut Value) {
    within(driver, "spec", |spec| {
        fill(spec, "attachRequired", true);
        for key in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
            fill(spec, key, false);
        }
        fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if is_empty(&spec["volumeLifecycleModes"]) {
            set(spec, "volumeLifecycleModes", json!(["Persistent"]));
        }
    });
}

fn csi_driver(spec: &At<'_, '_>, errors: &mut Errors) {
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    spec.at("fsGroupPolicy").one_of(&policies, errors);
    let mut audiences = HashSet::new();
    for request in spec.each("tokenRequests") {
        let (audience, seconds) = (request.at("audience"), request.at("expirationSeconds"));
        if !audiences.insert(audience.text().to_owned()) {
            errors.push(audience.duplicate());
        } else if seconds.is_set() {
            if seconds.number_or_zero() < TOKEN_SECONDS_MIN {
                errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
            }
            if seconds.number_or_zero() > 1 << 32 {
                let detail = "may not specify a duration larger than 2^32 seconds";
                errors.push(seconds.invalid(detail));
            }
        }
    }
    let modes = ["Persistent", "Ephemeral"];
    let list = spec.at("volumeLifecycleModes");
    for mode in items(list.value).iter().filter(|mode| !modes.contains(&text(mode))) {
        errors.push(FieldError::not_supported(list.path(), mode, &modes));
    }
    let period = spec.at("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.number_or_zero() < 10 {
        errors.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    let secrets = spec.at("serviceAccountTokenInSecrets");
    if secrets.is_set() && spec.at("tokenRequests").is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(secrets.invalid(detail));
    }
}

/// What of a driver on a node does not change.
fn fixed(driver: &Value) -> Value {
    let mut driver = driver.clone();
    remove(&mut driver, "allocatable");
    driver
}

fn csi_node(spec: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for driver in spec.each("drivers") {
        let (name, id) = (driver.at("name"), driver.at("nodeID"));
        driver_name(&name, errors);
        id.require(errors);
        if id.text().len() > NODE_ID_MAX {
            errors.push(id.invalid(&format!("must be {NODE_ID_MAX} characters or less")));
        }
        let allocatable = driver.at("allocatable");
        allocatable.at("count").not_negative(errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        topology_keys(&driver, errors);
    }
}

fn topology_keys(driver: &At<'_, '_>, errors: &mut Errors) {
    let keys: Vec<&str> = items(&driver.value["topologyKeys"]).iter().map(text).collect();
    for (i, key) in keys.iter().enumerate() {
        if key.is_empty() {
            errors.push(driver.required(""));
        }
        if keys[..i].contains(key) {
            errors.push(FieldError::duplicate(driver.path(), &Value::from(*key)));
        }
        errors.extend(names::invalid(&driver.path(), key, names::qualified_name));
    }
}

fn attachment(attachment: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let spec = attachment.at("spec");
    driver_name(&spec.at("attacher"), errors);
    let source = spec.at("source");
    let (inline, name) = (source.at("inlineVolumeSpec"), source.at("persistentVolumeName"));
    match (inline.is_absent(), name.is_absent()) {
        (true, true) => errors.push(source.required(ONE)),
        (false, false) => errors.push(source.forbidden(ONE)),
        (true, false) => {
            name.require_because("must specify non empty persistentVolumeName", errors);
        }
        (false, true) => {}
    }
    spec.at("nodeName").follows(names::dns1123_subdomain, errors);
    attachment_status(attachment, errors);
    if name.is_set() {
        name.follows(names::dns1123_subdomain, errors);
    }
}

fn attachment_status(attachment: &At<'_, '_>, errors: &mut Errors) {
    let status = attachment.at("status");
    let size: usize = status
        .at("attachmentMetadata")
        .entries()
        .map(|(key, value)| key.len() + value.text().len())
        .sum();
    if size > PARAMETERS_MAX_BYTES {
        let field = status.at("attachmentMetadata").path();
        errors.push(FieldError::too_long(field, PARAMETERS_MAX_BYTES));
    }
    for key in ["attachError", "detachError"] {
        let error = status.at(key);
        let message = error.at("message");
        if message.text().len() > ERROR_MAX_BYTES {
            errors.push(FieldError::too_long(message.path(), ERROR_MAX_BYTES));
        }
        error.at("errorCode").within(0..=i64::from(i32::MAX), errors);
    }
}
