//! The claims of a Pod, by what has to happen to them before the Pod can have a node.
//!
//! Claims that are bound say where the Pod may go. Those that wait for their first consumer are bound
//! by what is decided here: to a volume that is there, or to one that is provisioned for the node.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Node, PersistentVolume, PersistentVolumeClaim, Pod, TopologySelectorTerm,
};
use k8s_openapi::api::storage::v1::{CSIStorageCapacity, StorageClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::object::version_of;
use steersman::volumes::{
    NO_PROVISIONER, PodClaim, SELECTED_NODE, Search, annotation, claim_class, claims_of,
    created_for, find_volume, is_allowed_on, is_fully_bound, request, volume_class, volume_name,
    waits_for_consumer,
};
use steersman_values::Quantity;

use crate::framework::{Labels, Selector};

const NODE_CONFLICT: &str = "node(s) didn't match PersistentVolume's node affinity";
const BIND_CONFLICT: &str = "node(s) didn't find available persistent volumes to bind";
const NO_SPACE: &str = "node(s) did not have enough free storage";
const NO_VOLUME: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/// What there is of storage, in the namespace of a Pod.
pub(crate) trait Storage {
    fn claim(&self, name: &str) -> Option<Arc<PersistentVolumeClaim>>;
    fn class(&self, name: &str) -> Option<Arc<StorageClass>>;
    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>>;
    fn volumes(&self) -> Vec<Arc<PersistentVolume>>;
    /// What is said of the space that a driver has; none if it does not want to be asked.
    fn capacities(&self, driver: &str) -> Option<Vec<Arc<CSIStorageCapacity>>>;
}

/// The claims of a Pod.
#[derive(Debug)]
pub(crate) struct PodVolumes {
    /// The volumes of those that are bound; none where one is gone.
    bound: Vec<Option<Arc<PersistentVolume>>>,
    /// Those that are bound with the Pod, the smallest first.
    delayed: Vec<Delayed>,
    /// Volumes of their classes.
    volumes: Vec<Arc<PersistentVolume>>,
    /// Those of them that were chosen for other Pods, and not written yet.
    taken: Vec<String>,
}

#[derive(Debug)]
struct Delayed {
    claim: Arc<PersistentVolumeClaim>,
    class: Arc<StorageClass>,
    /// Where how much space is for new volumes of the class, if that is known.
    space: Option<Vec<Arc<CSIStorageCapacity>>>,
}

/// What has to be written before a Pod can be bound to a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Volumes that are there, and the claims that get them.
    pub(crate) bindings: Vec<(Arc<PersistentVolume>, Arc<PersistentVolumeClaim>)>,
    /// Claims for which a volume is made for this node.
    pub(crate) provisions: Vec<Arc<PersistentVolumeClaim>>,
}

