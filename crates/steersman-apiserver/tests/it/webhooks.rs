//! The harness of webhooks: servers in this process, written as closures, that remember what
//! they were asked.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use serde_json::{Value, json};
use steersman_apiserver::WebhookHandler;

use crate::api::{Answer, Api};

pub(crate) const MUTATING: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub(crate) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The origin that [`Hook`]s answer for.
const ORIGIN: &str = "https://webhooks.test";

/// What a webhook was asked, in order.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<Value>>>);

impl Asked {
    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn last(&self) -> Value {
        self.0.lock().unwrap().last().cloned().expect("nobody asked")
    }
}

/// A handler that answers each document with another.
pub(crate) fn json_handler(
    answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> WebhookHandler {
    Arc::new(move |request: Request<Bytes>| {
        let document = serde_json::from_slice(request.body()).unwrap();
        let answer = answer(&document);
        async move { Response::new(Bytes::from(answer.to_string())) }.boxed()
    })
}

/// Serves one webhook; `decide` makes the `response` of the `request`, without its uid.
pub(crate) fn serve(
    api: &Api,
    host: &str,
    decide: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> Asked {
    let asked = Asked::default();
    let log = asked.clone();
    let handler = json_handler(move |review| {
        log.0.lock().unwrap().push(review["request"].clone());
        let mut response = decide(&review["request"]);
        response["uid"] = review["request"]["uid"].clone();
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    });
    api.server.serve_webhooks(&format!("https://{host}"), handler);
    asked
}

/// Serves at [`ORIGIN`].
pub(crate) fn serve_here(
    api: &Api,
    decide: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> Asked {
    serve(api, ORIGIN.trim_start_matches("https://"), decide)
}

pub(crate) fn allowed() -> Value {
    json!({"allowed": true})
}

pub(crate) fn denied(status: &Value) -> Value {
    json!({"allowed": false, "status": status})
}

/// Allows, with a patch.
pub(crate) fn patched(patch: &Value) -> Value {
    let patch = STANDARD.encode(patch.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

/// A webhook for ConfigMaps at [`ORIGIN`].
pub(crate) fn webhook(name: &str) -> Value {
    json!({
        "name": format!("{name}.example.com"), "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("{ORIGIN}/{name}")},
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["*"],
        }],
    })
}

/// A webhook with fields of its own.
pub(crate) fn webhook_with(name: &str, fields: &Value) -> Value {
    let mut webhook = webhook(name);
    for (field, value) in fields.as_object().unwrap() {
        webhook[field] = value.clone();
    }
    webhook
}

pub(crate) async fn configure(api: &Api, path: &str, name: &str, webhooks: &[Value]) {
    let kind = if path == MUTATING { "Mutating" } else { "Validating" };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name}, "webhooks": webhooks,
    });
    api.post(path, &configuration).await.ok();
}

/// The warnings of an answer.
pub(crate) fn warnings(answer: &Answer) -> Vec<&str> {
    answer.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
}

pub(crate) fn message(status: &Value) -> &str {
    status["message"].as_str().unwrap()
}
