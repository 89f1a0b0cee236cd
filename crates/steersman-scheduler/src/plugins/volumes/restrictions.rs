//! Some volumes can be used by one Pod only, or by several only if all just read.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Pod, Volume};

use super::{claim_key, is_claim_of, named_claims};
use crate::framework::{
    Action, ClusterEvent, Cycle, Hint, Interest, NodeInfo, Object, Plugin, PodInfo, Points,
    PreFilter, Refusal, Resource, is_exclusive,
};

const READ_WRITE_ONCE_POD: &str = "ReadWriteOncePod";

/// Looks whether others use the same volumes.
pub(crate) struct VolumeRestrictions;

/// The claims of the Pod that only one Pod may use, and how often others do.
#[derive(Clone, Debug)]
struct Exclusive {
    claims: BTreeSet<String>,
    uses: i64,
}

impl Plugin for VolumeRestrictions {
    fn name(&self) -> &'static str {
        "VolumeRestrictions"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::FILTER
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::AssignedPod, Action::DELETE),
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::PersistentVolumeClaim, Action::ADD),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        match &event.object {
            Object::Claim(_) => is_claim_of(pod, &event.object).into(),
            Object::Pod(change) => change.old.as_ref().is_some_and(|gone| frees(gone, pod)).into(),
            _ => Hint::Queue,
        }
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        let mut claims = BTreeSet::new();
        if !cycle.info.claims.is_empty() {
            for name in named_claims(cycle.pod) {
                let claim = cycle.lister.claim(&claim_key(cycle.info, name));
                let Some(claim) = claim else {
                    let why = format!("persistentvolumeclaim {name:?} not found");
                    return Err(Refusal::unresolvable(why));
                };
                let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
                if modes.is_some_and(|modes| modes.iter().any(|it| it == READ_WRITE_ONCE_POD)) {
                    claims.insert(name.to_owned());
                }
            }
        }
        let uses = match claims.is_empty() {
            true => 0,
            false => cycle
                .snapshot
                .nodes()
                .iter()
                .flat_map(|node| &node.pods)
                .map(|pod| uses(&claims, cycle.info, pod))
                .sum(),
        };
        if uses == 0 && cycle.info.exclusive_volumes.is_empty() {
            return Ok(PreFilter::Skip);
        }
        cycle.state.insert(Exclusive { claims, uses });
        Ok(PreFilter::All)
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, _: &NodeInfo) {
        count(cycle, pod, 1);
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, _: &NodeInfo) {
        count(cycle, pod, -1);
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let wanted = &cycle.info.exclusive_volumes;
        let mut others = node.pods.iter().flat_map(|pod| pod.exclusive_volumes.iter());
        if others.any(|used| wanted.iter().any(|volume| conflict(volume, used))) {
            return Err(Refusal::unschedulable("node(s) had no available disk"));
        }
        match cycle.state.get::<Exclusive>() {
            Some(exclusive) if exclusive.uses > 0 => Err(Refusal::unschedulable(
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access \
                 mode already in-use by another pod",
            )),
            _ => Ok(()),
        }
    }
}

fn count(cycle: &mut Cycle<'_>, pod: &PodInfo, by: i64) {
    let own = std::sync::Arc::clone(cycle.info);
    if let Some(exclusive) = cycle.state.get_mut::<Exclusive>() {
        exclusive.uses += by * uses(&exclusive.claims, &own, pod);
    }
}

/// How many of these claims of a Pod another uses.
fn uses(claims: &BTreeSet<String>, own: &PodInfo, other: &PodInfo) -> i64 {
    if other.claims.is_empty() || other.namespace() != own.namespace() {
        return 0;
    }
    let shared = other.claims.iter().filter(|claim| claims.contains(*claim));
    shared.count().try_into().unwrap_or(i64::MAX)
}

/// Whether a Pod that is gone used what another wants.
fn frees(gone: &PodInfo, pod: &Pod) -> bool {
    if Some(gone.namespace()) != pod.metadata.namespace.as_deref() {
        return false;
    }
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    let mut wanted = volumes.filter(|volume| is_exclusive(volume));
    wanted.any(|volume| gone.exclusive_volumes.iter().any(|used| conflict(volume, used)))
        || named_claims(pod).any(|claim| gone.claims.iter().any(|used| used == claim))
}

/// Whether two volumes are one that cannot be used twice at the same time.
fn conflict(a: &Volume, b: &Volume) -> bool {
    let both_read = |a: Option<bool>, b: Option<bool>| a == Some(true) && b == Some(true);
    if let (Some(a), Some(b)) = (&a.gce_persistent_disk, &b.gce_persistent_disk)
        && a.pd_name == b.pd_name
        && !both_read(a.read_only, b.read_only)
    {
        return true;
    }
    if let (Some(a), Some(b)) = (&a.aws_elastic_block_store, &b.aws_elastic_block_store)
        && a.volume_id == b.volume_id
    {
        return true;
    }
    if let (Some(a), Some(b)) = (&a.iscsi, &b.iscsi)
        && a.iqn == b.iqn
        && !both_read(a.read_only, b.read_only)
    {
        return true;
    }
    let (Some(a), Some(b)) = (&a.rbd, &b.rbd) else { return false };
    a.monitors.iter().any(|monitor| b.monitors.contains(monitor))
        && a.pool == b.pool
        && a.image == b.image
        && !both_read(a.read_only, b.read_only)
}