impl PodVolumes {
    /// The claims of a Pod; nothing if it has none, or why they keep it from every node.
    pub(crate) fn of(pod: &Pod, storage: &dyn Storage) -> Result<Option<Self>, String> {
        let mut found = Vec::new();
        for used in claims_of(pod) {
            found.push(usable(pod, &used, storage)?);
        }
        if found.is_empty() {
            return Ok(None);
        }
        let (bound, unbound): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|claim| is_fully_bound(claim));
        let delayed: Option<Vec<Delayed>> = unbound
            .into_iter()
            .map(|claim| {
                let class = storage.class(claim_class(&claim))?;
                let is_delayed = waits_for_consumer(Some(&class)) && volume_name(&claim).is_empty();
                is_delayed.then(|| {
                    let space = storage.capacities(&class.provisioner).map(|all| {
                        let is_of = |it: &Arc<CSIStorageCapacity>| {
                            Some(&it.storage_class_name) == class.metadata.name.as_ref()
                        };
                        all.into_iter().filter(is_of).collect()
                    });
                    Delayed { claim, class, space }
                })
            })
            .collect();
        let Some(mut delayed) = delayed else {
            return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
        };
        delayed.sort_by_key(|delayed| request(&delayed.claim));
        let of_classes = |volume: &Arc<PersistentVolume>| {
            delayed.iter().any(|it| claim_class(&it.claim) == volume_class(volume))
        };
        let volumes = match delayed.is_empty() {
            true => Vec::new(),
            false => storage.volumes().into_iter().filter(of_classes).collect(),
        };
        let bound = bound.iter().map(|claim| storage.volume(volume_name(claim))).collect();
        Ok(Some(Self { bound, delayed, volumes, taken: Vec::new() }))
    }

    /// The same without volumes that were chosen for other Pods.
    pub(crate) fn without(mut self, taken: Vec<String>) -> Self {
        self.taken = taken;
        self
    }

    /// Whether nothing has to be written.
    pub(crate) fn are_bound(&self) -> bool {
        self.delayed.is_empty()
    }

    /// What has to be written for a node, or why the Pod cannot go there.
    pub(crate) fn on(&self, node: &Node) -> Result<Choice, Vec<Cow<'static, str>>> {
        let is_there = self.bound.iter().all(Option::is_some);
        let is_allowed = self.bound.iter().flatten().all(|volume| is_allowed_on(volume, node));
        let choice = self.choose(node);
        let reasons = [
            (!is_allowed).then_some(NODE_CONFLICT),
            choice.as_ref().err().copied(),
            (!is_there).then_some(NO_VOLUME),
        ];
        let reasons: Vec<_> = reasons.into_iter().flatten().map(Cow::Borrowed).collect();
        match choice {
            Ok(choice) if reasons.is_empty() => Ok(choice),
            _ => Err(reasons),
        }
    }

    /// What has to be written for a node, or why volumes that wait for it cannot be had there.
    fn choose(&self, node: &Node) -> Result<Choice, &'static str> {
        let mut choice = Choice::default();
        let mut chosen = self.taken.clone();
        let mut to_provision = Vec::new();
        for delayed in &self.delayed {
            let claim = &delayed.claim;
            let selected = annotation(&claim.metadata, SELECTED_NODE);
            if let Some(selected) = selected {
                if Some(selected) != node.metadata.name.as_deref() {
                    return Err(BIND_CONFLICT);
                }
            } else if let Some(volume) =
                find_volume(claim, &self.volumes, Search::Node { node, chosen: &chosen })
            {
                chosen.extend(volume.metadata.name.clone());
                choice.bindings.push((volume, Arc::clone(claim)));
                continue;
            }
            to_provision.push(delayed);
        }
        for Delayed { claim, class, space } in to_provision {
            if !provisions(class, node) {
                return Err(BIND_CONFLICT);
            }
            let size = request(claim).value();
            let fits = |it: &Arc<CSIStorageCapacity>| {
                limit(it).is_some_and(|limit| limit >= size) && is_reached(it, node)
            };
            if space.as_ref().is_some_and(|space| !space.iter().any(fits)) {
                return Err(NO_SPACE);
            }
            choice.provisions.push(Arc::clone(claim));
        }
        Ok(choice)
    }
}

/// How large a volume may be that is made where this is said of.
pub(super) fn limit(capacity: &CSIStorageCapacity) -> Option<i64> {
    let limit = capacity.maximum_volume_size.as_ref().or(capacity.capacity.as_ref())?;
    Quantity::parse(&limit.0).ok().map(Quantity::value)
}

fn is_reached(capacity: &CSIStorageCapacity, node: &Node) -> bool {
    static NONE: std::sync::LazyLock<Labels> = std::sync::LazyLock::new(Labels::new);
    let labels = node.metadata.labels.as_ref().unwrap_or(&NONE);
    Selector::of(capacity.node_topology.as_ref()).matches(labels)
}

/// A claim of a Pod, or why the Pod cannot go anywhere with it.
fn usable(
    pod: &Pod,
    PodClaim { name, is_ephemeral }: &PodClaim,
    storage: &dyn Storage,
) -> Result<Arc<PersistentVolumeClaim>, String> {
    let Some(claim) = storage.claim(name) else {
        return Err(match is_ephemeral {
            true => format!(
                "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
            ),
            false => format!("persistentvolumeclaim {name:?} not found"),
        });
    };
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase == Some("Lost") {
        let volume = volume_name(&claim);
        return Err(format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
        ));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    if *is_ephemeral {
        created_for(&claim, pod).map_err(|error| error.to_string())?;
    }
    Ok(claim)
}

