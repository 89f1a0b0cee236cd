//! What plug-ins read of the cluster beside Pods and nodes.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::storage::v1::{
    CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment,
};
use steersman::ObjectKey;

/// Objects as the caches have them.
pub trait Lister: Send + Sync {
    /// A Pod.
    fn pod(&self, key: &ObjectKey) -> Option<Arc<Pod>>;
    /// A claim for a volume.
    fn claim(&self, key: &ObjectKey) -> Option<Arc<PersistentVolumeClaim>>;
    /// A class of volumes.
    fn class(&self, name: &str) -> Option<Arc<StorageClass>>;
    /// A volume.
    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>>;
    /// All volumes.
    fn volumes(&self) -> Vec<Arc<PersistentVolume>>;
    /// A driver of volumes.
    fn csi_driver(&self, name: &str) -> Option<Arc<CSIDriver>>;
    /// How much space drivers of volumes have where.
    fn storage_capacities(&self) -> Vec<Arc<CSIStorageCapacity>>;
    /// What drivers of volumes offer on a node.
    fn csi_node(&self, name: &str) -> Option<Arc<CSINode>>;
    /// Which volumes are attached where.
    fn attachments(&self) -> Vec<Arc<VolumeAttachment>>;
    /// A namespace.
    fn namespace(&self, name: &str) -> Option<Arc<Namespace>>;
    /// All namespaces.
    fn namespaces(&self) -> Vec<Arc<Namespace>>;
    /// How many Pods may be missing.
    fn budgets(&self) -> Vec<Arc<PodDisruptionBudget>>;
    /// The Services of a namespace.
    fn services(&self, namespace: &str) -> Vec<Arc<Service>>;
    /// A claim for devices.
    fn resource_claim(&self, key: &ObjectKey) -> Option<Arc<ResourceClaim>>;
    /// All claims for devices.
    fn resource_claims(&self) -> Vec<Arc<ResourceClaim>>;
    /// A class of devices.
    fn device_class(&self, name: &str) -> Option<Arc<DeviceClass>>;
    /// All classes of devices.
    fn device_classes(&self) -> Vec<Arc<DeviceClass>>;
    /// All devices that drivers offer.
    fn resource_slices(&self) -> Vec<Arc<ResourceSlice>>;
    /// A ReplicaSet.
    fn replica_set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>>;
    /// A StatefulSet.
    fn stateful_set(&self, key: &ObjectKey) -> Option<Arc<StatefulSet>>;
    /// A ReplicationController.
    fn replication_controller(&self, key: &ObjectKey) -> Option<Arc<ReplicationController>>;
}
