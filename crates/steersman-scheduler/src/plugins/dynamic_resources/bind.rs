//! Writes into claims what was allocated for them, and who may use them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerExtendedResourceRequest, Pod};
use k8s_openapi::api::resource::v1::{
    AllocationResult, ResourceClaim, ResourceClaimConsumerReference,
};
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::{Client, ObjectKey, clock};

use crate::framework::PodInfo;

/// Keeps a claim that is allocated.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// How often somebody else may have written in between.
const ATTEMPTS: usize = 5;

/// Why a claim could not be written.
enum Failure {
    /// Somebody else has written it.
    Conflict(String),
    Final(String),
}

impl Failure {
    fn of(what: &str, claim: &ObjectKey, error: &steersman::Error) -> Self {
        let why = format!("{what} claim {claim}: {error}");
        if error.is_conflict() { Self::Conflict(why) } else { Self::Final(why) }
    }
}

/// Reserves a claim for a Pod, and writes what is allocated for it, if that is new. The claim as it is
/// then, or why it cannot be.
pub(super) async fn bind(
    client: &Client,
    claim: &ResourceClaim,
    allocation: Option<&AllocationResult>,
    pod: &PodInfo,
) -> Result<ResourceClaim, String> {
    let key = ObjectKey::of(claim);
    let mut latest = claim.clone();
    let mut attempt = 1;
    loop {
        match write(client, latest, allocation, pod).await {
            Ok(written) => return Ok(written),
            Err(Failure::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
            Err(Failure::Conflict(why) | Failure::Final(why)) => return Err(why),
        }
        let read = client.get::<ResourceClaim>(&key).await;
        let read = read.map_err(|error| error.to_string())?;
        latest = read.ok_or_else(|| {
            let name = &key.name;
            let why = format!("resourceclaims.resource.k8s.io {name:?} not found");
            format!("get updated claim {key} after conflict: {why}")
        })?;
    }
}

async fn write(
    client: &Client,
    mut claim: ResourceClaim,
    allocation: Option<&AllocationResult>,
    pod: &PodInfo,
) -> Result<ResourceClaim, Failure> {
    let key = ObjectKey::of(&claim);
    let is_allocated = |claim: &ResourceClaim| {
        claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(Failure::Final(format!("claim {key} got deleted in the meantime")));
    }
    if let Some(allocation) = allocation {
        if is_allocated(&claim) {
            let why = format!("claim {key} got allocated elsewhere in the meantime");
            return Err(Failure::Final(why));
        }
        let finalizers = claim.metadata.finalizers.get_or_insert_default();
        if !finalizers.iter().any(|it| it == FINALIZER) {
            finalizers.push(FINALIZER.to_owned());
            let updated = client.update(&claim).await;
            claim = updated.map_err(|error| Failure::of("add finalizer to", &key, &error))?;
        }
        let mut allocation = allocation.clone();
        allocation.allocation_timestamp.get_or_insert_with(clock::now_time);
        claim.status.get_or_insert_default().allocation = Some(allocation);
    }
    if !is_allocated(&claim) {
        let why = format!("claim {key} got deallocated elsewhere in the meantime");
        return Err(Failure::Final(why));
    }
    let status = claim.status.get_or_insert_default();
    status.reserved_for.get_or_insert_default().push(ResourceClaimConsumerReference {
        api_group: None,
        resource: "pods".to_owned(),
        name: pod.key.name.to_string(),
        uid: pod.uid.to_string(),
    });
    let what = match allocation {
        Some(_) => "add allocation and reservation to",
        None => "add reservation to",
    };
    client.update_status(&claim).await.map_err(|error| Failure::of(what, &key, &error))
}

/// Takes a Pod from who may use a claim.
pub(super) async fn unreserve(client: Client, claim: Arc<ResourceClaim>, pod: Arc<str>) {
    let key = ObjectKey::of(&*claim);
    let patch = json!({
        "metadata": {"uid": claim.metadata.uid},
        "status": {"reservedFor": [{"$patch": "delete", "uid": *pod}]},
    });
    let patch = Patch::Strategic(patch);
    if let Err(error) = client.patch_status::<ResourceClaim, _>(&key, &patch).await
        && !error.is_not_found()
    {
        tracing::warn!(claim = %key, %error, "cannot take back the reservation of a claim");
    }
}

/// Takes from a claim what it was given, so that it may be given something else.
pub(super) async fn deallocate(client: Client, mut claim: ResourceClaim) {
    let status = claim.status.get_or_insert_default();
    (status.reserved_for, status.allocation, status.devices) = (None, None, None);
    if let Err(error) = client.update_status(&claim).await
        && !error.is_not_found()
        && !error.is_conflict()
    {
        tracing::warn!(claim = %ObjectKey::of(&claim), %error, "cannot deallocate a claim");
    }
}

/// Says in the status of a Pod by which claim its containers get extended resources.
pub(super) async fn tell(
    client: &Client,
    pod: &PodInfo,
    claim: &ResourceClaim,
    mappings: &[ContainerExtendedResourceRequest],
) -> Result<(), String> {
    let told = json!({"resourceClaimName": claim.metadata.name, "requestMappings": mappings});
    let patch = Patch::Merge(json!({"status": {"extendedResourceClaimStatus": told}}));
    let patched = client.patch_status::<Pod, _>(&pod.key, &patch).await;
    patched
        .map(drop)
        .map_err(|error| format!("update pod {} ExtendedResourceClaimStatus: {error}", pod.key))
}

/// Deletes a claim that the scheduler has made for a Pod, whatever it has been given.
pub(super) async fn delete(client: Client, claim: Arc<ResourceClaim>) {
    let key = ObjectKey::of(&*claim);
    let deleted = async {
        let mut latest = ResourceClaim::clone(&claim);
        for attempt in 1..=ATTEMPTS {
            let finalizers = latest.metadata.finalizers.get_or_insert_default();
            if !finalizers.iter().any(|it| it == FINALIZER) {
                break;
            }
            finalizers.retain(|it| it != FINALIZER);
            match client.update(&latest).await {
                Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
                updated => {
                    updated?;
                    break;
                }
            }
            let Some(read) = client.get::<ResourceClaim>(&key).await? else { break };
            latest = read;
        }
        client.delete::<ResourceClaim>(&key, &DeleteParams::default()).await.map(drop)
    };
    let deleted: steersman::Result<()> = deleted.await;
    if let Err(error) = deleted
        && !error.is_not_found()
    {
        tracing::warn!(claim = %key, %error, "cannot delete a claim for extended resources");
    }
}
