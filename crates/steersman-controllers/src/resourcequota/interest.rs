//! Which quotas count what, and since when they are as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ResourceQuota;
use steersman::ObjectKey;
use tokio::time::Instant;

use super::plan;
use crate::discovery::ResourceName;

/// What is known of all quotas.
#[derive(Debug, Default)]
pub(super) struct Interest {
    quotas: BTreeMap<ObjectKey, Known>,
}

/// What is known of one quota.
#[derive(Debug)]
struct Known {
    resources: BTreeSet<ResourceName>,
    version: Option<String>,
    /// When this version was first seen.
    since: Instant,
    /// Since when it is wanted that less is used than it says.
    lower_since: Option<Instant>,
}

impl Interest {
    /// Takes in a quota as it is now.
    pub(super) fn observe(&mut self, quota: &ResourceQuota, now: Instant) {
        let key = ObjectKey::of(quota);
        let version = quota.metadata.resource_version.clone();
        let before = self.quotas.remove(&key);
        let since = before.as_ref().filter(|it| it.version == version).map_or(now, |it| it.since);
        let lower_since = before.and_then(|it| it.lower_since);
        let resources = plan::resources(quota);
        self.quotas.insert(key, Known { resources, version, since, lower_since });
    }

    /// Forgets a quota.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.quotas.remove(key);
    }

    /// Whether a quota counts objects of a resource.
    pub(super) fn has(&self, resource: &ResourceName) -> bool {
        self.quotas.values().any(|it| it.resources.contains(resource))
    }

    /// The quotas that count objects of a resource, in one namespace or in all.
    pub(super) fn of(&self, resource: &ResourceName, namespace: Option<&str>) -> Vec<ObjectKey> {
        let there =
            |key: &ObjectKey| namespace.is_none_or(|it| key.namespace.as_deref() == Some(it));
        let quotas = self.quotas.iter().filter(|(key, _)| there(key));
        let asking = quotas.filter(|(_, it)| it.resources.contains(resource));
        asking.map(|(key, _)| key.clone()).collect()
    }

    /// How long to wait before a quota may say that less is used than it does.
    ///
    /// A quota is charged before the object is written that it is charged for. Whoever counts in
    /// between finds a charge for nothing; were it taken off, another object could be admitted in
    /// that place. So a quota must have been left alone for a while, unless that never happens.
    pub(super) fn wait_to_lower(&mut self, key: &ObjectKey, now: Instant) -> Option<Duration> {
        let known = self.quotas.get_mut(key)?;
        let wanted = now.duration_since(*known.lower_since.get_or_insert(now));
        let rest = plan::REST.checked_sub(now.duration_since(known.since));
        rest.filter(|rest| !rest.is_zero() && wanted < plan::PATIENCE)
    }

    /// Takes note that a quota says what is used.
    pub(super) fn is_counted(&mut self, key: &ObjectKey) {
        if let Some(known) = self.quotas.get_mut(key) {
            known.lower_since = None;
        }
    }
}
