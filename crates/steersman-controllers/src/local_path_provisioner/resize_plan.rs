//! How a volume grows: first itself, then, where a Pod uses it, the file system on it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition,
    PersistentVolumeClaimStatus, Pod,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use steersman::volumes::{PROVISIONED_BY, annotation, capacity, request};
use steersman_rules::quantity::Quantity;

use super::PROVISIONER;

const STORAGE: &str = "storage";
const RESIZING: &str = "Resizing";
const FILE_SYSTEM_RESIZE_PENDING: &str = "FileSystemResizePending";

/// What happens next.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing, or a Pod must use the claim first.
    Settled,
    /// The claim says that its volume is being resized.
    Begin(Box<PersistentVolumeClaimStatus>),
    /// The volume is larger.
    Grow(Box<PersistentVolume>),
    /// The claim says that the file system has to follow.
    Await(Box<PersistentVolumeClaimStatus>),
    /// The file system has followed.
    Finish(Box<PersistentVolumeClaimStatus>),
}

/// Whether a claim that is bound asks for more than it has.
pub(super) fn wants_more(claim: &PersistentVolumeClaim) -> bool {
    let status = claim.status.as_ref();
    let is_bound = status.is_some_and(|status| status.phase.as_deref() == Some("Bound"));
    is_bound && request(claim) > has(status)
}

/// Whether a Pod runs on a node, which then lets the file systems of its volumes grow.
pub(super) fn runs(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
}

/// The next step of a claim and its volume.
pub(super) fn plan(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    is_in_use: bool,
    now: Time,
) -> Step {
    let is_ours = annotation(&volume.metadata, PROVISIONED_BY) == Some(PROVISIONER);
    let claimant = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let is_bound = claimant.is_some_and(|claimant| claimant.uid == claim.metadata.uid);
    if !is_ours || !is_bound || !wants_more(claim) {
        return Step::Settled;
    }
    let status = claim.status.clone().unwrap_or_default();
    let state = status.allocated_resource_statuses.as_ref().and_then(|all| all.get(STORAGE));
    let state = state.map(String::as_str).unwrap_or_default();
    if capacity(volume) < request(claim) {
        let is_begun =
            state == "ControllerResizeInProgress" && status.allocated_resources == asked(claim);
        if !is_begun {
            return Step::Begin(Box::new(begun(claim, status, now)));
        }
        let mut larger = volume.clone();
        larger.spec.get_or_insert_default().capacity = asked(claim);
        return Step::Grow(Box::new(larger));
    }
    if state != "NodeResizePending" {
        return Step::Await(Box::new(pending(claim, status, now)));
    }
    match is_in_use {
        true => Step::Finish(Box::new(finished(volume, status))),
        false => Step::Settled,
    }
}

fn has(status: Option<&PersistentVolumeClaimStatus>) -> Quantity {
    let capacity = status.and_then(|status| status.capacity.as_ref()?.get(STORAGE));
    capacity.and_then(|text| Quantity::parse(text.0.trim()).ok()).unwrap_or(Quantity::ZERO)
}

/// How much storage a claim asks for, as its status and volumes say it.
fn asked(claim: &PersistentVolumeClaim) -> Option<BTreeMap<String, Text>> {
    let resources = claim.spec.as_ref()?.resources.as_ref()?;
    let storage = resources.requests.as_ref()?.get(STORAGE)?.clone();
    Some([(STORAGE.to_owned(), storage)].into())
}

fn begun(
    claim: &PersistentVolumeClaim,
    status: PersistentVolumeClaimStatus,
    now: Time,
) -> PersistentVolumeClaimStatus {
    let mut status = with_state(status, Some("ControllerResizeInProgress"));
    status.allocated_resources = asked(claim);
    with_condition(status, Some((RESIZING, None, now)))
}

fn pending(
    claim: &PersistentVolumeClaim,
    status: PersistentVolumeClaimStatus,
    now: Time,
) -> PersistentVolumeClaimStatus {
    let message =
        "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
    let mut status = with_state(status, Some("NodeResizePending"));
    status.allocated_resources = asked(claim);
    with_condition(status, Some((FILE_SYSTEM_RESIZE_PENDING, Some(message), now)))
}

fn finished(
    volume: &PersistentVolume,
    status: PersistentVolumeClaimStatus,
) -> PersistentVolumeClaimStatus {
    let mut status = with_condition(with_state(status, None), None);
    status.capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.clone());
    status
}

fn with_state(
    mut status: PersistentVolumeClaimStatus,
    state: Option<&str>,
) -> PersistentVolumeClaimStatus {
    let mut states = status.allocated_resource_statuses.take().unwrap_or_default();
    match state {
        Some(state) => drop(states.insert(STORAGE.to_owned(), state.to_owned())),
        None => drop(states.remove(STORAGE)),
    }
    status.allocated_resource_statuses = Some(states).filter(|states| !states.is_empty());
    status
}

/// Of the conditions of resizing, only this one.
fn with_condition(
    mut status: PersistentVolumeClaimStatus,
    condition: Option<(&str, Option<&str>, Time)>,
) -> PersistentVolumeClaimStatus {
    let mut conditions = status.conditions.take().unwrap_or_default();
    conditions.retain(|it| ![RESIZING, FILE_SYSTEM_RESIZE_PENDING].contains(&it.type_.as_str()));
    conditions.extend(condition.map(|(type_, message, now)| PersistentVolumeClaimCondition {
        type_: type_.to_owned(),
        status: "True".into(),
        last_transition_time: Some(now),
        message: message.map(str::to_owned),
        ..PersistentVolumeClaimCondition::default()
    }));
    status.conditions = Some(conditions).filter(|conditions| !conditions.is_empty());
    status
}
