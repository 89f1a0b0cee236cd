//! `ConfigMap`.

use crate::kinds::kind::Kind;
use crate::kinds::old;

/// What is said of `ConfigMap`.
pub(super) const KIND: Kind = Kind {
    plural: "configmaps",
    name: "ConfigMap",
    short_names: &["cm"],
    rules: &old::config::ConfigMap,
    ..Kind::namespaced(super::GROUP, "v1")
};
