//! What the tests of plug-ins share: objects from JSON, and one attempt to schedule a Pod among them.

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
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steersman::ObjectKey;

use crate::config::{Configuration, assemble};
use crate::framework::{
    Cycle, CycleState, Failure, Helped, Lister, NodeInfo, Nominator, Plugin, PodInfo, PostFilter,
    Profile, Snapshot,
};

/// An object from its JSON.
pub(crate) fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the JSON describes an object of this kind")
}

/// A Pod with this spec, and whatever else is given.
pub(crate) fn pod(name: &str, change: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"containers": [{"name": "c"}]},
    });
    merge(&mut pod, change);
    object(pod)
}

/// A Pod that asks for this much cpu.
pub(crate) fn asking(name: &str, cpu: &str) -> Pod {
    let resources = json!({"requests": {"cpu": cpu}});
    pod(name, &json!({"spec": {"containers": [{"name": "c", "resources": resources}]}}))
}

/// A node with 8 cpus, 32 GiB and room for ten Pods, changed in this way.
pub(crate) fn node(name: &str, change: &Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "10"}},
    });
    merge(&mut node, change);
    object(node)
}

fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change.clone(),
    }
}

/// A cluster as one attempt sees it.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) nodes: Vec<NodeInfo>,
    pub(crate) nominator: Nominator,
    pub(crate) objects: Objects,
    pub(crate) configuration: Configuration,
    /// Beside Kubernetes' own.
    pub(crate) plugins: Vec<Arc<dyn Plugin>>,
}

/// Other objects.
#[derive(Clone, Default)]
pub(crate) struct Objects {
    pub(crate) claims: Vec<Arc<PersistentVolumeClaim>>,
    pub(crate) classes: Vec<Arc<StorageClass>>,
    pub(crate) volumes: Vec<Arc<PersistentVolume>>,
    pub(crate) csi_drivers: Vec<Arc<CSIDriver>>,
    pub(crate) storage_capacities: Vec<Arc<CSIStorageCapacity>>,
    pub(crate) csi_nodes: Vec<Arc<CSINode>>,
    pub(crate) namespaces: Vec<Arc<Namespace>>,
    pub(crate) budgets: Vec<Arc<PodDisruptionBudget>>,
    pub(crate) services: Vec<Arc<Service>>,
    pub(crate) resource_claims: Vec<Arc<ResourceClaim>>,
    pub(crate) device_classes: Vec<Arc<DeviceClass>>,
    pub(crate) resource_slices: Vec<Arc<ResourceSlice>>,
}

/// What comes of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Node(String),
    Nowhere(String),
}

impl World {
    /// A cluster of these nodes.
    pub(crate) fn of(nodes: impl IntoIterator<Item = Node>) -> Self {
        let nodes = nodes.into_iter().map(|node| NodeInfo::new(Arc::new(node))).collect();
        Self { nodes, ..Self::default() }
    }

    /// Puts a Pod on a node.
    pub(crate) fn put(&mut self, node: &str, pod: &Pod) -> &mut Self {
        let found = self.nodes.iter_mut().find(|it| it.name() == node);
        found.expect("there is such a node").add_pod(Arc::new(PodInfo::of(pod)));
        self
    }

    /// Calls this with an attempt.
    pub(crate) fn attempt<T>(
        &self,
        pod: &Pod,
        try_out: impl FnOnce(&Profile, Cycle<'_>) -> T,
    ) -> T {
        self.attempt_in(&self.profile(), &self.snapshot(), pod, try_out)
    }

    /// The only profile of the configuration.
    pub(crate) fn profile(&self) -> Arc<Profile> {
        let assembled = assemble(&self.configuration, &self.plugins, &Arc::default())
            .expect("the configuration makes sense");
        assembled.profiles.values().next().expect("there is one").clone()
    }

    /// The nodes as they are now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.nodes.iter().cloned().map(Arc::new))
    }

