//! `DeviceClass`: a name for devices that are selected and configured alike.

use super::device::{configuration, selectors};
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::table::age;

/// What is said of `DeviceClass`.
pub(super) const KIND: Kind = Kind {
    plural: "deviceclasses",
    name: "DeviceClass",
    traits: &[Trait::Generation],
    rules: &RULES,
    columns: || vec![age()],
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    check: |class, _, errors| {
        let spec = class.at("spec");
        selectors(&spec, errors);
        spec.each("config").for_each(|config| configuration(&config, errors));
    },
    ..Rules::NONE
};
