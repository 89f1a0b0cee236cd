//! `VolumeAttachment`: that a volume shall be attached to a node, which stays, and what came of it.

use serde_json::{Value, json};

use super::parameters::PARAMETERS_MAX_BYTES;
use crate::kinds::core::persistent_volume::{check_inline, driver_name, inline_defaults};
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::within_existing;
use crate::table::{Column, age};

/// How long an error may be. Kubernetes tells another number, that of the metadata.
const ERROR_MAX_BYTES: usize = 1024;

/// What is said of `VolumeAttachment`.
pub(super) const KIND: Kind = Kind {
    plural: "volumeattachments",
    name: "VolumeAttachment",
    traits: &[Trait::VersionedUpdate, Trait::StatusAlone, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |attachment| {
        within_existing(attachment, "spec", |spec| {
            within_existing(spec, "source", |source| {
                within_existing(source, "inlineVolumeSpec", inline_defaults);
            });
        });
    },
    status: Some(|| json!({"attached": false})),
    check,
    change: |attachment, old, errors| {
        attachment.at("spec").unchanged_as("VolumeAttachmentSpec", &old["spec"], errors);
    },
    check_status,
    ..Rules::NONE
};

fn check(attachment: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let spec = attachment.at("spec");
    driver_name(&spec.at("attacher"), errors);
    let source = spec.at("source");
    let inline = source.at("inlineVolumeSpec");
    let name = source.at("persistentVolumeName");
    match (inline.is_absent(), name.is_absent()) {
        (true, true) => errors.push(source.required(ONE)),
        (false, false) => errors.push(source.forbidden(ONE)),
        (true, false) => {
            name.require_because("must specify non empty persistentVolumeName", errors);
        }
        (false, true) => check_inline(&inline, errors),
    }
    spec.at("nodeName").follows(names::dns1123_subdomain, errors);
    check_status(attachment, old, errors);
    if name.is_set() {
        name.follows(names::dns1123_subdomain, errors);
    }
}

fn check_status(attachment: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let status = attachment.at("status");
    let metadata = status.at("attachmentMetadata");
    let size: usize = metadata.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    if size > PARAMETERS_MAX_BYTES {
        errors.push(metadata.too_long(PARAMETERS_MAX_BYTES));
    }
    for key in ["attachError", "detachError"] {
        let error = status.at(key);
        let message = error.at("message");
        if message.text().len() > ERROR_MAX_BYTES {
            errors.push(message.too_long(PARAMETERS_MAX_BYTES));
        }
        error.at("errorCode").within(0..=i64::from(i32::MAX), errors);
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::field("Attacher", "spec.attacher", "").called_name(),
        Column::field("PV", "spec.source.persistentVolumeName", ""),
        Column::field("Node", "spec.nodeName", ""),
        Column::switch("Attached", "status.attached"),
        age(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_is_refused_with_the_limit_of_the_metadata() {
        let message = "m".repeat(ERROR_MAX_BYTES + 1);
        let attachment = json!({"status": {"attachError": {"message": message}}});
        let errors = RULES.validate_status_update(&Value::Null, &attachment);
        let expected = "status.attachError.message: Too long: may not be more than 262144 bytes";
        assert_eq!(errors[0].message(), expected);
    }

    #[test]
    fn the_source_of_an_inline_volume_is_filled_in() {
        let mut attachment =
            json!({"spec": {"source": {"inlineVolumeSpec": {"hostPath": {"path": "/a"}}}}});
        RULES.fill_in(&mut attachment);
        let inline = &attachment["spec"]["source"]["inlineVolumeSpec"];
        assert_eq!(*inline, json!({"hostPath": {"path": "/a", "type": ""}}));
    }
}
