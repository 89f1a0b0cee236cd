//! What is rendered of custom resources, and when.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::Full;
use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_store::memory::MemoryStore;
use tower::ServiceExt;

use crate::openapi::{Form, Published};
use crate::{ApiServer, Config};

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

#[tokio::test]
async fn one_document_is_made_without_those_of_other_definitions() {
    let config = Config::new(Arc::new(MemoryStore::new()), Arc::new(|| Timestamp::UNIX_EPOCH));
    let api = ApiServer::start(config).await.unwrap();
    for group in ["a.example.com", "b.example.com"] {
        let request = Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(definition(group).to_string())))
            .unwrap();
        assert_eq!(api.clone().oneshot(request).await.unwrap().status(), 201);
    }
    let published = Published::default();
    let table = api.server().registry.table();
    let names = async |only| {
        let sections = published.sections(api.server(), &table, Form::V3, only).await.unwrap();
        sections.into_iter().map(|(name, _)| name).collect::<Vec<String>>()
    };
    let [a, b] = ["apis/a.example.com/v1", "apis/b.example.com/v1"];
    assert_eq!(names(Some(b)).await, [b]);
    assert_eq!(published.rendered(), 1);
    assert_eq!(names(None).await, [a, b]);
    assert_eq!(published.rendered(), 2);
}
