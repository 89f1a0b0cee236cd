//! The kinds of `events.k8s.io`.

mod event;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "events.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[event::KIND];
