//! What happens in a cluster that may help a Pod that waits.

use std::ops::BitOr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};

use super::pod_info::PodInfo;
use crate::metrics::EventName;

/// The kinds whose changes may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// A Pod that has a node.
    AssignedPod,
    /// The Pod itself that waits.
    UnscheduledPod,
    /// A node.
    Node,
    /// A namespace.
    Namespace,
    /// A claim for a volume.
    PersistentVolumeClaim,
    /// A volume.
    PersistentVolume,
    /// A class of volumes.
    StorageClass,
    /// A driver of volumes.
    CsiDriver,
    /// How much space a driver of volumes has somewhere.
    CsiStorageCapacity,
    /// What drivers of volumes offer on a node.
    CsiNode,
    /// That a volume is attached to a node.
    VolumeAttachment,
    /// A claim for devices.
    ResourceClaim,
    /// A class of devices.
    DeviceClass,
    /// Devices that a driver offers.
    ResourceSlice,
}

/// What happened to an object: one of these, or several that are of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(u32);

impl Action {
    /// It is new.
    pub const ADD: Self = Self(1);
    /// It is gone.
    pub const DELETE: Self = Self(1 << 1);
    /// A node offers something else.
    pub const NODE_ALLOCATABLE: Self = Self(1 << 2);
    /// A node has other labels.
    pub const NODE_LABEL: Self = Self(1 << 3);
    /// A node has other taints, or takes Pods again.
    pub const NODE_TAINT: Self = Self(1 << 4);
    /// A node is in another condition.
    pub const NODE_CONDITION: Self = Self(1 << 5);
    /// A node has other annotations.
    pub const NODE_ANNOTATION: Self = Self(1 << 6);
    /// A Pod has other labels.
    pub const POD_LABEL: Self = Self(1 << 7);
    /// A Pod asks for less.
    pub const POD_SCALE_DOWN: Self = Self(1 << 8);
    /// The last gate of a Pod is gone.
    pub const POD_GATES_ELIMINATED: Self = Self(1 << 9);
    /// A Pod tolerates more.
    pub const POD_TOLERATION: Self = Self(1 << 10);
    /// Any of these changes of a Pod.
    pub const POD_CHANGE: Self = Self(0b1_1111 << 7);
    /// The claims of a Pod have been made from its templates.
    pub const POD_GENERATED_CLAIM: Self = Self(1 << 11);
    /// Something else of it changed.
    pub const OTHER_UPDATE: Self = Self(1 << 12);
    /// A node says that its kubelet can do something else.
    pub const NODE_DECLARED_FEATURE: Self = Self(1 << 13);
    /// Any change of what is there.
    pub const UPDATE: Self = Self(Self::ALL.0 & !0b11);
    /// Anything.
    pub const ALL: Self = Self((1 << 14) - 1);

    /// Whether they have something in common.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Action {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Which events may make a Pod fit that a plug-in has refused.
#[derive(Clone, Copy, Debug)]
pub struct Interest {
    /// The kind.
    pub resource: Resource,
    /// What must have happened.
    pub actions: Action,
}

impl Interest {
    /// Everything: for who does not know better.
    pub const EVERYTHING: &[Self] = &[
        Self::new(Resource::AssignedPod, Action::ALL),
        // What the scheduler itself writes into the Pod's status is no news to it.
        Self::new(Resource::UnscheduledPod, Action::POD_CHANGE),
        Self::new(Resource::Node, Action::ALL),
        Self::new(Resource::Namespace, Action::ALL),
        Self::new(Resource::PersistentVolumeClaim, Action::ALL),
        Self::new(Resource::PersistentVolume, Action::ALL),
        Self::new(Resource::StorageClass, Action::ALL),
        Self::new(Resource::CsiDriver, Action::ALL),
        Self::new(Resource::CsiStorageCapacity, Action::ALL),
        Self::new(Resource::CsiNode, Action::ALL),
        Self::new(Resource::VolumeAttachment, Action::ALL),
        Self::new(Resource::ResourceClaim, Action::ALL),
        Self::new(Resource::DeviceClass, Action::ALL),
        Self::new(Resource::ResourceSlice, Action::ALL),
    ];