    /// Calls this with an attempt among nodes as they were, or by another profile.
    pub(crate) fn attempt_in<T>(
        &self,
        profile: &Profile,
        snapshot: &Snapshot,
        pod: &Pod,
        try_out: impl FnOnce(&Profile, Cycle<'_>) -> T,
    ) -> T {
        let lister: Arc<dyn Lister> = Arc::new(self.objects.clone());
        let (pod, info) = (Arc::new(pod.clone()), Arc::new(PodInfo::of(pod)));
        let cycle = Cycle {
            pod: &pod,
            info: &info,
            snapshot,
            lister: &lister,
            nominator: &self.nominator,
            state: CycleState::default(),
            profile,
            skipped_filters: 0,
            skipped_scores: 0,
        };
        try_out(profile, cycle)
    }

    /// Where a Pod goes; without what could be done for it if it fits nowhere.
    pub(crate) fn place(&self, pod: &Pod) -> Outcome {
        self.attempt(pod, |profile, mut cycle| match profile.schedule(&mut cycle, &mut 0) {
            Ok(node) => Outcome::Node(node.name().to_owned()),
            Err(Failure::Fit(error)) => Outcome::Nowhere(error.message()),
            Err(Failure::NoNodes) => Outcome::Nowhere("no nodes".to_owned()),
            Err(Failure::Error(error)) => Outcome::Nowhere(error),
        })
    }

    /// Whether a Pod fits somewhere.
    pub(crate) fn fits(&self, pod: &Pod) -> bool {
        matches!(self.place(pod), Outcome::Node(_))
    }

    /// What is done for a Pod that fits nowhere, or what it is told.
    pub(crate) fn help(&self, pod: &Pod) -> Result<PostFilter, String> {
        self.attempt(pod, |profile, mut cycle| match profile.schedule(&mut cycle, &mut 0) {
            Err(Failure::Fit(mut error)) => match profile.post_filter(&cycle, &mut error) {
                Helped::Yes(help) => Ok(help),
                _ => Err(error.message()),
            },
            other => Err(format!("it fits: {:?}", other.map(|node| node.name().to_owned()))),
        })
    }

    /// The scores of all nodes for a Pod, with the plug-ins of the configuration.
    pub(crate) fn scores(&self, pod: &Pod) -> Vec<i64> {
        self.attempt(pod, |profile, mut cycle| {
            let nodes = cycle.snapshot.nodes().to_vec();
            profile.scores(&mut cycle, &nodes).expect("every plug-in gives a score")
        })
    }

    /// The same with one plug-in for scores only, whose weight is 1.
    pub(crate) fn scores_by(mut self, plugin: &str, args: &Value, pod: &Pod) -> Vec<i64> {
        let document = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{
                "plugins": {"score": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": plugin, "weight": 1}],
                }},
                "pluginConfig": [{"name": plugin, "args": args}],
            }],
        });
        self.configuration =
            Configuration::parse(&document.to_string()).expect("it is a configuration");
        self.scores(pod)
    }
}

pub(crate) fn on(node: &str) -> Outcome {
    Outcome::Node(node.to_owned())
}

pub(crate) fn nowhere(message: &str) -> Outcome {
    Outcome::Nowhere(message.to_owned())
}

fn named<K: kube::ResourceExt>(objects: &[Arc<K>], key: &ObjectKey) -> Option<Arc<K>> {
    let is_it = |object: &&Arc<K>| {
        object.name_any() == *key.name && object.namespace().as_deref() == key.namespace.as_deref()
    };
    objects.iter().find(is_it).cloned()
}

impl Lister for Objects {
    fn pod(&self, _: &ObjectKey) -> Option<Arc<Pod>> {
        None
    }

    fn claim(&self, key: &ObjectKey) -> Option<Arc<PersistentVolumeClaim>> {
        named(&self.claims, key)
    }

    fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
        named(&self.classes, &ObjectKey::named(name))
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        named(&self.volumes, &ObjectKey::named(name))
    }

    fn volumes(&self) -> Vec<Arc<PersistentVolume>> {
        self.volumes.clone()
    }

    fn csi_driver(&self, name: &str) -> Option<Arc<CSIDriver>> {
        named(&self.csi_drivers, &ObjectKey::named(name))
    }

    fn storage_capacities(&self) -> Vec<Arc<CSIStorageCapacity>> {
        self.storage_capacities.clone()
    }

    fn csi_node(&self, name: &str) -> Option<Arc<CSINode>> {
        named(&self.csi_nodes, &ObjectKey::named(name))
    }

    fn attachments(&self) -> Vec<Arc<VolumeAttachment>> {
        Vec::new()
    }

    fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        named(&self.namespaces, &ObjectKey::named(name))
    }

    fn namespaces(&self) -> Vec<Arc<Namespace>> {
        self.namespaces.clone()
    }

    fn budgets(&self) -> Vec<Arc<PodDisruptionBudget>> {
        self.budgets.clone()
    }

    fn services(&self, namespace: &str) -> Vec<Arc<Service>> {
        let is_there = |it: &&Arc<Service>| it.metadata.namespace.as_deref() == Some(namespace);
        self.services.iter().filter(is_there).cloned().collect()
    }

    fn resource_claim(&self, key: &ObjectKey) -> Option<Arc<ResourceClaim>> {
        named(&self.resource_claims, key)
    }

    fn resource_claims(&self) -> Vec<Arc<ResourceClaim>> {
        self.resource_claims.clone()
    }

    fn device_class(&self, name: &str) -> Option<Arc<DeviceClass>> {
        named(&self.device_classes, &ObjectKey::named(name))
    }

    fn device_classes(&self) -> Vec<Arc<DeviceClass>> {
        self.device_classes.clone()
    }

    fn resource_slices(&self) -> Vec<Arc<ResourceSlice>> {
        self.resource_slices.clone()
    }

    fn replica_set(&self, _: &ObjectKey) -> Option<Arc<ReplicaSet>> {
        None
    }

    fn stateful_set(&self, _: &ObjectKey) -> Option<Arc<StatefulSet>> {
        None
    }

    fn replication_controller(&self, _: &ObjectKey) -> Option<Arc<ReplicationController>> {
        None
    }
}
