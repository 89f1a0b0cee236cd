//! `events.k8s.io`: events by their newer names. They are stored with those of the core group.

mod event;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "events.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[event::KIND];
