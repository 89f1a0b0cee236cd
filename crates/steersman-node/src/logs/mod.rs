//! Rotation of containers' logs.
//!
//! A log that has grown too large is renamed with the time in its name, and the runtime is told to
//! [reopen](ReopenLog) it. Older ones are compressed, except for the newest, which somebody may still
//! be reading, and the oldest are removed:
//!
//! ```text
//! 0.log  0.log.20261117-120000  0.log.20261117-110000.gz
//! ```
//!
//! [`plan`](plan::plan) decides (pure), [`rotate()`] does it. A kubelet looks at the logs of running containers
//! every ten seconds.

mod plan;
mod rotate;
#[cfg(test)]
mod tests;

pub(crate) use plan::LogPolicy;
#[cfg(test)]
use plan::plan;
pub(crate) use rotate::{ReopenLog, rotate};
