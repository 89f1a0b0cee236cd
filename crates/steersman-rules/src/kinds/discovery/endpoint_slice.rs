//! `EndpointSlice`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `EndpointSlice`.
pub(super) const KIND: Kind = Kind {
    plural: "endpointslices",
    name: "EndpointSlice",
    traits: &[Trait::Generation],
    rules: &old::endpoints::ENDPOINT_SLICE,
    ..Kind::namespaced(super::GROUP, "v1")
};
