//! A member's Lease, as it is written and read.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use super::ring::View;
use crate::clock;

/// Which group a Lease belongs to.
pub(super) const GROUP_LABEL: &str = "steersman.dev/shard-group";
/// Which controller's keys the group shares.
pub(super) const CONTROLLER_LABEL: &str = "steersman.dev/shard-controller";
/// The view by which the member claims keys.
const VIEW_ANNOTATION: &str = "steersman.dev/shard-view";

/// Whose Lease it is.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) name: Arc<str>,
    pub(super) identity: String,
    pub(super) group: String,
    pub(super) controller: String,
    pub(super) lease_duration: Duration,
}

impl Holder {
    /// Selects the Leases of the whole group.
    pub(super) fn selector(&self) -> String {
        format!("{GROUP_LABEL}={},{CONTROLLER_LABEL}={}", self.group, self.controller)
    }

    /// The Lease of one who begins, or begins again.
    pub(super) fn joins(&self, before: Option<Lease>) -> Lease {
        let mut lease = before.unwrap_or_default();
        lease.metadata.name = Some(self.name.to_string());
        let labels = lease.metadata.labels.get_or_insert_default();
        labels.insert(GROUP_LABEL.into(), self.group.clone());
        labels.insert(CONTROLLER_LABEL.into(), self.controller.clone());
        let spec = lease.spec.get_or_insert_default();
        spec.acquire_time = Some(clock::now_micro_time());
        spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |n| n.saturating_add(1)));
        lease
    }

    /// The Lease, renewed with this claim.
    pub(super) fn renews(&self, mut lease: Lease, claim: &View) -> Lease {
        let spec = lease.spec.get_or_insert_default();
        let seconds = self.lease_duration.as_millis().div_ceil(1000);
        spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
        spec.holder_identity = Some(self.identity.clone());
        spec.renew_time = Some(clock::now_micro_time());
        set_claim(&mut lease, claim);
        lease
    }
}

/// The Lease as its holder gives it back: it claims nothing.
pub(super) fn released(mut lease: Lease) -> Lease {
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = None;
    spec.renew_time = Some(clock::now_micro_time());
    set_claim(&mut lease, &View::default());
    lease
}

fn set_claim(lease: &mut Lease, claim: &View) {
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.insert(VIEW_ANNOTATION.into(), claim.text());
}

/// What a Lease says about its member.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sighting {
    pub(super) name: Arc<str>,
    pub(super) version: Option<String>,
    pub(super) spec: LeaseSpec,
    pub(super) claim: View,
}

impl Sighting {
    pub(super) fn of(lease: &Lease) -> Self {
        let annotation = lease.metadata.annotations.as_ref();
        let claim = annotation.and_then(|all| all.get(VIEW_ANNOTATION));
        Self {
            name: lease.metadata.name.as_deref().unwrap_or_default().into(),
            version: lease.metadata.resource_version.clone(),
            spec: lease.spec.clone().unwrap_or_default(),
            claim: View::parse(claim.map_or("", String::as_str)),
        }
    }

    /// Whether its member has left.
    pub(super) fn is_released(&self) -> bool {
        self.spec.holder_identity.as_deref().is_none_or(str::is_empty)
    }

    pub(super) fn duration(&self) -> Duration {
        let seconds = self.spec.lease_duration_seconds.unwrap_or(0);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }
}
