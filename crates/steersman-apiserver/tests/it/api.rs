//! The harness: an API server in this process, and sentences to talk to it.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyDataStream, BodyExt, Full};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use steersman_apiserver::user::User;
use steersman_apiserver::{ApiServer, Clock, Config, PluginSelection, ResponseBody};
use steersman_store::Store;
use steersman_store::memory::MemoryStore;
use tokio::time::Instant;
use tower::ServiceExt;

/// A running API server.
pub(crate) struct Api {
    pub(crate) server: ApiServer,
    pub(crate) store: Arc<dyn Store>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.code < 300, "{}", String::from_utf8_lossy(&self.bytes));
        self.json()
    }

    /// That there is nothing at a path, not even an API to say so.
    #[track_caller]
    pub(crate) fn no_page(&self) {
        assert_eq!((self.code, &self.bytes[..]), (404, &b"404 page not found\n"[..]));
    }

    /// The body of a failure with this code.
    #[track_caller]
    pub(crate) fn refused(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", String::from_utf8_lossy(&self.bytes));
        let status = self.json();
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["status"], "Failure");
        assert_eq!(status["code"], code);
        status
    }
}

/// A clock that starts in 2025 and follows tokio's.
pub(crate) fn clock() -> Clock {
    let start = Instant::now();
    let epoch: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
    Arc::new(move || {
        epoch + SignedDuration::try_from(start.elapsed()).expect("tests are shorter than that")
    })
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::over(Arc::new(MemoryStore::new())).await
    }

    pub(crate) async fn over(store: Arc<dyn Store>) -> Self {
        Self::with(store, |_| {}).await
    }

    /// With these admission plug-ins.
    pub(crate) async fn with_plugins(plugins: PluginSelection) -> Self {
        Self::with_plugins_over(Arc::new(MemoryStore::new()), plugins).await
    }

    /// With these admission plug-ins, over what is there already.
    pub(crate) async fn with_plugins_over(store: Arc<dyn Store>, plugins: PluginSelection) -> Self {
        Self::with(store, |config| config.admission = plugins).await
    }

    /// With settings of its own.
    pub(crate) async fn with(store: Arc<dyn Store>, settle: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(Arc::clone(&store), clock());
        settle(&mut config);
        let server = ApiServer::start(config).await.unwrap();
        Self { server, store }
    }

    /// The same server for a user, who may do what roles allow.
    pub(crate) fn acting_as(&self, name: &str, groups: &[&str]) -> Self {
        let server = self.server.acting_as(User::known(name, groups));
        Self { server, store: Arc::clone(&self.store) }
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let response = self.server.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer { code: parts.status.as_u16(), headers: parts.headers, bytes }
    }

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(Full::new(bytes)).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.json(Method::GET, path, None).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let request = Request::builder().uri(path).header(header::ACCEPT, accept);
        self.send(request.body(Full::default()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.json(Method::DELETE, path, None).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.json(Method::DELETE, path, Some(options)).await
    }

    pub(crate) async fn patch(&self, path: &str, content_type: &str, body: &Value) -> Answer {
        let request = Request::builder().method(Method::PATCH).uri(path);
        let request = request.header(header::CONTENT_TYPE, content_type);
        self.send(request.body(Full::new(body.to_string().into())).unwrap()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, "application/merge-patch+json", body).await
    }

    pub(crate) async fn watch(&self, path: &str) -> Events {
        self.watch_as(path, "application/json").await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Events {
        let request = Request::builder().uri(path).header(header::ACCEPT, accept);
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let response = self.server.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Events { stream: response.into_body().into_data_stream(), buffer: Vec::new() }
    }

    /// Creates a ConfigMap and gives it back.
    pub(crate) async fn config_map(&self, name: &str, data: &Value) -> Value {
        let object = config_map(name, data);
        self.post(CONFIG_MAPS, &object).await.ok()
    }
}

/// Where most tests play.
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub(crate) fn deployment(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    })
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    })
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("")
}

pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(name).collect()
}

/// The events of a watch.
pub(crate) struct Events {
    stream: BodyDataStream<ResponseBody>,
    buffer: Vec<u8>,
}

impl Events {
    /// The next event; `None` when the watch has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            self.buffer.extend_from_slice(&self.stream.next().await?.unwrap());
        }
    }

    /// The next event as `(type, name)`.
    pub(crate) async fn brief(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch ended");
        (event["type"].as_str().unwrap().to_owned(), name(&event["object"]).to_owned())
    }

    /// Whether nothing comes for a second.
    pub(crate) async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(std::time::Duration::from_secs(1), self.next()).await.is_err()
    }
}

/// Lets virtual time pass; what is due meanwhile happens.
pub(crate) async fn seconds_pass(seconds: u64) {
    let never = std::future::pending::<()>();
    let _ = tokio::time::timeout(std::time::Duration::from_secs(seconds), never).await;
}
