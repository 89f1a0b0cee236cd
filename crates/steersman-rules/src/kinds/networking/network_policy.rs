//! `NetworkPolicy`.

use crate::kinds::kind::{Kind, Trait};
use crate::kinds::old;

/// What is said of `NetworkPolicy`.
pub(super) const KIND: Kind = Kind {
    plural: "networkpolicies",
    name: "NetworkPolicy",
    short_names: &["netpol"],
    traits: &[Trait::Generation],
    rules: &old::network::NETWORK_POLICY,
    ..Kind::namespaced(super::GROUP, "v1")
};
