//! What is left of a StorageVersion: objects in, a step out.

use k8s_openapi::api::apiserverinternal::v1alpha1::{StorageVersion, StorageVersionCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use steersman::ObjectKey;

/// The label of Leases by which servers say that they are there, and which servers they are.
pub(super) const COMPONENT: &str = "apiserver.kubernetes.io/identity";
pub(super) const SERVER: &str = "kube-apiserver";
/// Where those Leases are.
const NAMESPACE: &str = "kube-system";
const ALL_EQUAL: &str = "AllEncodingVersionsEqual";

/// What happens to a StorageVersion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Keep,
    /// Some of its servers are gone.
    Update(Box<StorageVersion>),
    /// All of them are.
    Delete,
}

/// The servers that have said how they encode objects.
pub(super) fn servers(version: &StorageVersion) -> impl Iterator<Item = &str> {
    let status = version.status.as_ref();
    let versions = status.and_then(|it| it.storage_versions.as_ref()).into_iter().flatten();
    versions.map(|it| it.api_server_id.as_str())
}

/// The Lease by which a server says that it is there.
pub(super) fn identity(server: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, server)
}

/// Whether a Lease is one by which a server says that it is there.
pub(super) fn is_identity(lease: &ObjectMeta) -> bool {
    let labels = lease.labels.as_ref();
    labels.and_then(|labels| labels.get(COMPONENT)).is_some_and(|it| it == SERVER)
}

/// What happens to a StorageVersion when these servers are there.
pub(super) fn step(version: &StorageVersion, is_there: impl Fn(&str) -> bool, now: &Time) -> Step {
    let mut left = version.clone();
    let status = left.status.get_or_insert_default();
    let said = status.storage_versions.get_or_insert_default();
    let count = said.len();
    said.retain(|it| is_there(&it.api_server_id));
    match said.len() {
        same if same == count => Step::Keep,
        0 => Step::Delete,
        _ => {
            agree(&mut left, now);
            Step::Update(Box::new(left))
        }
    }
}

/// Says in which version all servers encode, if they agree.
fn agree(version: &mut StorageVersion, now: &Time) {
    let generation = version.metadata.generation;
    let Some(status) = version.status.as_mut() else { return };
    let mut said = status.storage_versions.iter().flatten().map(|it| &it.encoding_version);
    let first = said.next().cloned();
    let common = first.filter(|first| said.all(|other| other == first));
    let before = std::mem::replace(&mut status.common_encoding_version, common.clone());
    let is_another = matches!((&before, &common), (Some(before), Some(now)) if before != now);
    let (value, reason, message) = match common {
        Some(_) => ("True", "CommonEncodingVersionSet", "Common encoding version set"),
        None => ("False", "CommonEncodingVersionUnset", "Common encoding version unset"),
    };
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions.iter().position(|it| it.type_ == ALL_EQUAL);
    let condition = match known {
        Some(place) => &mut conditions[place],
        None => {
            conditions.push(StorageVersionCondition::default());
            let last = conditions.len() - 1;
            &mut conditions[last]
        }
    };
    if condition.status != value || is_another {
        condition.last_transition_time = Some(now.clone());
    }
    condition.type_ = ALL_EQUAL.to_owned();
    condition.status = value.to_owned();
    condition.reason = reason.to_owned();
    condition.message = message.to_owned();
    condition.observed_generation = generation;
}
