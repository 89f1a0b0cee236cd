//! `Event`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `Event`.
pub(super) const KIND: Kind = Kind {
    plural: "events",
    name: "Event",
    short_names: &["ev"],
    traits: &[Trait::CreateOnUpdate],
    selectable_fields: &[
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ],
    rules: &old::event::NEW_EVENT,
    ..Kind::namespaced(super::GROUP, "v1")
};
