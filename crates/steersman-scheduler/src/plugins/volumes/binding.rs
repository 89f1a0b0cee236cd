//! A Pod goes only where its volumes are, or can be made, and is bound when they are.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, CSIStorageCapacity, StorageClass};
use steersman::volumes::{SELECTED_NODE, bound_to_claim};
use steersman::{Client, ObjectKey};
use tokio::time::{Instant, timeout_at};

use super::pod_volumes::{self, Choice, PodVolumes, Storage, Written};
use super::{has_no_claims, is_claim_of};
use crate::framework::{
    Action, Before, Binding, ClusterEvent, Code, Cycle, CycleState, Hint, Interest, Lister,
    NodeInfo, Object, Plugin, PodInfo, Points, PreFilter, Refusal, Resource,
};
use crate::plugins::handle::Handle;

/// Finds volumes for Pods, and binds them.
pub(crate) struct VolumeBinding {
    /// How long binding may take.
    timeout: Duration,
    /// Knows which volumes were chosen for others.
    handle: Arc<Handle>,
}

/// The claims of the Pod.
#[derive(Clone)]
struct Volumes(Arc<PodVolumes>);

/// The node that was chosen, and what has to be written for it.
#[derive(Clone)]
struct Chosen {
    node: Arc<Node>,
    choice: Arc<Choice>,
}

/// Storage in the namespace of a Pod.
struct InNamespace<'a> {
    lister: &'a dyn Lister,
    namespace: &'a str,
}

impl Storage for InNamespace<'_> {
    fn claim(&self, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.lister.claim(&ObjectKey::namespaced(self.namespace, name))
    }

    fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.lister.class(name)
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.lister.volume(name)
    }

    fn volumes(&self) -> Vec<Arc<PersistentVolume>> {
        self.lister.volumes()
    }

    fn capacities(&self, driver: &str) -> Option<Vec<Arc<CSIStorageCapacity>>> {
        let driver = self.lister.csi_driver(driver)?;
        has_capacity(&driver).then(|| self.lister.storage_capacities())
    }
}

impl Plugin for VolumeBinding {
    fn name(&self) -> &'static str {
        "VolumeBinding"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::FILTER | Points::RESERVE | Points::PRE_BIND
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::StorageClass, Action::ALL),
                Interest::new(Resource::PersistentVolumeClaim, Action::ALL),
                Interest::new(Resource::PersistentVolume, Action::ALL),
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_LABEL),
                Interest::new(Resource::CsiDriver, Action::UPDATE),
                Interest::new(Resource::CsiStorageCapacity, Action::ADD),
                Interest::new(Resource::CsiStorageCapacity, Action::UPDATE),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        match &event.object {
            Object::Claim(_) => is_claim_of(pod, &event.object).into(),
            Object::CsiDriver(Before { old: Some(old), new: Some(new) }) => {
                (has_capacity(old) && !has_capacity(new)).into()
            }
            Object::StorageCapacity(Before { old: Some(old), new: Some(new) }) => {
                (pod_volumes::limit(new) > pod_volumes::limit(old)).into()
            }
            _ => Hint::Queue,
        }
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        if has_no_claims(cycle) {
            return Ok(PreFilter::Skip);
        }
        let storage = InNamespace { lister: &**cycle.lister, namespace: cycle.info.namespace() };
        let volumes = PodVolumes::of(cycle.pod, &storage).map_err(Refusal::unresolvable)?;
        let Some(volumes) = volumes else { return Ok(PreFilter::Skip) };
        let taken = self.handle.chosen_volumes.of_others(&cycle.info.uid);
        cycle.state.insert(Volumes(Arc::new(volumes.without(taken))));
        Ok(PreFilter::All)
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let Some(Volumes(volumes)) = cycle.state.get() else { return Ok(()) };
        volumes.on(&node.node).map(drop).map_err(|reasons| {
            let code = Code::UnschedulableAndUnresolvable;
            Refusal::all(code, reasons).unwrap_or_else(|| Refusal::unresolvable("no volumes"))
        })
    }

    fn reserve(&self, cycle: &mut Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let Some(Volumes(volumes)) = cycle.state.get() else { return Ok(()) };
        if volumes.are_bound() {
            return Ok(());
        }
        let choice = volumes.on(&node.node).unwrap_or_default();
        let bindings = choice.bindings.iter();
        let names = bindings.map(|(volume, _)| volume.metadata.name.clone().unwrap_or_default());
        self.handle.chosen_volumes.choose(&cycle.info.uid, names);
        let node = Arc::clone(&node.node);
        cycle.state.insert(Chosen { node, choice: Arc::new(choice) });
        Ok(())
    }

    fn unreserve(&self, state: &CycleState, pod: &PodInfo, _: &str) {
        if state.get::<Chosen>().is_some() {
            self.handle.chosen_volumes.forget(&pod.uid);
        }
    }

    fn pre_bind<'a>(&'a self, binding: &'a Binding) -> Option<BoxFuture<'a, Result<(), Refusal>>> {
        let chosen: &Chosen = binding.state.get()?;
        Some(Box::pin(async move {
            let bound = self.bind(binding, chosen).await;
            self.handle.chosen_volumes.forget(&binding.info.uid);
            if let Some(metrics) = self.handle.metrics().filter(|_| bound.is_err()) {
                metrics.work.volumes_failed();
            }
            bound.map_err(Refusal::error)
        }))
    }
}

