//! `IPAddress`.

use crate::kinds::kind::Kind;
use crate::kinds::old;

/// What is said of `IPAddress`.
pub(super) const KIND: Kind = Kind {
    plural: "ipaddresses",
    name: "IPAddress",
    short_names: &["ip"],
    rules: &old::network::IP_ADDRESS,
    ..Kind::of_cluster(super::GROUP, "v1")
};
