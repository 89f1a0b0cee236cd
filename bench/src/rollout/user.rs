//! Who asks for workloads and waits for them, over HTTPS, the same for every system.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::TryStreamExt;
use http::{Method, Request, header};
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::processes::connect;

/// Nothing that is measured here takes longer, unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(900);
/// For how long the server keeps a watch open.
const WATCH_SECONDS: u32 = 280;

/// A client that sends plain JSON.
#[derive(Clone)]
pub(crate) struct User(kube::Client);

/// Objects that are followed from a moment on: begun before something is asked for, so that nothing
/// is missed and the time that it takes is not measured.
pub(crate) struct Followed {
    user: User,
    collection: &'static str,
    selector: String,
    /// Whether only metadata is wanted.
    slim: bool,
    version: String,
    /// The objects as they are, by name.
    objects: BTreeMap<String, Value>,
}

impl User {
    /// The user of a kubeconfig.
    pub(crate) async fn of(kubeconfig: &Path) -> Result<Self, String> {
        connect::client(kubeconfig).await.map(Self)
    }

    /// The user of a kubeconfig that is not in a file.
    pub(crate) async fn of_text(kubeconfig: &str) -> Result<Self, String> {
        connect::client_of(kubeconfig).await.map(Self)
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: &Value,
    ) -> Result<Value, String> {
        let what = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content)
            .body(body.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        self.0.request(request).await.map_err(|error| format!("{what}: {error}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, String> {
        let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        self.0.request(request).await.map_err(|error| format!("GET {path}: {error}"))
    }

    pub(crate) async fn create(&self, collection: &str, body: &Value) -> Result<Value, String> {
        self.ask(Method::POST, collection, "application/json", body).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Result<Value, String> {
        self.ask(Method::PATCH, path, "application/merge-patch+json", patch).await
    }

    /// Patches as a kubelet does.
    pub(crate) async fn patch(&self, path: &str, patch: &Value) -> Result<Value, String> {
        self.ask(Method::PATCH, path, "application/strategic-merge-patch+json", patch).await
    }

    pub(crate) async fn delete(&self, path: &str, options: &Value) -> Result<Value, String> {
        self.ask(Method::DELETE, path, "application/json", options).await
    }

    /// Deletes one object or many, and lets what depends on them go in the background.
    pub(crate) async fn remove(&self, path: &str) -> Result<Value, String> {
        self.delete(path, &json!({"propagationPolicy": "Background"})).await
    }

    /// Follows the object of this name.
    pub(crate) async fn follow(
        &self,
        collection: &'static str,
        name: &str,
    ) -> Result<Followed, String> {
        let selector = format!("fieldSelector=metadata.name%3D{name}");
        Followed::begin(self, collection, selector, false).await
    }

    /// Follows what has the label `app`, and nothing of it but that it is there.
    pub(crate) async fn follow_all(
        &self,
        collection: &'static str,
        app: &str,
    ) -> Result<Followed, String> {
        Followed::begin(self, collection, format!("labelSelector=app%3D{app}"), true).await
    }

    /// Follows whatever the selector says, and nothing of it but that it is there.
    pub(crate) async fn follow_slim(
        &self,
        collection: &'static str,
        selector: &str,
    ) -> Result<Followed, String> {
        Followed::begin(self, collection, selector.to_owned(), true).await
    }

    /// Follows whatever the selector says.
    pub(crate) async fn follow_selected(
        &self,
        collection: &'static str,
        selector: &str,
    ) -> Result<Followed, String> {
        Followed::begin(self, collection, selector.to_owned(), false).await
    }
}

impl Followed {
    async fn begin(
        user: &User,
        collection: &'static str,
        selector: String,
        slim: bool,
    ) -> Result<Self, String> {
        let (user, version, objects) = (user.clone(), String::new(), BTreeMap::new());
        let mut followed = Self { user, collection, selector, slim, version, objects };
        let list = followed.request("List", "")?;
        let list: Value = followed.user.0.request(list).await.map_err(|error| error.to_string())?;
        followed.version = text(&list["metadata"]["resourceVersion"]);
        for object in list["items"].as_array().into_iter().flatten() {
            followed.objects.insert(text(&object["metadata"]["name"]), object.clone());
        }
        Ok(followed)
    }

    fn request(&self, list: &str, more: &str) -> Result<Request<Vec<u8>>, String> {
        let Self { collection, selector, .. } = self;
        let accept = match self.slim {
            true => format!("application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1"),
            false => "application/json".to_owned(),
        };
        let request = Request::get(format!("{collection}?{selector}{more}"));
        let request = request.header(header::ACCEPT, accept).body(Vec::new());
        request.map_err(|error| error.to_string())
    }

    /// The objects as they are.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.values()
    }

    /// Waits until the objects are as they are to be.
    pub(crate) async fn until(
        &mut self,
        done: impl Fn(&BTreeMap<String, Value>) -> bool,
    ) -> Result<(), String> {
        let what = format!("{}?{}", self.collection, self.selector);
        let waited = timeout(PATIENCE, self.each(|objects, _| !done(objects))).await;
        let left = || format!("{} objects are there", self.objects.len());
        waited.map_err(|_| format!("{what}: not after {PATIENCE:?}; {}", left()))?
    }

    /// Waits until there is one, and it is as it is to be.
    pub(crate) async fn until_one(&mut self, done: impl Fn(&Value) -> bool) -> Result<(), String> {
        self.until(|objects| objects.values().next().is_some_and(&done)).await
    }

    /// Waits until there is none.
    pub(crate) async fn until_none(&mut self) -> Result<(), String> {
        self.until(BTreeMap::is_empty).await
    }

    /// Goes on, from watch to watch, as long as it is told to at each change: how everything is, and
    /// what has changed, unless it is gone.
    pub(crate) async fn each(
        &mut self,
        mut goes_on: impl FnMut(&BTreeMap<String, Value>, Option<&Value>) -> bool,
    ) -> Result<(), String> {
        if !goes_on(&self.objects, None) {
            return Ok(());
        }
        loop {
            let version = &self.version;
            let watch = format!(
                "&watch=true&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}&allowWatchBookmarks=true"
            );
            let request = self.request("", &watch)?;
            let events = self.user.0.request_events::<Value>(request).await;
            let mut events = Box::pin(events.map_err(|error| error.to_string())?);
            while let Some(event) = events.try_next().await.map_err(|error| error.to_string())? {
                let changed = self.note(event)?;
                let changed = changed.as_deref().and_then(|name| self.objects.get(name));
                if !goes_on(&self.objects, changed) {
                    return Ok(());
                }
            }
        }
    }

    /// Notes what has happened; names the object that is now otherwise.
    fn note(&mut self, event: WatchEvent<Value>) -> Result<Option<String>, String> {
        let (object, is_there) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
            WatchEvent::Deleted(object) => (object, false),
            WatchEvent::Bookmark(bookmark) => {
                self.version = bookmark.metadata.resource_version;
                return Ok(None);
            }
            WatchEvent::Error(status) => return Err(format!("watch: {}", status.message)),
        };
        self.version = text(&object["metadata"]["resourceVersion"]);
        let name = text(&object["metadata"]["name"]);
        if is_there {
            self.objects.insert(name.clone(), object);
            return Ok(Some(name));
        }
        self.objects.remove(&name);
        Ok(None)
    }
}

/// A text of a document; empty if there is none.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
