//! The kinds of `networking.k8s.io`: how traffic comes in, which traffic may pass, and the
//! addresses that services have.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod object_reference;
mod service_cidr;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "networking.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[
    ingress_class::KIND,
    ingress::KIND,
    ip_address::KIND,
    network_policy::KIND,
    service_cidr::KIND,
];
