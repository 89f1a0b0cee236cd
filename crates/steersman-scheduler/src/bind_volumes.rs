//! Binds the volumes of a Pod: reads and writes claims and volumes.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use steersman::cache::Cache;
use steersman::volumes::{SELECTED_NODE, bound_to_claim, claims_of};
use steersman::{Context, ObjectKey, Result};
use tokio::time::Instant;

use crate::pod_volumes::{self, Choice, PodVolumes, Progress, Storage};
use crate::volume_waits::Chosen;

/// How long the volumes of a Pod may take until another node is looked for, as in Kubernetes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(600);

/// What the caches know of storage, for one Pod.
struct Caches {
    namespace: Arc<str>,
    claims: Cache<PersistentVolumeClaim>,
    classes: Cache<StorageClass>,
    volumes: Cache<PersistentVolume>,
}

impl Caches {
    /// What they know for the Pod being scheduled.
    fn of(ctx: &Context<Pod>) -> Result<Self> {
        Ok(Self {
            namespace: ctx.key().namespace.clone().unwrap_or_default(),
            claims: ctx.cache()?,
            classes: ctx.cache()?,
            volumes: ctx.cache()?,
        })
    }
}

impl Storage for Caches {
    fn claim(&self, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.claims.get(&ObjectKey::namespaced(Arc::clone(&self.namespace), name))
    }

    fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.classes.get(&ObjectKey::from(name))
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.volumes.get(&ObjectKey::from(name))
    }

    fn volumes(&self) -> Vec<Arc<PersistentVolume>> {
        self.volumes.list()
    }
}

/// The claims of a Pod; nothing if it has none, or why they keep it from every node.
pub(crate) fn volumes_of(
    pod: &Pod,
    ctx: &Context<Pod>,
) -> Result<std::result::Result<Option<PodVolumes>, String>> {
    if claims_of(pod).next().is_none() {
        return Ok(Ok(None)); // as most have none, nothing is looked up for them
    }
    Ok(PodVolumes::of(pod, &Caches::of(ctx)?))
}

/// The keys of the claims that a Pod uses.
pub(crate) fn claim_keys(pod: &Pod) -> Vec<ObjectKey> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    claims_of(pod).map(|claim| ObjectKey::namespaced(namespace, claim.name)).collect()
}

/// How far the volumes of a Pod are for the node that was chosen.
pub(crate) fn progress(pod: &Pod, chosen: &Chosen, ctx: &Context<Pod>) -> Result<Progress> {
    let node = ctx.cache::<Node>()?.get(&ObjectKey::from(chosen.node.as_str()));
    let Some(node) = node.filter(|_| Instant::now() < chosen.until) else {
        return Ok(Progress::Failed);
    };
    Ok(pod_volumes::progress(pod, &node, &Caches::of(ctx)?))
}

/// Writes what was chosen for a node: volumes are reserved for their claims, and claims say for which
/// node a volume is to be made. The controller that binds volumes does the rest.
pub(crate) async fn write(node: &str, volumes: &PodVolumes, ctx: &Context<Pod>) -> Result<Chosen> {
    let of_node = ctx.cache::<Node>()?.get(&ObjectKey::from(node));
    let choice = of_node.and_then(|node| volumes.on(&node).ok());
    let Choice { bindings, provisions } = choice.unwrap_or_default();
    for (volume, claim) in bindings {
        if let Some(bound) = bound_to_claim(&volume, &claim) {
            ctx.update(&bound).await?;
        }
    }
    for claim in provisions {
        let mut selected = PersistentVolumeClaim::clone(&claim);
        let annotations = selected.metadata.annotations.get_or_insert_default();
        annotations.insert(SELECTED_NODE.to_owned(), node.to_owned());
        if selected != *claim {
            ctx.update(&selected).await?;
        }
    }
    Ok(Chosen { node: node.to_owned(), until: Instant::now() + TIMEOUT })
}
