//! The kind of `storagemigration.k8s.io`, which Kubernetes 1.36 serves at `v1beta1`, and only on request.

mod storage_version_migration;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "storagemigration.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[storage_version_migration::KIND];
