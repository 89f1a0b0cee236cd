//! Webhooks, asked as the API server asks, without a socket.

mod admission;
mod authentication;
mod bad_input;
mod configuration;
mod conversion;
mod injection;
mod metrics;
mod network;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, header};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    AdmissionRequest, Defaulter, Denied, FieldError, Operation, Validator, Warnings, WebhookServer,
};
use crate::serve;

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "demo.steersman.dev", version = "v1", kind = "Shop", namespaced)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShopSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replicas: Option<i32>,
    #[serde(default)]
    pub(super) owner: String,
    #[serde(default)]
    pub(super) shelves: Vec<Shelf>,
}

#[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)]
pub(super) struct Shelf {
    pub(super) name: String,
    #[serde(default)]
    pub(super) height: i32,
}

impl Defaulter for Shop {
    fn set_defaults(&mut self, request: &AdmissionRequest) -> Result<(), Denied> {
        assert_ne!(self.spec.owner, "panic", "as it was told");
        if self.spec.owner == "nobody" {
            return Err(Denied::because("a shop needs somebody"));
        }
        self.spec.replicas.get_or_insert(1);
        if self.spec.owner.is_empty() {
            self.spec.owner = request.user().to_owned();
        }
        for shelf in self.spec.shelves.iter_mut().filter(|shelf| shelf.height == 0) {
            shelf.height = 10;
        }
        Ok(())
    }
}

impl Validator for Shop {
    const OPERATIONS: &'static [Operation] =
        &[Operation::Create, Operation::Update, Operation::Delete];

    fn validate_create(&self, _: &AdmissionRequest) -> Result<Warnings, Denied> {
        let mut errors = Vec::new();
        let replicas = self.spec.replicas.unwrap_or_default();
        if replicas < 0 {
            errors.push(FieldError::invalid("spec.replicas", replicas, "must not be negative"));
        }
        if self.spec.owner.is_empty() {
            errors.push(FieldError::required("spec.owner", "somebody must answer for it"));
        }
        Denied::if_any(errors)?;
        if replicas > 100 { Ok(vec!["that is much".to_owned()]) } else { Ok(Warnings::new()) }
    }

    fn validate_update(&self, old: &Self, request: &AdmissionRequest) -> Result<Warnings, Denied> {
        if self.spec.owner != old.spec.owner {
            return Err(Denied::field("spec.owner", "cannot change").with_warning("ask the owner"));
        }
        self.validate_create(request)
    }

    fn validate_delete(&self, request: &AdmissionRequest) -> Result<Warnings, Denied> {
        if request.user() == self.spec.owner || request.is_dry_run() {
            return Ok(Warnings::new());
        }
        Err(Denied::because(format_args!("only {} may close it", self.spec.owner)))
    }
}

pub(super) fn shop(spec: Value) -> Value {
    let metadata = json!({"name": "corner", "namespace": "default"});
    let mut shop = json!({"apiVersion": "demo.steersman.dev/v1", "kind": "Shop"});
    (shop["metadata"], shop["spec"]) = (metadata, spec);
    shop
}

/// A question about a Shop, as the API server asks it.
pub(super) fn review(operation: &str, object: &Value, old: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "0-8-15",
            "kind": {"group": "demo.steersman.dev", "version": "v1", "kind": "Shop"},
            "resource": {"group": "demo.steersman.dev", "version": "v1", "resource": "shops"},
            "name": "corner", "namespace": "default", "operation": operation,
            "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
            "object": object, "oldObject": old, "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}

pub(super) const MUTATE: &str = "/mutate-demo-steersman-dev-v1-shop";
pub(super) const VALIDATE: &str = "/validate-demo-steersman-dev-v1-shop";

pub(super) fn shops() -> WebhookServer {
    WebhookServer::builder("shop")
        .in_process()
        .defaults::<Shop>()
        .validates::<Shop>()
        .build()
        .unwrap()
}

pub(super) fn post(path: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    request.body(body.into()).unwrap()
}

pub(super) fn read(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

/// What the server answers to a review.
pub(super) async fn ask(server: &WebhookServer, path: &str, review: &Value) -> Value {
    let response = serve::call(&server.handler(), post(path, review.to_string())).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    read(&response)["response"].take()
}

/// The object as the answer to a mutating webhook leaves it.
pub(super) fn patched(object: &Value, response: &Value) -> Value {
    let mut object = object.clone();
    if let Some(patch) = response["patch"].as_str() {
        assert_eq!(response["patchType"], "JSONPatch");
        let patch: json_patch::Patch =
            serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
    }
    object
}
