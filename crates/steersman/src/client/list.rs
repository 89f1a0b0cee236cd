//! Many objects at once: which, in pages, and deleting them.

use kube::api::{DeleteParams, ListParams};
use kube::core::PartialObjectMeta;

use super::answer::{ListAnswer, found};
use super::{Client, KindClient, Pending, Requests};
use crate::error::Result;
use crate::kind::Kind;
use crate::object::{AnyObject, Object, ObjectKey};

/// Which objects to list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Only objects in this namespace; `None`, or an empty name, lists all namespaces.
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
    position: Position,
}

/// How far the pages of a list have been read.
struct Position {
    options: ListOptions,
    page_max: u32,
    /// Where the next page begins; `None` before the first.
    token: Option<String>,
    ended: bool,
}

impl Position {
    /// Asks for the next page.
    fn request<'a>(&self, requests: Requests<'a>) -> Pending<'a, ListAnswer> {
        let mut params = self.options.params();
        params.limit = Some(self.page_max);
        params.continue_token.clone_from(&self.token);
        requests.list(&self.options, &params)
    }

    fn move_to(&mut self, token: Option<String>) {
        self.ended = token.is_none();
        self.token = token;
    }
}

impl<K: AnyObject> Pages<'_, K> {
    /// The next page; `None` after the last. All pages show the same moment: if the server no
    /// longer remembers it, that is the error `Expired`, and the list is to begin anew.
    pub async fn next(&mut self) -> Result<Option<Vec<K>>> {
        if self.position.ended {
            return Ok(None);
        }
        let (objects, token) = self.position.request(self.kind.requests()).await?.objects()?;
        self.position.move_to(token);
        Ok(Some(objects))
    }
}

impl<'a, K: AnyObject> KindClient<'a, K> {
    /// Lists the objects that match, in one answer.
    pub async fn list(&self, options: &ListOptions) -> Result<Vec<K>> {
        let answer = self.requests().list(options, &options.params()).await?;
        Ok(answer.objects()?.0)
    }

    /// Lists the objects that match, at most `page_max` at a time.
    pub fn pages(self, options: &ListOptions, page_max: u32) -> Pages<'a, K> {
        let (options, page_max) = (options.clone(), page_max.max(1));
        Pages { kind: self, position: Position { options, page_max, token: None, ended: false } }
    }

    /// Deletes all objects that match, with the parameters of each deletion.
    pub async fn delete_all_of(&self, options: &ListOptions, params: &DeleteParams) -> Result<()> {
        self.requests().delete_all_of(options, params).await
    }
}

impl Client {
    /// Lists the objects that match, in one answer.
    pub async fn list<K: Object>(&self, options: &ListOptions) -> Result<Vec<K>> {
        let answer = self.requests::<K>().list(options, &options.params()).await?;
        Ok(answer.objects()?.0)
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
        let requests = Requests::new(self, Kind::<K>::of().metadata().erased());
        found(requests.get(key.into()).await?)
    }

    /// Lists the metadata of the objects that match and nothing else.
    pub async fn list_metadata<K: Object>(
        &self,
        options: &ListOptions,
    ) -> Result<Vec<PartialObjectMeta<K>>> {
        let requests = Requests::new(self, Kind::<K>::of().metadata().erased());
        Ok(requests.list(options, &options.params()).await?.objects()?.0)
    }

    /// Deletes all objects that match, with the parameters of each deletion.
    pub async fn delete_all_of<K: Object>(
        &self,
        options: &ListOptions,
        params: &DeleteParams,
    ) -> Result<()> {
        self.requests::<K>().delete_all_of(options, params).await
    }
}
