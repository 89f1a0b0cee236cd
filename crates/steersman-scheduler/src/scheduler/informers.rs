//! The kinds that the scheduler follows, and those that it only reads.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::storage::v1::{
    CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment,
};
use steersman::ObjectKey;
use steersman::caches::Caches;
use steersman::informer::Informer;

use crate::framework::Lister;

/// Informers of everything that matters for where a Pod goes. They are shared with whoever else
/// follows a kind.
pub(super) struct Informers {
    pub(super) pods: Informer<Pod>,
    pub(super) nodes: Informer<Node>,
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) volumes: Informer<PersistentVolume>,
    pub(super) classes: Informer<StorageClass>,
    pub(super) csi_drivers: Informer<CSIDriver>,
    pub(super) storage_capacities: Informer<CSIStorageCapacity>,
    pub(super) csi_nodes: Informer<CSINode>,
    pub(super) attachments: Informer<VolumeAttachment>,
    pub(super) resource_claims: Informer<ResourceClaim>,
    pub(super) device_classes: Informer<DeviceClass>,
    pub(super) resource_slices: Informer<ResourceSlice>,
    pub(super) namespaces: Informer<Namespace>,
    budgets: Informer<PodDisruptionBudget>,
    services: Informer<Service>,
    replica_sets: Informer<ReplicaSet>,
    stateful_sets: Informer<StatefulSet>,
    replication_controllers: Informer<ReplicationController>,
}

impl Informers {
    pub(super) fn start(caches: &Caches) -> Self {
        Self {
            pods: caches.informer(),
            nodes: caches.informer(),
            claims: caches.informer(),
            volumes: caches.informer(),
            classes: caches.informer(),
            csi_drivers: caches.informer(),
            storage_capacities: caches.informer(),
            csi_nodes: caches.informer(),
            attachments: caches.informer(),
            resource_claims: caches.informer(),
            device_classes: caches.informer(),
            resource_slices: caches.informer(),
            namespaces: caches.informer(),
            budgets: caches.informer(),
            services: caches.informer(),
            replica_sets: caches.informer(),
            stateful_sets: caches.informer(),
            replication_controllers: caches.informer(),
        }
    }

    /// Waits until those are complete that are only read.
    pub(super) async fn synced(&self) {
        self.budgets.cache().synced().await;
        self.services.cache().synced().await;
        self.replica_sets.cache().synced().await;
        self.stateful_sets.cache().synced().await;
        self.replication_controllers.cache().synced().await;
    }
}

impl Lister for Informers {
    fn pod(&self, key: &ObjectKey) -> Option<Arc<Pod>> {
        self.pods.cache().get(key)
    }

    fn claim(&self, key: &ObjectKey) -> Option<Arc<PersistentVolumeClaim>> {
        self.claims.cache().get(key)
    }

    fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.classes.cache().get(&ObjectKey::named(name))
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.volumes.cache().get(&ObjectKey::named(name))
    }

    fn volumes(&self) -> Vec<Arc<PersistentVolume>> {
        self.volumes.cache().list()
    }

    fn csi_driver(&self, name: &str) -> Option<Arc<CSIDriver>> {
        self.csi_drivers.cache().get(&ObjectKey::named(name))
    }

    fn storage_capacities(&self) -> Vec<Arc<CSIStorageCapacity>> {
        self.storage_capacities.cache().list()
    }

    fn csi_node(&self, name: &str) -> Option<Arc<CSINode>> {
        self.csi_nodes.cache().get(&ObjectKey::named(name))
    }

    fn attachments(&self) -> Vec<Arc<VolumeAttachment>> {
        self.attachments.cache().list()
    }

    fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        self.namespaces.cache().get(&ObjectKey::named(name))
    }

    fn namespaces(&self) -> Vec<Arc<Namespace>> {
        self.namespaces.cache().list()
    }

    fn budgets(&self) -> Vec<Arc<PodDisruptionBudget>> {
        self.budgets.cache().list()
    }

    fn services(&self, namespace: &str) -> Vec<Arc<Service>> {
        self.services.cache().list_namespace(namespace)
    }

    fn resource_claim(&self, key: &ObjectKey) -> Option<Arc<ResourceClaim>> {
        self.resource_claims.cache().get(key)
    }

    fn resource_claims(&self) -> Vec<Arc<ResourceClaim>> {
        self.resource_claims.cache().list()
    }

    fn device_class(&self, name: &str) -> Option<Arc<DeviceClass>> {
        self.device_classes.cache().get(&ObjectKey::named(name))
    }

    fn device_classes(&self) -> Vec<Arc<DeviceClass>> {
        self.device_classes.cache().list()
    }

    fn resource_slices(&self) -> Vec<Arc<ResourceSlice>> {
        self.resource_slices.cache().list()
    }

    fn replica_set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>> {
        self.replica_sets.cache().get(key)
    }

    fn stateful_set(&self, key: &ObjectKey) -> Option<Arc<StatefulSet>> {
        self.stateful_sets.cache().get(key)
    }

    fn replication_controller(&self, key: &ObjectKey) -> Option<Arc<ReplicationController>> {
        self.replication_controllers.cache().get(key)
    }
}
