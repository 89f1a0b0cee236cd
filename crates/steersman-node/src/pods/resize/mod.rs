//! Other resources for containers that run already.
//!
//! What a Pod wants is *allocated* when its node has [room](admission), and *actuated* when its
//! containers run with it, which some have to be started again for ([`changes`](mod@changes)). How far
//! that is, [`sizes`] say; they are told in the Pod's status and read back from there.
//! [`allocations`] keep what no status tells yet, and wake those who wait for room.

mod admission;
mod allocations;
mod changes;
mod conditions;
mod sizes;
#[cfg(test)]
mod tests;

pub(super) use allocations::Allocations;
pub(super) use changes::{changes, is_in_progress};
pub(super) use conditions::{conditions, is_own_condition};
pub(super) use sizes::{Progress, Sizes};
