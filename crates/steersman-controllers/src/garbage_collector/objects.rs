//! Objects of any kind on the server, as far as the collector needs them: their metadata.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::{ApiResource, DynamicResourceScope, Request, Status};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use steersman::client::or_whole_objects;
use steersman::{Client, ObjectKey, Result};

use crate::discovery::ServedResource;

/// The metadata of an object as far as anybody here reads it: what it is called, whose it is and
/// how far its deletion is. Managed fields, which are most of what is sent, are passed over without
/// being built: every change of every object comes through here.
#[derive(Debug)]
pub(super) struct Metadata(ObjectMeta);

impl Metadata {
    /// The metadata itself.
    pub(super) fn into_inner(self) -> ObjectMeta {
        self.0
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Outer {
            metadata: Read,
        }
        /// `null` is as good as absent in every field.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Read {
            name: Option<String>,
            namespace: Option<String>,
            uid: Option<String>,
            resource_version: Option<String>,
            deletion_timestamp: Option<Time>,
            finalizers: Option<Vec<String>>,
            owner_references: Option<Vec<OwnerReference>>,
        }
        let read = Outer::deserialize(deserializer)?.metadata;
        Ok(Self(ObjectMeta {
            name: read.name,
            namespace: read.namespace,
            uid: read.uid,
            resource_version: read.resource_version,
            deletion_timestamp: read.deletion_timestamp,
            finalizers: read.finalizers,
            owner_references: read.owner_references,
            ..ObjectMeta::default()
        }))
    }
}

impl Resource for Metadata {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(api: &ApiResource) -> Cow<'_, str> {
        api.kind.as_str().into()
    }

    fn group(api: &ApiResource) -> Cow<'_, str> {
        api.group.as_str().into()
    }

    fn version(api: &ApiResource) -> Cow<'_, str> {
        api.version.as_str().into()
    }

    fn plural(api: &ApiResource) -> Cow<'_, str> {
        api.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0
    }
}

/// Which resource a kind is, for owner references, which name kinds.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    /// By group and kind: a reference may name another version than the one that is used.
    by_kind: Mutex<HashMap<(String, String), Arc<ServedResource>>>,
}

impl Catalogue {
    /// Replaces the content by what the server serves now.
    pub(super) fn replace(&self, served: &[ServedResource]) {
        let readable = served.iter().filter(|resource| resource.has_verbs(&["get"]));
        let by_kind = readable.map(|resource| {
            let kind = (resource.api.group.clone(), resource.api.kind.clone());
            (kind, Arc::new(resource.clone()))
        });
        let by_kind = by_kind.collect();
        *self.by_kind.lock().unwrap_or_else(PoisonError::into_inner) = by_kind;
    }

    /// The resource of the kind that a reference names, in a version that is served: of any other
    /// nobody can say whether there is such an object.
    pub(super) fn of(&self, reference: &OwnerReference) -> Option<Arc<ServedResource>> {
        let named = reference.api_version.as_str();
        let (group, version) = named.split_once('/').unwrap_or(("", named));
        let by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        let resource = by_kind.get(&(group.to_owned(), reference.kind.clone()))?;
        resource.is_served_as(version).then(|| Arc::clone(resource))
    }
}

/// One object of any kind on the server.
pub(super) struct Remote<'a> {
    client: &'a Client,
    collection: Request,
    name: &'a str,
}

impl<'a> Remote<'a> {
    /// The object with this key.
    pub(super) fn new(client: &'a Client, resource: &ServedResource, key: &'a ObjectKey) -> Self {
        let collection = Request::new(resource.path(key.namespace.as_deref()));
        Self { client, collection, name: &key.name }
    }

    /// Its metadata, if it exists. That its kind is not served says nothing about it, and is an
    /// error.
    pub(super) async fn get(&self) -> Result<Option<ObjectMeta>> {
        let request = self.collection.get_metadata(self.name, &GetParams::default());
        let request = request.map(or_whole_objects).map_err(kube::Error::BuildRequest)?;
        match self.client.kube().request::<Metadata>(request).await {
            Ok(object) => Ok(Some(object.into_inner())),
            Err(kube::Error::Api(status)) if is_absent(&status) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes exactly the version that was seen.
    pub(super) async fn delete(&self, seen: &ObjectMeta, policy: PropagationPolicy) -> Result<()> {
        let preconditions = Preconditions {
            uid: seen.uid.clone(),
            resource_version: seen.resource_version.clone(),
        };
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let request = self.collection.delete(self.name, &params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        absent_is_fine(self.client.kube().request_text(request).await.map(drop))
    }

    /// Replaces the owners of exactly the version that was seen; without any, the field goes.
    pub(super) async fn set_owners(
        &self,
        seen: &ObjectMeta,
        owners: &[OwnerReference],
    ) -> Result<()> {
        let owners = (!owners.is_empty()).then_some(owners);
        self.patch(seen, json!({"ownerReferences": owners})).await
    }

    /// Removes a finalizer from exactly the version that was seen.
    pub(super) async fn remove_finalizer(&self, seen: &ObjectMeta, finalizer: &str) -> Result<()> {
        let finalizers = seen.finalizers.iter().flatten().filter(|name| *name != finalizer);
        self.patch(seen, json!({"finalizers": finalizers.collect::<Vec<_>>()})).await
    }

    async fn patch(&self, seen: &ObjectMeta, mut metadata: Value) -> Result<()> {
        metadata["uid"] = json!(seen.uid);
        metadata["resourceVersion"] = json!(seen.resource_version);
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let params = PatchParams {
            field_manager: Some(self.client.field_manager().to_owned()),
            ..PatchParams::default()
        };
        let request = self.collection.patch_metadata(self.name, &params, &patch);
        let request = request.map(or_whole_objects).map_err(kube::Error::BuildRequest)?;
        absent_is_fine(self.client.kube().request_text(request).await.map(drop))
    }
}

/// Whether this says that one object does not exist, rather than that its kind is not served.
fn is_absent(status: &Status) -> bool {
    let details = status.details.as_ref();
    status.is_not_found() && details.is_some_and(|details| !details.name.is_empty())
}

/// What is gone need not be changed any more.
fn absent_is_fine(result: Result<(), kube::Error>) -> Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => Ok(result?),
    }
}
