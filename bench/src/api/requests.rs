//! The requests: ConfigMaps of about one kilobyte in a namespace of their own.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};

/// The namespace of everything here.
pub(super) const NAMESPACE: &str = "bench";

pub(super) type Call = Request<Bytes>;

pub(super) fn namespace() -> Call {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    call(Method::POST, "/api/v1/namespaces", "application/json", &body)
}

pub(super) fn create(number: usize) -> Call {
    call(Method::POST, &collection(), "application/json", &config_map(number, "created"))
}

pub(super) fn get(number: usize) -> Call {
    bare(Method::GET, &object(number))
}

pub(super) fn update(number: usize) -> Call {
    call(Method::PUT, &object(number), "application/json", &config_map(number, "updated"))
}

pub(super) fn merge_patch(number: usize) -> Call {
    let patch = json!({"data": {"state": "patched"}});
    call(Method::PATCH, &object(number), "application/merge-patch+json", &patch)
}

pub(super) fn apply(number: usize) -> Call {
    let path = object(number) + "?fieldManager=bench&force=true";
    call(Method::PATCH, &path, "application/apply-patch+yaml", &config_map(number, "applied"))
}

pub(super) fn delete(number: usize) -> Call {
    bare(Method::DELETE, &object(number))
}

pub(super) fn list() -> Call {
    bare(Method::GET, &collection())
}

/// Marks the first ConfigMap, for those who watch.
pub(super) fn mark(round: usize) -> Call {
    let patch = json!({"data": {"state": round.to_string()}});
    call(Method::PATCH, &object(0), "application/merge-patch+json", &patch)
}

pub(super) fn watch(resource_version: &str) -> Call {
    bare(Method::GET, &format!("{}?watch=true&resourceVersion={resource_version}", collection()))
}

fn collection() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

fn object(number: usize) -> String {
    format!("{}/load-{number:05}", collection())
}

fn config_map(number: usize, state: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("load-{number:05}"), "labels": {"app": "bench"}},
        "data": {"payload": "x".repeat(1000), "state": state},
    })
}

fn call(method: Method, path: &str, content_type: &'static str, body: &Value) -> Call {
    let mut call = bare(method, path);
    *call.body_mut() = body.to_string().into();
    call.headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    call
}

fn bare(method: Method, path: &str) -> Call {
    let mut call = Request::new(Bytes::new());
    *call.method_mut() = method;
    *call.uri_mut() = path.parse().expect("the paths here are plain");
    call.headers_mut()
        .insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
    call
}
