//! `Pod`.

use crate::kinds::kind::{self, Kind, Trait};
use crate::kinds::old;

/// What is said of `Pod`.
pub(super) const KIND: Kind = Kind {
    plural: "pods",
    name: "Pod",
    short_names: &["po"],
    traits: &[
        Trait::All,
        Trait::Generation,
        Trait::Attach,
        Trait::Binding,
        Trait::EphemeralContainers,
        Trait::Eviction,
        Trait::Exec,
        Trait::Log,
        Trait::PortForward,
        Trait::Proxy,
        Trait::Resize,
        Trait::Status,
    ],
    status_metadata: kind::POD_METADATA,
    selectable_fields: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ],
    rules: &old::pod::Pod,
    ..Kind::namespaced(super::GROUP, "v1")
};
