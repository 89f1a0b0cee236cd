//! What can run out on a node.

use std::fmt::{self, Display};

/// Something of which a node can have too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Signal {
    MemoryAvailable,
    /// Memory of the Pods together, within what they are allotted.
    AllocatableMemoryAvailable,
    NodeFsAvailable,
    NodeFsInodesFree,
    ImageFsAvailable,
    ImageFsInodesFree,
    PidAvailable,
}

/// A condition of a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// `MemoryPressure`
    Memory,
    /// `DiskPressure`
    Disk,
    /// `PIDPressure`
    Pid,
}

/// What can be removed before Pods are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reclaim {
    /// All containers that have ended, see [`garbage`](crate::garbage).
    Containers,
    /// All images that nobody uses.
    Images,
}

/// Where images are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disks {
    /// On the same disk as everything else.
    One,
    /// Images, and what containers write, on a disk of their own.
    ImagesApart,
}

impl Signal {
    pub(crate) const ALL: [Self; 7] = [
        Self::MemoryAvailable,
        Self::AllocatableMemoryAvailable,
        Self::NodeFsAvailable,
        Self::NodeFsInodesFree,
        Self::ImageFsAvailable,
        Self::ImageFsInodesFree,
        Self::PidAvailable,
    ];

    /// As configurations call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MemoryAvailable => "memory.available",
            Self::AllocatableMemoryAvailable => "allocatableMemory.available",
            Self::NodeFsAvailable => "nodefs.available",
            Self::NodeFsInodesFree => "nodefs.inodesFree",
            Self::ImageFsAvailable => "imagefs.available",
            Self::ImageFsInodesFree => "imagefs.inodesFree",
            Self::PidAvailable => "pid.available",
        }
    }

    /// The condition that the Node has when there is too little.
    pub(crate) fn condition(self) -> Condition {
        match self {
            Self::MemoryAvailable | Self::AllocatableMemoryAvailable => Condition::Memory,
            Self::PidAvailable => Condition::Pid,
            _ => Condition::Disk,
        }
    }

    /// The resource that is reclaimed, as people are told of it.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::MemoryAvailable | Self::AllocatableMemoryAvailable => "memory",
            Self::NodeFsAvailable | Self::ImageFsAvailable => "ephemeral-storage",
            Self::NodeFsInodesFree | Self::ImageFsInodesFree => "inodes",
            Self::PidAvailable => "pids",
        }
    }

    /// What to remove before Pods.
    pub(crate) fn reclaim(self, disks: Disks) -> &'static [Reclaim] {
        match (self, disks) {
            (Self::ImageFsAvailable | Self::ImageFsInodesFree, _)
            | (Self::NodeFsAvailable | Self::NodeFsInodesFree, Disks::One) => {
                &[Reclaim::Containers, Reclaim::Images]
            }
            _ => &[],
        }
    }

    /// The Event of the Node when Pods or anything else is removed: reason and message.
    pub(crate) fn attempt(self) -> (&'static str, String) {
        ("EvictionThresholdMet", format!("Attempting to reclaim {}", self.resource()))
    }
}

impl Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "MemoryPressure",
            Self::Disk => "DiskPressure",
            Self::Pid => "PIDPressure",
        })
    }
}
