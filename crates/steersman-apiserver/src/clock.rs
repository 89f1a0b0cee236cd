//! Where timestamps come from.

use std::sync::Arc;

use jiff::Timestamp;

/// Where timestamps come from; it follows the clock of the process, which may be virtual.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
