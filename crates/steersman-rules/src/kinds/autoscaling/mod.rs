//! The kinds of `autoscaling`.

mod horizontal_pod_autoscaler;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "autoscaling";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[horizontal_pod_autoscaler::KIND, horizontal_pod_autoscaler::V1];
