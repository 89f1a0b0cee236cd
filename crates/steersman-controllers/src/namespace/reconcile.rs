//! Deletes what a namespace contains.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams};
use kube::core::{DynamicObject, ObjectList, PartialObjectMeta, Request};
use steersman::{Client, Context, Next, Result, clock};

use super::plan;
use crate::discovery::{self, ServedResource};

/// Empties one namespace as far as possible, and lets it go once it is empty.
pub(super) async fn reconcile(namespace: Arc<Namespace>, ctx: Context<Namespace>) -> Result<Next> {
    if !plan::is_held(&namespace) {
        return Ok(Next::Settled);
    }
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let served = discovery::served_resources(ctx.live(), &[]).await?;
    let content = plan::content(served.resources);
    let mut empty = delete_all(&content.pods, name, ctx.live()).await?;
    if empty {
        empty = delete_all(&content.rest, name, ctx.live()).await?;
    }
    if !(empty && served.complete) {
        // What could not be discovered may still have objects here.
        return Ok(Next::After(plan::look_again(&namespace, clock::now())));
    }
    let finalized = ctx.live().replace_subresource("finalize", &plan::released(&namespace)).await;
    match finalized {
        Err(error) if error.is_not_found() => Ok(Next::Settled),
        finalized => finalized.map(|_| Next::Settled),
    }
}

/// Deletes every object of these resources in a namespace; true if none is left.
async fn delete_all(
    resources: &[ServedResource],
    namespace: &str,
    client: &Client,
) -> Result<bool> {
    let mut empty = true;
    for resource in resources {
        empty &= delete_collection(resource, namespace, client).await?;
    }
    Ok(empty)
}

/// Deletes every object of a resource in a namespace; true if none is left.
async fn delete_collection(
    resource: &ServedResource,
    namespace: &str,
    client: &Client,
) -> Result<bool> {
    let collection = Request::new(resource.path(Some(namespace)));
    let names = list(&collection, client).await?;
    if names.is_empty() {
        return Ok(true);
    }
    let params = DeleteParams::background();
    if resource.has_verbs(&["deletecollection"]) {
        let request = collection.delete_collection(&params, &ListParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        client.kube().request_text(request).await?;
    } else {
        for name in names {
            delete_one(&collection, &name, &params, client).await?;
        }
    }
    Ok(list(&collection, client).await?.is_empty())
}

async fn delete_one(
    collection: &Request,
    name: &str,
    params: &DeleteParams,
    client: &Client,
) -> Result<()> {
    let request = collection.delete(name, params).map_err(kube::Error::BuildRequest)?;
    match client.kube().request_text(request).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        deleted => Ok(deleted.map(drop)?),
    }
}

/// The names of the objects in a collection. A resource that is no longer served has none.
async fn list(collection: &Request, client: &Client) -> Result<Vec<String>> {
    let request = collection.list_metadata(&ListParams::default());
    let request = request.map_err(kube::Error::BuildRequest)?;
    let listed = client.kube().request::<ObjectList<PartialObjectMeta<DynamicObject>>>(request);
    match listed.await {
        Ok(list) => Ok(list.items.into_iter().filter_map(|object| object.metadata.name).collect()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.code == 405 => {
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}
