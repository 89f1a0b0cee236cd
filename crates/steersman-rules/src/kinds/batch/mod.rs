//! The kinds of `batch`: pods that come to an end.

mod cron_job;
mod job;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "batch";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[cron_job::KIND, job::KIND];
