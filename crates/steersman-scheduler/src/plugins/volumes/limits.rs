//! A driver of volumes can attach only so many to a node.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PersistentVolume, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use steersman::volumes::{claim_class, volume_name};

use super::{claim_key, has_no_claims, is_claim_of};
use crate::framework::{
    Action, ClusterEvent, Cycle, Hint, Interest, Lister, NodeInfo, Object, Plugin, PodInfo, Points,
    PreFilter, Refusal, Resource,
};

/// Counts volumes.
pub(crate) struct NodeVolumeLimits;

/// A volume, or a claim whose volume is yet to be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Attached {
    driver: String,
    handle: String,
}

/// The volumes of the Pod.
#[derive(Clone, Debug)]
struct Wanted(BTreeSet<Attached>);

impl Plugin for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        "NodeVolumeLimits"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::FILTER
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::CsiNode, Action::ADD),
                Interest::new(Resource::CsiNode, Action::UPDATE),
                Interest::new(Resource::AssignedPod, Action::DELETE),
                Interest::new(Resource::PersistentVolumeClaim, Action::ADD),
                Interest::new(Resource::VolumeAttachment, Action::DELETE),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        match &event.object {
            Object::Claim(_) => is_claim_of(pod, &event.object).into(),
            Object::Pod(change) => {
                change.old.as_ref().is_some_and(|gone| !gone.claims.is_empty()).into()
            }
            Object::CsiNode(change) => match (&change.old, &change.new) {
                (Some(old), Some(new)) => {
                    let before = limits(old);
                    let rises = |(driver, limit): (&str, i32)| {
                        limit > before.get(driver).copied().unwrap_or_default()
                    };
                    limits(new).into_iter().any(rises).into()
                }
                _ => Hint::Queue,
            },
            _ => Hint::Queue,
        }
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        if has_no_claims(cycle) {
            return Ok(PreFilter::Skip);
        }
        let wanted = attached(cycle.info, &**cycle.lister);
        if wanted.is_empty() {
            return Ok(PreFilter::Skip);
        }
        cycle.state.insert(Wanted(wanted));
        Ok(PreFilter::All)
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let Some(Wanted(wanted)) = cycle.state.get() else { return Ok(()) };
        let csi_node = cycle.lister.csi_node(node.name());
        let limits = csi_node.as_deref().map(limits).unwrap_or_default();
        if limits.is_empty() {
            return Ok(());
        }
        let there = on_node(node, &**cycle.lister);
        let of_driver = |driver: &str| {
            let counts = |it: &&Attached| it.driver == driver;
            there.union(wanted).filter(counts).count()
        };
        let is_new = |driver: &str| wanted.difference(&there).any(|it| it.driver == driver);
        let exceeds = |(driver, limit): (&&str, &i32)| {
            is_new(driver) && of_driver(driver) > usize::try_from(*limit).unwrap_or_default()
        };
        match limits.iter().any(exceeds) {
            true => Err(Refusal::unschedulable("node(s) exceed max volume count")),
            false => Ok(()),
        }
    }
}

/// How many volumes each driver can attach to a node, where it says.
fn limits(node: &CSINode) -> BTreeMap<&str, i32> {
    let drivers = node.spec.drivers.iter();
    let limit = drivers.filter_map(|driver| {
        let count = driver.allocatable.as_ref()?.count?;
        Some((driver.name.as_str(), count))
    });
    limit.collect()
}

/// What is attached to a node, or will be for its Pods.
fn on_node(node: &NodeInfo, lister: &dyn Lister) -> BTreeSet<Attached> {
    let mut there = BTreeSet::new();
    for pod in node.pods.iter().filter(|pod| !pod.claims.is_empty()) {
        there.extend(attached(pod, lister));
    }
    for attachment in lister.attachments() {
        if attachment.spec.node_name != node.name() {
            continue;
        }
        let volume = attachment.spec.source.persistent_volume_name.as_deref();
        let volume = volume.and_then(|name| lister.volume(name));
        there.extend(volume.and_then(|volume| of_volume(&volume)));
    }
    there
}

/// The volumes of a Pod's claims that a driver has to attach.
fn attached(pod: &PodInfo, lister: &dyn Lister) -> BTreeSet<Attached> {
    let of_claim = |name: &String| {
        let claim = lister.claim(&claim_key(pod, name))?;
        let name_of_volume = Some(volume_name(&claim)).filter(|name| !name.is_empty());
        if let Some(volume) = name_of_volume.and_then(|name| lister.volume(name)) {
            return of_volume(&volume);
        }
        // It is yet to be made, or to be seen.
        let class = lister.class(claim_class(&claim))?;
        let handle = format!("{}/{name}", pod.namespace());
        Some(Attached { driver: class.provisioner.clone(), handle })
    };
    pod.claims.iter().filter_map(of_claim).collect()
}

fn of_volume(volume: &PersistentVolume) -> Option<Attached> {
    let csi = volume.spec.as_ref()?.csi.as_ref()?;
    Some(Attached { driver: csi.driver.clone(), handle: csi.volume_handle.clone() })
}
