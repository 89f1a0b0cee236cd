//! `CronJob`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `CronJob`.
pub(super) const KIND: Kind = Kind {
    plural: "cronjobs",
    name: "CronJob",
    short_names: &["cj"],
    traits: &[Trait::All, Trait::Generation, Trait::Status],
    rules: &old::batch::CronJob,
    ..Kind::namespaced(super::GROUP, "v1")
};
