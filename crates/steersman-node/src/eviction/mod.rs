//! Eviction: what a node does when memory, disks or process ids run out.
//!
//! [`thresholds`](parse) say from when on something is short, [`Pressure`] remembers since when it is
//! and says which conditions the Node has and what is to be reclaimed, [`rank()`] says which Pods go
//! first, and [`choose`] which one goes, how fast, and with which words. [`over_their_limits`] has the
//! Pods that fill disks beyond what they may. All of it is pure. The steps, every ten seconds:
//!
//! 1. observe the node and its Pods, and [`Pressure::observe`] it; the Node has the conditions;
//! 2. evict all Pods [`over_their_limits`], and if there were any, wait for them to go;
//! 3. else, if something is [starved](pressure::Observed::starved): tell the Node's Event, do what
//!    [`Signal::reclaim`] says, and if that was not [enough](satisfied), evict the Pod that [`choose`]
//!    names, and wait for it to go before the next look.

mod admission;
mod choice;
mod limits;
mod pressure;
mod rank;
mod requests;
mod signal;
#[cfg(test)]
mod tests;
mod threshold;
mod usage;

pub(crate) use admission::{admits, is_critical};
pub(crate) use choice::{Choice, Eviction, choose};
pub(crate) use limits::over_their_limits;
pub(crate) use pressure::{Observation, Observations, Pressure, satisfied};
pub(crate) use rank::rank;
pub(crate) use signal::{Condition, Disks, Reclaim, Signal};
#[cfg(test)]
use threshold::Amount;
pub(crate) use threshold::{Settings, Threshold, ThresholdError, parse};
pub(crate) use usage::{ContainerUsage, FsUsage, PodUsage, Usages};

/// The reason of Pods that were evicted or not taken.
pub(crate) const REASON: &str = "Evicted";
