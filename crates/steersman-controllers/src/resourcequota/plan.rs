//! What a quota counts, and what it says when it was counted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::json;
use steersman_rules::quota::{Amounts, Quota, counted_by};

use super::tally::Tally;
use crate::discovery::ResourceName;

/// How often every quota is counted, whatever happens.
pub(super) const RESYNC: Duration = Duration::from_secs(5 * 60);
/// How soon it is looked again for a resource that a quota limits and the server does not serve.
pub(super) const UNSERVED: Duration = Duration::from_secs(30);
/// How long a quota must have been left alone before less is said to be used.
pub(super) const REST: Duration = Duration::from_millis(500);
/// How long that is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Amounts as typed objects have them.
type List = BTreeMap<String, Quantity>;

/// What a quota limits.
fn hard(quota: &ResourceQuota) -> Option<&List> {
    quota.spec.as_ref()?.hard.as_ref()
}

fn amounts(list: Option<&List>) -> Amounts {
    Amounts::of(&json!(list))
}

/// Whether two states of a quota limit different things.
pub(super) fn limits_differ(one: &ResourceQuota, other: &ResourceQuota) -> bool {
    amounts(hard(one)) != amounts(hard(other))
}

/// The resources whose objects a quota counts.
pub(super) fn resources(quota: &ResourceQuota) -> BTreeSet<ResourceName> {
    let names = hard(quota).into_iter().flat_map(BTreeMap::keys);
    let resources = names.flat_map(|name| counted_by(name));
    resources.map(|(group, plural)| (group.to_owned(), plural.to_owned())).collect()
}

/// What a quota uses by these tallies. Of what none of them counts it says what it said before.
pub(super) fn status(
    quota: &ResourceQuota,
    tallies: &[&Tally],
    now: Timestamp,
) -> ResourceQuotaStatus {
    let namespace = quota.metadata.namespace.as_deref().unwrap_or_default();
    let scopes = Quota::of(&json!(quota));
    let mut usage = Amounts::default();
    for tally in tallies {
        usage.add(&tally.usage(namespace, &scopes, now));
    }
    let before = quota.status.as_ref().and_then(|status| status.used.as_ref());
    let mut used = List::new();
    for name in hard(quota).into_iter().flat_map(BTreeMap::keys) {
        let said = before.and_then(|before| before.get(name)).cloned();
        let counted = tallies.iter().any(|tally| tally.counts(name)).then(|| {
            let amount = usage.get(name).unwrap_or(steersman_rules::quantity::Quantity::ZERO);
            Quantity(amount.to_string())
        });
        used.extend(counted.or(said).map(|amount| (name.clone(), amount)));
    }
    ResourceQuotaStatus { hard: Some(hard(quota).cloned().unwrap_or_default()), used: Some(used) }
}

/// Whether a quota says something else than this.
pub(super) fn differs(quota: &ResourceQuota, status: &ResourceQuotaStatus) -> bool {
    let said = quota.status.as_ref();
    let said_hard = said.and_then(|said| said.hard.as_ref());
    let said_used = said.and_then(|said| said.used.as_ref());
    let unsaid = |list: Option<&List>| list.is_none();
    let nothing = hard(quota).is_none_or(BTreeMap::is_empty);
    ((unsaid(said_hard) || unsaid(said_used)) && !nothing)
        || amounts(said_hard) != amounts(status.hard.as_ref())
        || amounts(said_used) != amounts(status.used.as_ref())
}

/// Whether less of anything is used than a quota says.
pub(super) fn lowers(quota: &ResourceQuota, status: &ResourceQuotaStatus) -> bool {
    let said = amounts(quota.status.as_ref().and_then(|status| status.used.as_ref()));
    let lower = amounts(status.used.as_ref());
    said.exceeding(&lower).next().is_some()
}
