//! Deletes what a namespace contains, and tells how far that is.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams};
use kube::core::{DynamicObject, ObjectList, PartialObjectMeta, Request};
use serde::de::DeserializeOwned;
use steersman::client::or_whole_objects;
use steersman::{Client, Context, Next, Result, clock};

use super::conditions::Pass;
use super::plan::{self, Leftover};
use crate::discovery::{self, ServedResource, reason};

/// Empties one namespace as far as possible, and lets it go once it is empty.
pub(super) async fn reconcile(namespace: Arc<Namespace>, ctx: Context<Namespace>) -> Result<Next> {
    if !plan::is_held(&namespace) {
        return Ok(Next::Settled);
    }
    let pass = empty(&namespace, ctx.live()).await?;
    let finished = match report(&namespace, &pass, ctx.live()).await {
        Ok(namespace) if pass.is_complete() => {
            ctx.live().replace_subresource("finalize", &plan::released(&namespace)).await
        }
        reported => reported,
    };
    match finished {
        Err(error) if error.is_not_found() => Ok(Next::Settled),
        Ok(_) if pass.is_complete() => Ok(Next::Settled),
        Err(error) if !error.is_conflict() => Err(error),
        // Something is left, or somebody has changed the namespace meanwhile.
        _ => Ok(Next::After(plan::look_again(&namespace, clock::now()))),
    }
}

/// Writes the conditions if they have changed; returns the namespace as it is then.
async fn report(namespace: &Namespace, pass: &Pass, client: &Client) -> Result<Namespace> {
    let current = namespace.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut namespace = namespace.clone();
    match pass.conditions(current, &clock::now_time()) {
        None => Ok(namespace),
        Some(conditions) => {
            namespace.status.get_or_insert_default().conditions = Some(conditions);
            client.update_status(&namespace).await
        }
    }
}

/// Deletes all content, Pods first and alone.
async fn empty(namespace: &Namespace, client: &Client) -> Result<Pass> {
    let served = discovery::served_resources(client, &[]).await?;
    let content = plan::content(served.resources);
    let mut pass = Pass { undiscovered: served.failures, ..Pass::default() };
    for resource in content.pods {
        delete_content(&resource, namespace, client, &mut pass).await;
    }
    pass.waits_for_pods = !pass.remaining.is_empty();
    if pass.waits_for_pods {
        return Ok(pass); // they keep what they use
    }
    for resource in content.rest {
        delete_content(&resource, namespace, client, &mut pass).await;
    }
    Ok(pass)
}

/// Deletes every object of a resource in a namespace, and notes what is left or went wrong.
async fn delete_content(
    resource: &ServedResource,
    namespace: &Namespace,
    client: &Client,
    pass: &mut Pass,
) {
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let collection =
        Collection { resource, request: Request::new(resource.path(Some(name))), client };
    let deleted_at = namespace.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    match collection.delete(deleted_at.unwrap_or_else(clock::now)).await {
        Ok(None) => {}
        Ok(Some(leftover)) => pass.note(resource, name, leftover),
        Err(error) => pass.failures.push(reason(&error)),
    }
}

/// The objects of a resource in a namespace.
struct Collection<'a> {
    resource: &'a ServedResource,
    request: Request,
    client: &'a Client,
}

impl Collection<'_> {
    /// Deletes every object; tells what is left of a namespace that was deleted at this time.
    async fn delete(&self, deleted_at: Timestamp) -> Result<Option<Leftover>, kube::Error> {
        let pods = plan::is_pods(self.resource);
        let (found, expected) = match pods {
            true => {
                let pods: Vec<Pod> =
                    self.list_of(self.request.list(&ListParams::default())).await?;
                let expected = plan::end_is_expected(&pods, deleted_at, clock::now());
                (pods.into_iter().map(|pod| pod.metadata).collect(), expected)
            }
            false => (self.list().await?, false),
        };
        if found.is_empty() {
            return Ok(None);
        }
        self.delete_all(&found).await?;
        Ok(Leftover::of(&self.list().await?, expected))
    }

    async fn delete_all(&self, found: &[ObjectMeta]) -> Result<(), kube::Error> {
        let params = DeleteParams::background();
        if self.resource.has_verbs(&["deletecollection"]) {
            let request = self.request.delete_collection(&params, &ListParams::default());
            self.client.kube().request_text(request.map_err(kube::Error::BuildRequest)?).await?;
            return Ok(());
        }
        for name in found.iter().filter_map(|object| object.name.as_deref()) {
            let request = self.request.delete(name, &params).map_err(kube::Error::BuildRequest)?;
            match self.client.kube().request_text(request).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                deleted => drop(deleted?),
            }
        }
        Ok(())
    }

    async fn list(&self) -> Result<Vec<ObjectMeta>, kube::Error> {
        let request = self.request.list_metadata(&ListParams::default()).map(or_whole_objects);
        let objects: Vec<PartialObjectMeta<DynamicObject>> = self.list_of(request).await?;
        Ok(objects.into_iter().map(|object| object.metadata).collect())
    }

    /// What is in the collection. A resource that is no longer served has nothing.
    async fn list_of<T: DeserializeOwned + Clone>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Vec<T>, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        match self.client.kube().request::<ObjectList<T>>(request).await {
            Ok(list) => Ok(list.items),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
