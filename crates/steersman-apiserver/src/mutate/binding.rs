//! Binding a pod to a node: once, and never again.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::metadata;
use steersman_rules::resource::Named;
use steersman_rules::resource::Place;

use super::condition::set_condition;
use super::{decode, success};
use crate::admission::Request;
use crate::call::Call;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::write::{Writer, change, prepare};

/// Binds the pod of the path, or of the body for `POST …/bindings`.
pub(crate) async fn bind(call: &Call) -> Result<Reply> {
    let mut binding = match call.info.name {
        Some(_) => decode::other(call, "v1", "Binding")?,
        None => decode::object(call)?,
    };
    Request::body(call, call.info.dry_run()?, &mut binding).await?;
    let given = metadata::text(&binding, "name");
    let name = call.info.name.as_deref().unwrap_or(given);
    if given != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    check(&binding)?;
    let table = call.server.registry.table();
    let pods = Arc::clone(table.get("", "v1", "pods").ok_or_else(Status::no_such_resource)?);
    let writer = Writer { resource: &pods, subresource: "binding", ..call.writer()? };
    let place = Place { namespace: call.namespace(), name };
    change::change(&writer, place, |pod| {
        prepare::check_uid(&writer, place, metadata::text(pod, "uid"), &binding)?;
        let [is, wants] = [pod, &binding].map(|object| metadata::text(object, "resourceVersion"));
        if !wants.is_empty() && wants != is {
            return Err(prepare::unmet(&writer, place, "ResourceVersion", wants, is));
        }
        // What comes of a binding is the server's own, so nobody owns it.
        assign(pod, &binding, &writer.now)
    })
    .await?;
    Ok(Reply::Document { code: StatusCode::CREATED, value: success(201, None) })
}

fn check(binding: &Value) -> Result<()> {
    let target = &binding["target"];
    let mut errors = Vec::new();
    if !matches!(target["kind"].as_str(), None | Some("" | "Node")) {
        errors.push(FieldError::not_supported(
            "target.kind",
            &target["kind"],
            &["Node", "<empty>"],
        ));
    }
    // Of what name a node may be, and a label, nobody asks here.
    if target["name"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required("target.name", ""));
    }
    failure(&errors)
}

/// Kubernetes takes these for a failure of its own.
fn failure(errors: &[FieldError]) -> Result<()> {
    match errors {
        [] => Ok(()),
        [one] => Err(Status::failure(one.message())),
        many => {
            let texts: Vec<String> = many.iter().map(FieldError::message).collect();
            Err(Status::failure(format!("[{}]", texts.join(", "))))
        }
    }
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
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        let why = format!("pod {name} has non-empty .spec.schedulingGates");
        return Err(Status::conflict(named, &why));
    }
    let mut bound = pod.clone();
    metadata::set_at(&mut bound, "spec.nodeName", binding["target"]["name"].clone());
    for part in ["annotations", "labels"] {
        for (key, value) in binding["metadata"][part].as_object().into_iter().flatten() {
            bound["metadata"][part][key] = value.clone();
        }
    }
    if let Some(status) = bound["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    set_condition(&mut bound, json!({"type": "PodScheduled", "status": "True"}), now);
    Ok(bound)
}
