//! `VolumeAttributesClass`: what a driver is told of volumes that exist. Nothing in it changes; a
//! volume moves to another class.

use super::parameters::{forbid_changes, parameters, provisioner};
use crate::kinds::kind::Kind;
use crate::rules::Rules;
use crate::table::{Column, age};

/// What is said of `VolumeAttributesClass`.
pub(super) const KIND: Kind = Kind {
    plural: "volumeattributesclasses",
    name: "VolumeAttributesClass",
    short_names: &["vac"],
    rules: &RULES,
    columns: || vec![Column::field("DriverName", "driverName", ""), age()],
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    // Of an update, what may not change is told first.
    check: |class, old, errors| {
        if !old.is_null() {
            forbid_changes(class, old, &["driverName", "parameters"], errors);
        }
        provisioner(&class.at("driverName"), errors);
        parameters(class, errors);
        class.at("parameters").require_because("must contain at least one key/value pair", errors);
    },
    ..Rules::NONE
};
