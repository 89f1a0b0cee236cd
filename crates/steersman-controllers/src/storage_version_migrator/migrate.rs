//! One look at one migration whose version is noted: writes all older objects again, each by an apply
//! that changes nothing, and says how that ended.
//!
//! Kubernetes reads which objects there are from the garbage collector's cache, once that is at the
//! version that was noted; here the server is asked, which is never behind.

use std::sync::Arc;

use k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::json;
use steersman::{Context, Next, Reconciler, Result, clock};

use super::NAME;
use super::plan::{End, checkpoint, ended, is_terminal, target};
use crate::discovery::{ServedResource, reason, served_resource};

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// Writes objects again.
pub(super) struct Migrator;

impl Reconciler<StorageVersionMigration> for Migrator {
    async fn reconcile(
        &self,
        migration: Arc<StorageVersionMigration>,
        ctx: Context<StorageVersionMigration>,
    ) -> Result<Next> {
        let Ok(until) = checkpoint(&migration).parse::<u64>() else {
            return Ok(Next::Settled); // nobody has noted it yet
        };
        if is_terminal(&migration) {
            return Ok(Next::Settled);
        }
        let what = target(&migration);
        let end = match served_resource(ctx.live(), &what.group, &what.resource).await? {
            None => failure("unable to obtain GVR from discovery"),
            Some(resource) => match rewrite_all(&resource, until, ctx.live().kube()).await {
                Ok(()) => End::Success,
                Err(error) if is_passing(&error) => return Err(error.into()),
                Err(error) => failure(&reason(&error)),
            },
        };
        ctx.update_status(&ended(&migration, end, &clock::now_time())).await?;
        Ok(Next::Settled)
    }
}

fn failure(error: &str) -> End {
    End::Failure(format!("migration encountered unhandled error: {error}"))
}

/// Writes all objects of a resource again that are as old as this version.
async fn rewrite_all(
    resource: &ServedResource,
    until: u64,
    client: &kube::Client,
) -> Result<(), kube::Error> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource.api);
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let listed = all.list_metadata(&page).await?;
        for object in &listed.items {
            let version = object.metadata.resource_version.as_deref().unwrap_or_default();
            if version.parse::<u64>().is_ok_and(|version| version <= until) {
                rewrite(resource, object, client).await?;
            }
        }
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// Writes one object again. With its uid and version, so that one that was written meanwhile, or is gone,
/// is a conflict: then there is nothing to do.
async fn rewrite(
    resource: &ServedResource,
    object: &PartialObjectMeta<DynamicObject>,
    client: &kube::Client,
) -> Result<(), kube::Error> {
    let metadata = &object.metadata;
    let api: Api<DynamicObject> = match &metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource.api),
        None => Api::all_with(client.clone(), &resource.api),
    };
    let patch = Patch::Apply(json!({
        "apiVersion": resource.api.api_version, "kind": resource.api.kind,
        "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
    }));
    let name = metadata.name.as_deref().unwrap_or_default();
    match api.patch_metadata(name, &PatchParams::apply(NAME), &patch).await {
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(()),
        written => written.map(drop),
    }
}

/// Whether it may go well the next time: the server is busy, or was not reached.
fn is_passing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 429 | 500 | 503 | 504),
        _ => true,
    }
}
