//! Binding a pod to a node: once, and never again.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{Writer, change, decode, success};
use crate::call::Call;
use crate::field::FieldError;
use crate::metadata;
use crate::names;
use crate::reply::Reply;
use crate::resource::Place;
use crate::schema::Schema;
use crate::status::{Named, Result, Status};

/// Binds the pod of the path, or of the body for `POST …/bindings`.
pub(crate) async fn bind(call: &Call) -> Result<Reply> {
    let mut binding = call.document()?;
    decode::part(Schema::builtin("", "v1", "Binding"), "Binding", &mut binding)?;
    let name = call.info.name.as_deref().unwrap_or_else(|| metadata::text(&binding, "name"));
    check(&binding, name)?;
    let table = call.server.registry.table();
    let pods = Arc::clone(table.get("", "v1", "pods").ok_or_else(Status::no_such_resource)?);
    let writer = Writer { resource: &pods, subresource: "binding", ..call.writer()? };
    let place = Place { namespace: call.namespace(), name };
    change::change(&writer, place, |pod| {
        change::check_preconditions(&writer, pod, &binding)?;
        let mut bound = assign(pod, &binding, &writer.now)?;
        writer.track(Some(pod), &mut bound);
        Ok(bound)
    })
    .await?;
    Ok(Reply::Document { code: StatusCode::CREATED, value: success(201, None) })
}

fn check(binding: &Value, name: &str) -> Result<()> {
    let target = &binding["target"];
    let mut errors = Vec::new();
    if !matches!(target["kind"].as_str(), None | Some("" | "Node")) {
        errors.push(FieldError::not_supported(
            "target.kind",
            &target["kind"],
            &["Node", "<empty>"],
        ));
    }
    if target["name"].as_str().unwrap_or("").is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    errors.extend(names::validate_labels(&binding["metadata"]["labels"], "metadata.labels"));
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(Named { group: "", resource: "Binding", name }, &errors))
}

/// The pod on its node. Its generation stays: the desired state has not changed.
fn assign(pod: &Value, binding: &Value, now: &str) -> Result<Value> {
    let name = metadata::text(pod, "name");
    let named = Named { group: "", resource: "pods/binding", name };
    if metadata::is_deleting(pod) {
        let why = format!("pod {name} is being deleted, cannot be assigned to a host");
        return Err(Status::conflict(named, &why));
    }
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        let why = format!("pod {name} is already assigned to node {node:?}");
        return Err(Status::conflict(named, &why));
    }
    let mut bound = pod.clone();
    metadata::set_at(&mut bound, "spec.nodeName", binding["target"]["name"].clone());
    for part in ["annotations", "labels"] {
        for (key, value) in binding["metadata"][part].as_object().into_iter().flatten() {
            bound["metadata"][part][key] = value.clone();
        }
    }
    set_scheduled(&mut bound, now);
    Ok(bound)
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    });
    if !pod["status"].is_object() {
        pod["status"] = json!({});
    }
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    if let Some(conditions) = pod["status"]["conditions"].as_array_mut() {
        conditions.retain(|condition| condition["type"] != "PodScheduled");
        conditions.push(condition);
    }
}
