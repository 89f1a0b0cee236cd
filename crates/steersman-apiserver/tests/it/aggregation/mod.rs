//! APIServices: those of what is served here, and those that lead elsewhere.

mod availability;
mod discovery;
mod extension;
mod local;
mod network;
mod passing;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use serde_json::{Value, json};
use tower::service_fn;

use crate::api::Api;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// Where extensions of these tests are, as an origin of this process.
const ORIGIN: &str = "https://tides.shore.svc";

/// An APIService that leads to [`ORIGIN`].
fn tides() -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.sea.test"},
        "spec": {
            "group": "sea.test", "version": "v1", "groupPriorityMinimum": 1500,
            "versionPriority": 10, "insecureSkipTLSVerify": true,
            "service": {"namespace": "shore", "name": "tides"},
        },
    })
}

/// A definition of tides, for a server that has them.
fn tide_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tides.sea.test"},
        "spec": {
            "group": "sea.test", "scope": "Namespaced",
            "names": {"plural": "tides", "singular": "tide", "kind": "Tide", "shortNames": ["td"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "height": {"type": "integer", "description": "How high the water stands."},
                    }},
                }}},
            }],
        },
    })
}

fn tide(name: &str, height: i64) -> Value {
    json!({
        "apiVersion": "sea.test/v1", "kind": "Tide", "metadata": {"name": name},
        "spec": {"height": height},
    })
}

const TIDES: &str = "/apis/sea.test/v1/namespaces/default/tides";

/// Two servers: one in front, and one behind it that has tides.
async fn with_tides() -> (Api, Api) {
    let behind = Api::start().await;
    behind
        .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &tide_definition())
        .await
        .ok();
    let front = Api::start().await;
    front.server.serve_extension(ORIGIN, behind.server.clone());
    front.post(API_SERVICES, &tides()).await.ok();
    available(&front, "v1.sea.test", "Passed").await;
    (front, behind)
}

/// Waits until an APIService says this about its availability, and gives the condition.
async fn available(api: &Api, name: &str, reason: &str) -> Value {
    let path = format!("{API_SERVICES}?watch=true&fieldSelector=metadata.name={name}");
    let mut events = api.watch(&path).await;
    let waited = async {
        loop {
            let event = events.next().await.expect("the watch ended");
            let condition = &event["object"]["status"]["conditions"][0];
            if condition["reason"] == reason {
                return condition.clone();
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(120), waited)
        .await
        .unwrap_or_else(|_| panic!("{name} is never {reason}"))
}

/// What an extension was asked.
type Asked = Arc<Mutex<Vec<Request<Bytes>>>>;

/// Serves an extension that answers everything with this, and remembers what it was asked.
fn serve_answer(
    api: &Api,
    answer: impl Fn(&Request<Bytes>) -> Response<Full<Bytes>> + Clone + Send + Sync + 'static,
) -> Asked {
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let service = service_fn(move |request: Request<Full<Bytes>>| {
        let (log, answer) = (Arc::clone(&log), answer.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
            let request = Request::from_parts(parts, body);
            let response = answer(&request);
            log.lock().unwrap().push(request);
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    api.server.serve_extension(ORIGIN, service);
    asked
}
