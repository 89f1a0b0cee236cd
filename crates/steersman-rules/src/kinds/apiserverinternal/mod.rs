//! The kind of `internal.apiserver.k8s.io`, which Kubernetes 1.36 serves at `v1alpha1`, and only on
//! request.

mod storage_version;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "internal.apiserver.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[storage_version::KIND];
