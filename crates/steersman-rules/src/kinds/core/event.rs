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
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    rules: &old::event::EVENT,
    ..Kind::namespaced(super::GROUP, "v1")
};
