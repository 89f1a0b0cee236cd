//! New levels and schemas, as the store takes them: with what the server will say about a schema
//! anyway, so that a start writes each of them once.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use steersman_rules::metadata;
use steersman_rules::resource::Resource;

use super::{CONSUMER, conditions, writer};
use crate::document;
use crate::fairness::defaults::API_VERSION;
use crate::state::Server;
use crate::status::Result;

/// The bytes of a new object.
pub(super) fn document(
    server: &Arc<Server>,
    resource: &Resource,
    mut object: Value,
) -> Result<Bytes> {
    let writer = writer(server, resource);
    let now = writer.now.as_str();
    writer.track(None, &mut object);
    metadata::set(&mut object, "uid", Some(server.random.uid().into()));
    metadata::set(&mut object, "creationTimestamp", Some(now.into()));
    metadata::set(&mut object, "generation", Some(1.into()));
    object["status"] = json!({});
    if object["kind"] == "FlowSchema" {
        let condition = conditions::dangling(&object, true, now);
        object["status"] = json!({"conditions": [condition]});
        if let Some(managers) = object["metadata"]["managedFields"].as_array_mut() {
            managers.insert(0, owned(now));
        }
    }
    document::encode(&object)
}

/// That the condition is the server's own.
fn owned(now: &str) -> Value {
    let fields = json!({
        ".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {},
        "f:type": {},
    });
    json!({
        "apiVersion": API_VERSION, "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {r#"k:{"type":"Dangling"}"#: fields}}},
        "manager": CONSUMER, "operation": "Apply", "subresource": "status", "time": now,
    })
}