/// Whether somebody makes volumes of this class for a node.
fn provisions(class: &StorageClass, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let holds = |term: &TopologySelectorTerm| {
        let mut expressions = term.match_label_expressions.iter().flatten();
        expressions.all(|expression| {
            let value = labels.and_then(|labels| labels.get(&expression.key));
            value.is_some_and(|value| expression.values.contains(value))
        })
    };
    let allowed = class.allowed_topologies.as_deref().unwrap_or_default();
    let is_allowed = allowed.is_empty() || allowed.iter().any(holds);
    !class.provisioner.is_empty() && class.provisioner != NO_PROVISIONER && is_allowed
}

/// What was written before a Pod can be bound to a node, as the server answered.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Volumes, and the claims that get them.
    pub(crate) bindings: Vec<(Arc<PersistentVolume>, Arc<PersistentVolumeClaim>)>,
    /// Claims for which a volume is made.
    pub(crate) provisions: Vec<Arc<PersistentVolumeClaim>>,
}

impl Written {
    /// Whether all volumes are bound, or why they will not be, or not for this node, so that
    /// another must be chosen. What is older than what was written says nothing: caches follow.
    pub(crate) fn is_done(&self, node: &Node, storage: &dyn Storage) -> Result<bool, String> {
        for (written, claim) in &self.bindings {
            let name = name_of(&written.metadata);
            let volume = storage.volume(name).ok_or_else(|| no_volume(name));
            let volume = volume.map_err(|why| format!("failed to check binding: {why}"))?;
            let claim = claim_now(claim, storage);
            let claim = claim.map_err(|why| format!("failed to check binding: {why}"))?;
            if is_older(&volume.metadata, &written.metadata) {
                return Ok(false);
            }
            check_affinity(&volume, node)?;
            let owner = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
            if owner.and_then(|owner| owner.uid.as_deref()).unwrap_or_default().is_empty() {
                return Err(format!("ClaimRef got reset for pv {name:?}"));
            }
            if !is_fully_bound(&claim) {
                return Ok(false);
            }
        }
        for written in &self.provisions {
            let claim = claim_now(written, storage);
            let claim = claim.map_err(|why| format!("failed to check provisioning pvc: {why}"))?;
            if is_older(&claim.metadata, &written.metadata) {
                return Ok(false);
            }
            if annotation(&claim.metadata, SELECTED_NODE) != node.metadata.name.as_deref() {
                return Err(format!("provisioning failed for PVC {:?}", name_of(&claim.metadata)));
            }
            if !volume_name(&claim).is_empty() {
                let Some(volume) = storage.volume(volume_name(&claim)) else { return Ok(false) };
                check_affinity(&volume, node)?;
            }
            if !is_fully_bound(&claim) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn name_of(meta: &ObjectMeta) -> &str {
    meta.name.as_deref().unwrap_or_default()
}

fn no_volume(name: &str) -> String {
    format!("could not find v1.PersistentVolume {name:?}")
}

/// A claim as it is now.
fn claim_now(
    claim: &PersistentVolumeClaim,
    storage: &dyn Storage,
) -> Result<Arc<PersistentVolumeClaim>, String> {
    let name = name_of(&claim.metadata);
    storage.claim(name).ok_or_else(|| {
        let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
        format!("could not find v1.PersistentVolumeClaim \"{namespace}/{name}\"")
    })
}

/// Whether a cache has not heard yet of what was written.
fn is_older(cached: &ObjectMeta, written: &ObjectMeta) -> bool {
    let version = |meta: &ObjectMeta| version_of(meta.resource_version.as_deref());
    version(cached) < version(written)
}

fn check_affinity(volume: &PersistentVolume, node: &Node) -> Result<(), String> {
    if is_allowed_on(volume, node) {
        return Ok(());
    }
    let (volume, node) = (name_of(&volume.metadata), name_of(&node.metadata));
    Err(format!(
        "pv {volume:?} node affinity doesn't match node {node:?}: no matching NodeSelectorTerms"
    ))
}
