//! Garbage collection of a node: images that nobody uses when the disk fills up, and containers,
//! sandboxes and logs that are left over.
//!
//! Decisions are pure: [`ImageRecords`] remember when an image was used last and say what may go, and
//! [`containers::plan`] says which containers, sandboxes and logs are too many. [`collect_images`],
//! [`remove_unused_images`] and [`collect_containers`] carry them out through what a runtime can do,
//! [`ImageStore`] and [`ContainerStore`]. A kubelet collects images every five minutes, containers
//! every minute, and both when a disk is under pressure.

mod collect;
mod containers;
mod images;
#[cfg(test)]
mod tests;

pub(crate) use collect::{
    ContainerStore, Failures, GarbageEvent, ImageGcError, ImageStore, collect_containers,
    collect_images, remove_unused_images,
};
#[cfg(test)]
use containers::ContainerGarbage;
pub(crate) use containers::{
    ContainerPolicy, ContainerState, FoundContainer, FoundSandbox, Garbage, PodState, plan,
};
#[cfg(test)]
use images::Need;
pub(crate) use images::{Disk, FoundImage, ImagePolicy, ImageRecords};
