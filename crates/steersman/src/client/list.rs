//! Many objects at once: which, in pages, and deleting them.

use kube::api::{DeleteParams, ListParams};
use kube::core::{ObjectList, PartialObjectMeta, Request};
use serde_json::Value;

use super::{Client, KindClient};
use crate::error::Result;
use crate::kind::Kind;
use crate::object::{AnyObject, Object, ObjectKey};

/// Which objects to list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Only objects in this namespace; `None` lists all namespaces.
    pub namespace: Option<String>,
    /// Only objects whose labels match, as in `kubectl -l`.
    pub labels: Option<String>,
    /// Only objects whose fields match, as in `kubectl --field-selector`.
    pub fields: Option<String>,
}

impl ListOptions {
    /// Every object in one namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// Narrows the list to objects whose labels match.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    pub(super) fn params(&self) -> ListParams {
        ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            ..ListParams::default()
        }
    }
}

/// The pages of a list; see [`KindClient::pages`].
pub struct Pages<'a, K> {
    kind: KindClient<'a, K>,
    options: ListOptions,
    page_max: u32,
    /// Where the next page begins; `None` before the first.
    token: Option<String>,
    ended: bool,
}

impl<K: AnyObject> Pages<'_, K> {
    /// The next page; `None` after the last. All pages show the same moment: if the server no
    /// longer remembers it, that is the error `Expired`, and the list is to begin anew.
    pub async fn next(&mut self) -> Result<Option<Vec<K>>> {
        if self.ended {
            return Ok(None);
        }
        let mut params = self.options.params();
        params.limit = Some(self.page_max);
        params.continue_token.clone_from(&self.token);
        let list = self.kind.list_with(&self.options, &params).await?;
        self.token = list.metadata.continue_.filter(|token| !token.is_empty());
        self.ended = self.token.is_none();
        Ok(Some(list.items))
    }
}

impl<'a, K: AnyObject> KindClient<'a, K> {
    /// Lists the objects that match, in one answer.
    pub async fn list(&self, options: &ListOptions) -> Result<Vec<K>> {
        Ok(self.list_with(options, &options.params()).await?.items)
    }

    /// Lists the objects that match, at most `page_max` at a time.
    pub fn pages(self, options: &ListOptions, page_max: u32) -> Pages<'a, K> {
        Pages {
            kind: self,
            options: options.clone(),
            page_max: page_max.max(1),
            token: None,
            ended: false,
        }
    }

    /// Deletes all objects that match, with the parameters of each deletion.
    pub async fn delete_all_of(&self, options: &ListOptions, params: &DeleteParams) -> Result<()> {
        let request = Request::new(self.kind.path(options.namespace.as_deref()));
        let dry_run = params.dry_run || self.client.dry_run;
        let params = DeleteParams { dry_run, ..params.clone() };
        let answer: Value =
            self.send(request.delete_collection(&params, &options.params())).await?;
        for deleted in answer["items"].as_array().into_iter().flatten().filter(|_| !dry_run) {
            let metadata = &deleted["metadata"];
            let key = ObjectKey {
                namespace: metadata["namespace"].as_str().map(Into::into),
                name: metadata["name"].as_str().unwrap_or_default().into(),
            };
            self.observe_deletion(&key, metadata["uid"].as_str());
        }
        Ok(())
    }

    async fn list_with(&self, options: &ListOptions, params: &ListParams) -> Result<ObjectList<K>> {
        let request = Request::new(self.kind.path(options.namespace.as_deref()));
        let request =
            if K::metadata_api() { request.list_metadata(params) } else { request.list(params) };
        self.send(request).await
    }
}

impl Client {
    /// Lists the objects that match, in one answer.
    pub async fn list<K: Object>(&self, options: &ListOptions) -> Result<Vec<K>> {
        self.typed().list(options).await
    }

    /// Lists the objects that match, at most `page_max` at a time:
    /// `while let Some(page) = pages.next().await? { … }`.
    pub fn pages<K: Object>(&self, options: &ListOptions, page_max: u32) -> Pages<'_, K> {
        self.typed().pages(options, page_max)
    }

    /// Reads the metadata of an object and nothing else; `None` if there is none of that name.
    pub async fn get_metadata<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<PartialObjectMeta<K>>> {
        self.of_kind(&Kind::<K>::of().metadata()).get(key).await
    }

    /// Lists the metadata of the objects that match and nothing else.
    pub async fn list_metadata<K: Object>(
        &self,
        options: &ListOptions,
    ) -> Result<Vec<PartialObjectMeta<K>>> {
        self.of_kind(&Kind::<K>::of().metadata()).list(options).await
    }

    /// Deletes all objects that match, with the parameters of each deletion.
    pub async fn delete_all_of<K: Object>(
        &self,
        options: &ListOptions,
        params: &DeleteParams,
    ) -> Result<()> {
        self.typed::<K>().delete_all_of(options, params).await
    }
}
