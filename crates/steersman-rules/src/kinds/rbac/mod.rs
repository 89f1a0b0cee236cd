//! The kinds of `rbac.authorization.k8s.io`: roles, which say what may be done, and bindings, which
//! say by whom.

mod binding;
mod cluster_role;
mod cluster_role_binding;
mod policy_rule;
mod role;
mod role_binding;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] =
    &[cluster_role_binding::KIND, cluster_role::KIND, role_binding::KIND, role::KIND];
