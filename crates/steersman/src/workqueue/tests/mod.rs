//! The queue as its users see it. [`model`] compares it with a naive queue under random
//! operations, [`interleavings`] runs it under many schedules of its threads.

mod basics;
mod faults;
mod interleavings;
mod model;
mod observing;
mod pitfalls;
mod priorities;
pub(super) mod simulation;
mod turns;