    /// An interest.
    pub const fn new(resource: Resource, actions: Action) -> Self {
        Self { resource, actions }
    }
}

/// An object before and after a change; one of them is missing if it came or went.
#[derive(Clone, Debug)]
pub struct Before<T> {
    /// As it was.
    pub old: Option<Arc<T>>,
    /// As it is.
    pub new: Option<Arc<T>>,
}

impl<T> Before<T> {
    /// The object as it is or last was.
    pub fn either(&self) -> Option<&Arc<T>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

/// Which object changed.
#[derive(Clone, Debug)]
pub enum Object {
    /// A Pod.
    Pod(Before<PodInfo>),
    /// A node.
    Node(Before<Node>),
    /// A namespace.
    Namespace(Before<Namespace>),
    /// A claim.
    Claim(Before<PersistentVolumeClaim>),
    /// A volume.
    Volume(Before<PersistentVolume>),
    /// A class of volumes.
    Class(Before<StorageClass>),
    /// A driver of volumes.
    CsiDriver(Before<CSIDriver>),
    /// How much space a driver of volumes has somewhere.
    StorageCapacity(Before<CSIStorageCapacity>),
    /// What drivers of volumes offer on a node.
    CsiNode(Before<CSINode>),
    /// A claim for devices.
    ResourceClaim(Before<ResourceClaim>),
    /// A class of devices.
    DeviceClass(Before<DeviceClass>),
    /// Of other kinds it does not matter which.
    Other,
}

/// Something that happened in the cluster.
#[derive(Clone, Debug)]
pub struct ClusterEvent {
    /// To which kind.
    pub resource: Resource,
    /// What.
    pub action: Action,
    /// To which object.
    pub object: Object,
}

impl ClusterEvent {
    /// What Kubernetes calls it, in metrics.
    pub(crate) fn name(&self) -> EventName {
        named(self.resource, self.action)
    }

    /// Whether somebody with these interests wants to know.
    pub fn concerns(&self, interests: &[Interest]) -> bool {
        interests
            .iter()
            .any(|it| it.resource == self.resource && it.actions.intersects(self.action))
    }
}

/// What Kubernetes calls an event, in metrics.
pub(crate) fn named(resource: Resource, action: Action) -> EventName {
    EventName { resource: resource.name(), action: action.name() }
}

impl Resource {
    fn name(self) -> &'static str {
        match self {
            Self::AssignedPod => "AssignedPod",
            Self::UnscheduledPod => "UnschedulablePod",
            Self::Node => "Node",
            Self::Namespace => "Namespace",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::PersistentVolume => "PersistentVolume",
            Self::StorageClass => "storage.k8s.io/StorageClass",
            Self::CsiDriver => "storage.k8s.io/CSIDriver",
            Self::CsiStorageCapacity => "storage.k8s.io/CSIStorageCapacity",
            Self::CsiNode => "storage.k8s.io/CSINode",
            Self::VolumeAttachment => "storage.k8s.io/VolumeAttachment",
            Self::ResourceClaim => "resource.k8s.io/ResourceClaim",
            Self::DeviceClass => "resource.k8s.io/DeviceClass",
            Self::ResourceSlice => "resource.k8s.io/ResourceSlice",
        }
    }
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::ADD => "Add",
            Self::DELETE => "Delete",
            Self::NODE_ALLOCATABLE => "UpdateNodeAllocatable",
            Self::NODE_LABEL => "UpdateNodeLabel",
            Self::NODE_TAINT => "UpdateNodeTaint",
            Self::NODE_CONDITION => "UpdateNodeCondition",
            Self::NODE_ANNOTATION => "UpdateNodeAnnotation",
            Self::NODE_DECLARED_FEATURE => "UpdateNodeDeclaredFeature",
            Self::POD_LABEL => "UpdatePodLabel",
            Self::POD_SCALE_DOWN => "UpdatePodScaleDown",
            Self::POD_GATES_ELIMINATED => "UpdatePodSchedulingGatesEliminated",
            Self::POD_TOLERATION => "UpdatePodToleration",
            Self::POD_GENERATED_CLAIM => "UpdatePodGeneratedResourceClaim",
            _ => "Update",
        }
    }
}

/// Whether an event may make a Pod fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// It may: the Pod is to be tried again.
    Queue,
    /// It does not.
    Skip,
}

impl Hint {
    /// What Kubernetes calls it, in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queue => "Queue",
            Self::Skip => "QueueSkip",
        }
    }
}

impl From<bool> for Hint {
    fn from(helps: bool) -> Self {
        if helps { Self::Queue } else { Self::Skip }
    }
}
