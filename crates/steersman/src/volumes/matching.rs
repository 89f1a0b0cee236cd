//! The volume that suits a claim best.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kube::core::{Selector, SelectorExt};
use steersman_values::Quantity;

use super::{claim_class, is_bound_to_claim, volume_class};
use crate::placement;

/// For whom a volume is looked for.
#[derive(Clone, Copy)]
pub enum Search<'a> {
    /// For the controller that binds volumes. If the claim waits for its first consumer, only a volume
    /// counts that is bound to the claim or reserved for it.
    Binder {
        /// Whether the claim waits.
        delayed: bool,
    },
    /// For the scheduler, on this node, and none of the volumes that it has chosen already.
    Node {
        /// Where the volume must be usable.
        node: &'a Node,
        /// The names of those that are chosen.
        chosen: &'a [String],
    },
}

/// The best volume for a claim: one that is bound to it or reserved for it; if there is none, the
/// smallest of those that suit it, the controller preferring those with as few access modes as
/// possible. Of equal ones the first by name.
pub fn find_volume(
    claim: &PersistentVolumeClaim,
    volumes: &[Arc<PersistentVolume>],
    search: Search<'_>,
) -> Option<Arc<PersistentVolume>> {
    let selector = claim.spec.as_ref().and_then(|spec| spec.selector.clone());
    let selector = selector.map(Selector::try_from).transpose().ok()?;
    let wanted = Wanted { claim, request: request(claim), selector };
    let with_modes = |count: Option<usize>| {
        volumes.iter().filter(move |volume| count.is_none_or(|count| modes(volume).len() == count))
    };
    match search {
        Search::Node { node, chosen } => {
            let volumes = with_modes(None).filter(|volume| !chosen.contains(&name(volume)));
            wanted.best(volumes, Some(node), false)
        }
        Search::Binder { delayed } => {
            let mut counts: Vec<usize> = volumes.iter().map(|it| modes(it).len()).collect();
            counts.sort_unstable();
            counts.dedup();
            let mut groups = counts.into_iter();
            groups.find_map(|count| {
                let volumes = with_modes(Some(count));
                wanted.best(volumes.filter(|volume| has_modes(claim, volume)), None, delayed)
            })
        }
    }
}

/// Why a volume that a claim names cannot serve it, in Kubernetes' words.
pub fn unsuitable(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    let word = if volume.metadata.deletion_timestamp.is_some() {
        return Some(format!("the volume is marked for deletion {:?}", name(volume)));
    } else if capacity(volume) < request(claim) {
        "requested PV is too small"
    } else if volume_class(volume) != claim_class(claim) {
        "storageClassName does not match"
    } else if attributes_differ(volume, claim) {
        "volumeAttributesClassName does not match"
    } else if modes_of_volume_differ(volume, claim) {
        "incompatible volumeMode"
    } else if !has_modes(claim, volume) {
        "incompatible accessMode"
    } else {
        return None;
    };
    Some(word.to_owned())
}

/// Whether a volume can be used on a node.
pub fn is_allowed_on(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.is_none_or(|required| placement::matches(required, node))
}

/// How much storage a claim asks for.
pub fn request(claim: &PersistentVolumeClaim) -> Quantity {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    storage(resources.and_then(|resources| resources.requests.as_ref()))
}

/// How much storage a volume has.
pub fn capacity(volume: &PersistentVolume) -> Quantity {
    storage(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()))
}

fn storage(amounts: Option<&BTreeMap<String, Text>>) -> Quantity {
    let text = amounts.and_then(|amounts| amounts.get("storage"));
    text.and_then(|text| Quantity::parse(text.0.trim()).ok()).unwrap_or(Quantity::ZERO)
}

/// What a claim asks for.
struct Wanted<'a> {
    claim: &'a PersistentVolumeClaim,
    request: Quantity,
    selector: Option<Selector>,
}

impl Wanted<'_> {
    fn best<'v>(
        &self,
        volumes: impl Iterator<Item = &'v Arc<PersistentVolume>>,
        node: Option<&Node>,
        delayed: bool,
    ) -> Option<Arc<PersistentVolume>> {
        let mut smallest: Option<&Arc<PersistentVolume>> = None;
        for volume in volumes.filter(|volume| self.could_serve(volume)) {
            let is_allowed = node.is_none_or(|node| is_allowed_on(volume, node));
            if is_bound_to_claim(volume, self.claim) {
                // Reserved elsewhere: then the claim cannot be used here at all.
                return is_allowed.then(|| Arc::clone(volume));
            }
            if !is_allowed || delayed || !self.suits(volume) {
                continue;
            }
            if node.is_some() && !has_modes(self.claim, volume) {
                continue;
            }
            let order = |volume: &PersistentVolume| (capacity(volume), name(volume));
            if smallest.is_none_or(|other| order(volume) < order(other)) {
                smallest = Some(volume);
            }
        }
        smallest.cloned()
    }

    /// What must hold even of a volume that is reserved for the claim.
    fn could_serve(&self, volume: &PersistentVolume) -> bool {
        let is_taken = volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_some())
            && !is_bound_to_claim(volume, self.claim);
        !is_taken
            && capacity(volume) >= self.request
            && !modes_of_volume_differ(volume, self.claim)
            && !attributes_differ(volume, self.claim)
            && volume.metadata.deletion_timestamp.is_none()
    }

    /// What must hold of a volume that is reserved for nobody.
    fn suits(&self, volume: &PersistentVolume) -> bool {
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        let labels = || volume.metadata.labels.clone().unwrap_or_default();
        phase == Some("Available")
            && volume_class(volume) == claim_class(self.claim)
            && self.selector.as_ref().is_none_or(|selector| selector.matches(&labels()))
    }
}

fn name(volume: &PersistentVolume) -> String {
    volume.metadata.name.clone().unwrap_or_default()
}

fn modes(volume: &PersistentVolume) -> &[String] {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default()
}

fn has_modes(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let wanted = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_deref());
    wanted.unwrap_or_default().iter().all(|mode| modes(volume).contains(mode))
}

fn modes_of_volume_differ(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    fn or_default(mode: Option<&String>) -> &str {
        mode.map_or("Filesystem", String::as_str)
    }
    let has = volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_ref());
    let wants = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_ref());
    or_default(has) != or_default(wants)
}

fn attributes_differ(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let has = volume.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    let wants = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    has.unwrap_or_default() != wants.unwrap_or_default()
}
