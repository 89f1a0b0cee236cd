//! The kinds of `apps`: what keeps pods running.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "apps";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[
    controller_revision::KIND,
    daemon_set::KIND,
    deployment::KIND,
    replica_set::KIND,
    stateful_set::KIND,
];
