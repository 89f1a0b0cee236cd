//! A Pod goes only to the zone and region that the labels of its volumes name.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolume, Pod};
use steersman::volumes::{claim_class, volume_name, waits_for_consumer};

use super::{claim_key, is_claim_of, named_claims};
use crate::framework::{
    Action, ClusterEvent, Cycle, Hint, Interest, NodeInfo, Object, Plugin, Points, PreFilter,
    Refusal, Resource,
};

/// Old names of labels, and their new ones.
const LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// Compares the labels of volumes and nodes.
pub(crate) struct VolumeZone;

/// What the volumes of the Pod ask of a node.
#[derive(Clone, Debug)]
struct Wanted(Vec<Topology>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Topology {
    key: &'static str,
    new_key: &'static str,
    values: BTreeSet<String>,
}

impl Plugin for VolumeZone {
    fn name(&self) -> &'static str {
        "VolumeZone"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::FILTER
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::StorageClass, Action::ADD),
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_LABEL),
                Interest::new(Resource::PersistentVolumeClaim, Action::ADD),
                Interest::new(Resource::PersistentVolumeClaim, Action::UPDATE),
                Interest::new(Resource::PersistentVolume, Action::ADD),
                Interest::new(Resource::PersistentVolume, Action::UPDATE),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        match &event.object {
            Object::Claim(_) => is_claim_of(pod, &event.object).into(),
            Object::Class(change) => waits_for_consumer(change.new.as_deref()).into(),
            Object::Volume(change) => {
                let of = |volume: &PersistentVolume| topologies(volume).collect::<Vec<_>>();
                (change.old.as_deref().map(of) != change.new.as_deref().map(of)).into()
            }
            _ => Hint::Queue,
        }
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        if super::has_no_claims(cycle) {
            return Ok(PreFilter::Skip);
        }
        let mut wanted = Vec::new();
        for name in named_claims(cycle.pod) {
            if let Some(volume) = volume_of(name, cycle)? {
                wanted.extend(topologies(&volume));
            }
        }
        if wanted.is_empty() {
            return Ok(PreFilter::Skip);
        }
        cycle.state.insert(Wanted(wanted));
        Ok(PreFilter::All)
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let Some(Wanted(wanted)) = cycle.state.get() else { return Ok(()) };
        let labels = node.labels();
        if !LABELS.iter().any(|(key, _)| labels.contains_key(*key)) {
            return Ok(()); // it says nothing about where it is
        }
        let fits = |topology: &Topology| {
            let value = labels.get(topology.key).or_else(|| labels.get(topology.new_key));
            value.is_some_and(|value| topology.values.contains(value))
        };
        match wanted.iter().all(fits) {
            true => Ok(()),
            false => Err(Refusal::unresolvable("node(s) had no available volume zone")),
        }
    }
}

/// The volume of a claim; none if it is only made for the node of the Pod.
fn volume_of(
    claim: &str,
    cycle: &Cycle<'_>,
) -> Result<Option<std::sync::Arc<PersistentVolume>>, Refusal> {
    let missing =
        |kind: &str, name: &str| Refusal::unresolvable(format!("{kind} {name:?} not found"));
    let Some(found) = cycle.lister.claim(&claim_key(cycle.info, claim)) else {
        return Err(missing("persistentvolumeclaim", claim));
    };
    let volume = volume_name(&found);
    if !volume.is_empty() {
        let found = cycle.lister.volume(volume);
        return found.map(Some).ok_or_else(|| missing("persistentvolume", volume));
    }
    let class = claim_class(&found);
    if class.is_empty() {
        let why = "PersistentVolumeClaim had no pv name and storageClass name";
        return Err(Refusal::unresolvable(why));
    }
    let Some(class) = cycle.lister.class(class) else {
        return Err(missing("storageclass.storage.k8s.io", class));
    };
    match waits_for_consumer(Some(&class)) {
        true => Ok(None),
        false => Err(Refusal::unresolvable("PersistentVolume had no name")),
    }
}

fn topologies(volume: &PersistentVolume) -> impl Iterator<Item = Topology> {
    let labels = volume.metadata.labels.as_ref();
    LABELS.into_iter().filter_map(move |(key, new_key)| {
        let value = labels?.get(key)?;
        let values: BTreeSet<String> = value.split("__").map(|it| it.trim().to_owned()).collect();
        (!values.contains("")).then_some(Topology { key, new_key, values })
    })
}
