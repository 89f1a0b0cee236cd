//! Requests about objects whose type has been forgotten: the verbs of
//! [`KindClient`](super::KindClient), in JSON.
//!
//! They are compiled once, here. A kind adds only that its objects are encoded before a request
//! and decoded from the [`Answer`]. The futures are boxed: the body of an `async fn` is compiled
//! again in every crate that awaits it, together with everything that it awaits itself.

use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Error as KubeError;
use kube::api::{GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::answer::{Answer, ListAnswer, unreadable};
use super::metadata_alone::or_whole_objects;
use super::observer::Observed;
use super::{Client, ListOptions, NotServed, absent_as_none, is_not_served};
use crate::error::{Error, Result};
use crate::kind::ErasedKind;
use crate::object::ObjectKey;

/// What a request is going to be answered with.
pub(crate) type Pending<'a, T = Answer<'a>> = BoxFuture<'a, Result<T>>;

/// An encoded object, if it could be encoded.
pub(crate) type Encoded = serde_json::Result<Vec<u8>>;

/// A request, if it could be built.
pub(crate) type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// Sends requests about objects of one kind.
#[derive(Clone)]
pub(crate) struct Requests<'a> {
    pub(super) client: &'a Client,
    pub(super) kind: ErasedKind,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(client: &'a Client, kind: ErasedKind) -> Self {
        Self { client, kind }
    }

    /// Reads an object; `None` if there is none of that name.
    pub(crate) fn get(self, key: ObjectKey) -> Pending<'a, Option<Answer<'a>>> {
        Box::pin(async move {
            let (request, params) = (self.at(&key), GetParams::default());
            let request = if self.kind.names().metadata_only {
                request.get_metadata(&key.name, &params).map(or_whole_objects)
            } else {
                request.get(&key.name, &params)
            };
            absent_as_none(self.read(request).await)
        })
    }

    /// Reads a subresource; `None` if there is no object of that name.
    pub(super) fn get_subresource(
        self,
        sub: &str,
        key: &ObjectKey,
    ) -> Pending<'a, Option<Answer<'a>>> {
        let request = self.at(key).get_subresource(sub, &key.name);
        Box::pin(async move { absent_as_none(self.read(request).await) })
    }

    /// Lists a namespace, or all of them.
    pub(super) fn list(
        self,
        options: &ListOptions,
        params: &ListParams,
    ) -> Pending<'a, ListAnswer> {
        let request = Request::new(self.kind.path(options.namespace.as_deref()));
        let request = if self.kind.names().metadata_only {
            request.list_metadata(params).map(or_whole_objects)
        } else {
            request.list(params)
        };
        Box::pin(async move { Ok(ListAnswer::new(self.send(request).await?)) })
    }

    /// Creates an object.
    pub(crate) fn create(self, key: ObjectKey, body: Encoded) -> Pending<'a> {
        Box::pin(async move {
            self.must_be_whole("create", &key)?;
            let request = self.at(&key).create(&self.post(), self.complete(body)?);
            self.write(request).await
        })
    }

    /// Replaces an object.
    pub(crate) fn update(self, key: ObjectKey, body: Encoded) -> Pending<'a> {
        Box::pin(async move {
            self.must_be_whole("update", &key)?;
            let body = self.complete(body)?;
            let request = self.at(&key).replace(&key.name, &self.post(), body);
            self.write(request).await
        })
    }

    /// Replaces a subresource that speaks the object's own kind.
    pub(crate) fn replace_subresource(
        self,
        sub: &'a str,
        key: ObjectKey,
        body: Encoded,
    ) -> Pending<'a> {
        Box::pin(async move {
            self.must_be_whole("update", &key)?;
            let (body, post) = (self.complete(body)?, self.post());
            let request = self.at(&key).replace_subresource(sub, &key.name, &post, body);
            self.write(request).await
        })
    }

    /// Posts to a subresource.
    pub(super) fn create_subresource(
        self,
        sub: &'a str,
        key: ObjectKey,
        body: Encoded,
    ) -> Pending<'a, ()> {
        Box::pin(async move {
            let request = self.at(&key).create_subresource(sub, &key.name, &self.post(), body?);
            self.send(request).await.map(drop)
        })
    }

    /// Sends a patch of an object, or of a subresource that speaks the object's own kind.
    pub(crate) fn patch(self, request: Built) -> Pending<'a> {
        Box::pin(self.write(request))
    }

    /// Sends a patch of a subresource that speaks another kind.
    pub(super) fn patch_other(self, request: Built) -> Pending<'a> {
        Box::pin(async move { self.read(request).await })
    }

    /// Merges this document into an object.
    pub(crate) fn merge_patch(self, key: &ObjectKey, document: Value) -> Pending<'a> {
        let request = self.patch_request(key, None, &Patch::Merge(document));
        self.patch(request)
    }

    /// Merges this document into the status of an object.
    pub(crate) fn merge_patch_status(self, key: &ObjectKey, document: Value) -> Pending<'a> {
        let request = self.patch_request(key, Some("status"), &Patch::Merge(document));
        self.patch(request)
    }

    /// Applies an object that has this metadata.
    pub(crate) fn apply(self, meta: &ObjectMeta, body: Encoded, force: bool) -> Pending<'a> {
        let key = ObjectKey::of_meta(meta);
        let managed = meta.managed_fields.is_some();
        Box::pin(async move {
            let patch = Patch::Apply(self.applicable(body, managed)?);
            let params = PatchParams { force, ..self.patch_params(&patch) };
            let request = self.at(&key).patch(&key.name, &params, &patch);
            self.write(request).await
        })
    }

    /// A patch of an object or of one of its subresources.
    pub(crate) fn patch_request<P: Serialize>(
        &self,
        key: &ObjectKey,
        sub: Option<&str>,
        patch: &Patch<P>,
    ) -> Built {
        let (request, params) = (self.at(key), self.patch_params(patch));
        match sub {
            Some(sub) => request.patch_subresource(sub, &key.name, &params, patch),
            None => request.patch(&key.name, &params, patch),
        }
    }

    /// An object as the server wants it. One of a kind known only at run time may have come from
    /// a list, whose items do not say of which kind they are.
    pub(crate) fn document(&self, body: &[u8]) -> serde_json::Result<Value> {
        let mut document = serde_json::from_slice(body)?;
        if let (Some(names), Value::Object(fields)) = (self.kind.dynamic_names(), &mut document) {
            fields.entry("apiVersion").or_insert_with(|| names.api_version.as_str().into());
            fields.entry("kind").or_insert_with(|| names.kind.as_str().into());
        }
        Ok(document)
    }

    /// The same, encoded.
    fn complete(&self, body: Encoded) -> Encoded {
        match self.kind.dynamic_names() {
            None => body,
            Some(_) => serde_json::to_vec(&self.document(&body?)?),
        }
    }

    /// An object as it may be applied: if it names its managers, it is refused.
    fn applicable(&self, body: Encoded, managed: bool) -> serde_json::Result<Box<RawValue>> {
        if !managed && self.kind.dynamic_names().is_none() {
            return serde_json::from_slice(&body?);
        }
        let mut document = self.document(&body?)?;
        if let Value::Object(metadata) = &mut document["metadata"] {
            metadata.remove("managedFields");
        }
        to_raw_value(&document)
    }

    /// Refuses to put an object into the place of another of which only the metadata is known: all the
    /// rest would be lost.
    fn must_be_whole(&self, verb: &str, key: &ObjectKey) -> Result<()> {
        let names = self.kind.names();
        if !names.metadata_only {
            return Ok(());
        }
        let name = names.name;
        Err(Error::terminal(format!(
            "cannot {verb} {name} {key} by its metadata alone: the rest of it would be lost; merge or \
             patch it"
        )))
    }

    /// The collection of the kind in the key's namespace, or in the default one.
    pub(super) fn at(&self, key: &ObjectKey) -> Request {
        let namespace = key.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or_else(|| self.client.kube.default_namespace());
        Request::new(self.kind.path(Some(namespace)))
    }

    fn post(&self) -> PostParams {
        let field_manager = Some(self.client.field_manager.to_string());
        PostParams { field_manager, dry_run: self.client.dry_run }
    }

    fn patch_params<P: Serialize>(&self, patch: &Patch<P>) -> PatchParams {
        let mut params = PatchParams::apply(&self.client.field_manager);
        params.force = matches!(patch, Patch::Apply(_));
        params.dry_run = self.client.dry_run;
        params
    }

    /// Sends a write whose answer is the object.
    async fn write(self, request: Built) -> Result<Answer<'a>> {
        let json = self.send(request).await?;
        let observer = self.client.observer.as_deref().filter(|_| !self.client.dry_run);
        let observed = observer.map(|observer| Observed { observer, kind: self.kind });
        Ok(Answer::new(json, observed))
    }

    async fn read(&self, request: Built) -> Result<Answer<'a>> {
        Ok(Answer::new(self.send(request).await?, None))
    }

    /// Sends a request whose answer may be of several kinds.
    pub(super) async fn answer<T: DeserializeOwned>(&self, request: Built) -> Result<T> {
        let json = self.send(request).await?;
        serde_json::from_str(&json).map_err(|error| unreadable(&json, error))
    }

    async fn send(&self, request: Built) -> Result<String> {
        let mut request = request.map_err(KubeError::BuildRequest)?;
        if let Some(user) = &self.client.acting_as {
            user.sign(&mut request);
        }
        self.client.kube.request_text(request).await.map_err(|error| match error {
            KubeError::Api(status) if is_not_served(&status) => {
                let names = self.kind.names();
                NotServed {
                    kind: names.name.into_owned(),
                    api_version: names.api_version.into_owned(),
                    source: KubeError::Api(status),
                }
                .into()
            }
            error => error.into(),
        })
    }
}
