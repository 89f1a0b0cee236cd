//! `HorizontalPodAutoscaler`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `HorizontalPodAutoscaler`.
pub(super) const KIND: Kind = Kind {
    plural: "horizontalpodautoscalers",
    name: "HorizontalPodAutoscaler",
    short_names: &["hpa"],
    traits: &[Trait::All, Trait::Status],
    rules: &old::scaling::HorizontalPodAutoscaler,
    ..Kind::namespaced(super::GROUP, "v2")
};

/// The older version of the same.
pub(super) const V1: Kind = Kind { version: "v1", ..KIND };