impl VolumeBinding {
    /// Binding may take this long until another node is looked for.
    pub(crate) fn new(timeout: Duration, handle: Arc<Handle>) -> Self {
        Self { timeout, handle }
    }

    /// Writes what was chosen, and waits until the controller that binds volumes has done the rest.
    async fn bind(&self, binding: &Binding, chosen: &Chosen) -> Result<(), String> {
        let mut changes = binding.storage_changes.clone();
        let written = write(&binding.client, chosen, &binding.node).await;
        let written = written.map_err(|error| error.to_string())?;
        let deadline = Instant::now() + self.timeout;
        let namespace = binding.info.namespace();
        let storage = InNamespace { lister: &*binding.lister, namespace };
        let bound = async {
            loop {
                changes.borrow_and_update();
                is_there(binding)?;
                if written.is_done(&chosen.node, &storage)? {
                    return Ok(());
                }
                changes.changed().await.map_err(|_| "the scheduler stops".to_owned())?;
            }
        };
        let bound = timeout_at(deadline, bound).await;
        let bound = bound.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        bound.map_err(|why| format!("binding volumes: {why}"))
    }
}

/// Nothing needs to be bound for a Pod that is gone.
fn is_there(binding: &Binding) -> Result<(), String> {
    let pod = binding.lister.pod(&binding.info.key);
    match pod.is_some_and(|pod| pod.metadata.uid.as_deref() == Some(&*binding.info.uid)) {
        true => Ok(()),
        false => {
            let name = &binding.info.key.name;
            Err(format!("pod does not exist any more: pod {name:?} not found"))
        }
    }
}

/// Whether a driver wants to be asked how much space it has.
fn has_capacity(driver: &CSIDriver) -> bool {
    driver.spec.storage_capacity == Some(true)
}

/// Writes what was chosen for a node: volumes are reserved for their claims, and claims say for which
/// node a volume is to be made.
async fn write(client: &Client, chosen: &Chosen, node: &str) -> steersman::Result<Written> {
    let Choice { bindings, provisions } = &*chosen.choice;
    let mut written = Written::default();
    for (volume, claim) in bindings {
        let bound = match bound_to_claim(volume, claim) {
            Some(bound) => Arc::new(client.update(&bound).await?),
            None => Arc::clone(volume),
        };
        written.bindings.push((bound, Arc::clone(claim)));
    }
    for claim in provisions {
        let mut selected = PersistentVolumeClaim::clone(claim);
        let annotations = selected.metadata.annotations.get_or_insert_default();
        annotations.insert(SELECTED_NODE.to_owned(), node.to_owned());
        let selected = match selected == **claim {
            true => Arc::clone(claim),
            false => Arc::new(client.update(&selected).await?),
        };
        written.provisions.push(selected);
    }
    Ok(written)
}
