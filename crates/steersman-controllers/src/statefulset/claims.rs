//! The claims of a StatefulSet's Pods, and who owns them.
//!
//! A claim is named after its template, the set and the ordinal, so that a Pod that comes back
//! finds it again. Nobody owns it, unless the set's retention policy has it deleted: with the set
//! (then the set owns it), or when its Pod is scaled away (then that Pod does).

use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman::Object;
use steersman::ownership;

use super::identity::{is_wanted, name_of, ordinal_of, spec};

/// Finds a claim of the set's namespace by its name.
pub(super) type Find<'a> = &'a (dyn Fn(&str) -> Option<Arc<PersistentVolumeClaim>> + Send + Sync);

/// The claims that the Pod with this ordinal needs, with the names of their volumes.
pub(super) fn claims_of(set: &StatefulSet, ordinal: i32) -> Vec<(String, PersistentVolumeClaim)> {
    let templates = spec(set).and_then(|spec| spec.volume_claim_templates.as_ref());
    let labels = spec(set).and_then(|spec| spec.selector.match_labels.clone());
    let claim = |template: &PersistentVolumeClaim| {
        let volume = template.metadata.name.clone().unwrap_or_default();
        let mut all = template.metadata.labels.clone().unwrap_or_default();
        all.extend(labels.clone().unwrap_or_default());
        let metadata = ObjectMeta {
            name: Some(format!("{volume}-{}-{ordinal}", name_of(set))),
            namespace: set.metadata.namespace.clone(),
            labels: (!all.is_empty()).then_some(all),
            ..template.metadata.clone()
        };
        let claim = PersistentVolumeClaim { metadata, ..template.clone() };
        (volume, claim)
    };
    templates.into_iter().flatten().map(claim).collect()
}

/// Lets a Pod have the volumes of its claims, in place of others of the same name.
pub(super) fn mount(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let claims = claims_of(set, ordinal);
    let Some(spec) = pod.spec.as_mut().filter(|_| !claims.is_empty()) else { return };
    let mut volumes: Vec<Volume> =
        claims.into_iter().map(|(name, claim)| volume(name, &claim)).collect();
    let others = spec.volumes.take().unwrap_or_default().into_iter();
    let others: Vec<Volume> =
        others.filter(|other| volumes.iter().all(|own| own.name != other.name)).collect();
    volumes.extend(others);
    spec.volumes = Some(volumes);
}

fn volume(name: String, claim: &PersistentVolumeClaim) -> Volume {
    let claim_name = claim.metadata.name.clone().unwrap_or_default();
    let source = PersistentVolumeClaimVolumeSource { claim_name, read_only: None };
    Volume { name, persistent_volume_claim: Some(source), ..Volume::default() }
}

/// Whether a Pod has the volumes of its claims.
pub(super) fn is_mounted(set: &StatefulSet, pod: &Pod, ordinal: i32) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    claims_of(set, ordinal).into_iter().all(|(name, claim)| {
        let source = volumes.iter().find(|volume| volume.name == name);
        let source = source.and_then(|volume| volume.persistent_volume_claim.as_ref());
        source.map(|source| &source.claim_name) == claim.metadata.name.as_ref()
    })
}

/// Who is to delete claims.
#[derive(Clone, Copy)]
struct Policy {
    with_set: bool,
    when_scaled: bool,
}

fn policy(set: &StatefulSet) -> Policy {
    let policy = spec(set).and_then(|s| s.persistent_volume_claim_retention_policy.as_ref());
    let deletes = |word: Option<&String>| word.is_some_and(|word| word == "Delete");
    Policy {
        with_set: deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
        when_scaled: deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
    }
}

/// What becomes of the owners of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ownership {
    /// The owners that it should have, if they differ from those it has.
    pub(super) owners: Option<Vec<OwnerReference>>,
    /// Whether somebody else controls it, so that the policy cannot be kept.
    pub(super) conflict: bool,
}

/// Who should own a claim of this Pod. A claim that refers to an earlier set or Pod of the same
/// name is left to the garbage collector.
pub(super) fn ownership(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> Ownership {
    let policy = policy(set);
    let owners = claim.metadata.owner_references.clone().unwrap_or_default();
    if is_stale(&owners, set) || is_stale(&owners, pod) {
        let conflict = policy.with_set || policy.when_scaled;
        return Ownership { owners: None, conflict };
    }
    let is_ours = |owner: &OwnerReference| refers_to(owner, set) || refers_to(owner, pod);
    let others: Vec<_> = owners.iter().filter(|owner| !is_ours(owner)).cloned().collect();
    let conflict = (policy.with_set || policy.when_scaled)
        && others.iter().any(|owner| owner.controller == Some(true));
    let mut wanted = others;
    if !conflict {
        let scaled = ordinal_of(set, pod).is_none_or(|ordinal| !is_wanted(set, ordinal));
        if scaled && policy.when_scaled {
            wanted.extend(ownership::controller_reference(pod));
        } else if policy.with_set {
            wanted.extend(ownership::controller_reference(set));
        }
    }
    let same = owners.len() == wanted.len()
        && wanted.iter().all(|one| {
            owners.iter().any(|own| own.uid == one.uid && own.controller == one.controller)
        });
    Ownership { owners: (!same).then_some(wanted), conflict }
}

/// Whether a claim belongs to an earlier Pod of this name, and will be deleted with it: then a
/// new Pod must wait for a new one.
pub(super) fn blocks(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> bool {
    let owners = claim.metadata.owner_references.as_deref().unwrap_or_default();
    policy(set).when_scaled && is_stale(owners, pod)
}

fn is_stale<K: Object>(owners: &[OwnerReference], object: &K) -> bool {
    let same = owners.iter().find(|owner| refers_to(owner, object));
    same.is_some_and(|owner| Some(&owner.uid) != object.meta().uid.as_ref())
}

/// Whether this means an object of that kind and name, whichever it was.
fn refers_to<K: Object>(owner: &OwnerReference, object: &K) -> bool {
    let kind = steersman::Kind::<K>::of();
    owner.kind == kind.name()
        && owner.api_version == kind.api_version()
        && Some(&owner.name) == object.meta().name.as_ref()
}
