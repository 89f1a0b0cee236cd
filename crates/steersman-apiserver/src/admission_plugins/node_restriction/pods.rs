//! Pods: a node shows those that it runs by itself, and ends and reports on those that it was given.

use serde_json::{Map, Value};
use steersman_rules::metadata;
use steersman_rules::resource::Named;

use super::super::fields::{items, text};
use super::super::stored;
use super::{Asked, api_references};
use crate::admission_registration::Operation;
use crate::state::Server;
use crate::status::{Result, Status};

const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) async fn check(asked: &Asked<'_>) -> Result<()> {
    let node = asked.node;
    let operation = asked.operation().as_str();
    match (asked.write.subresource, asked.operation()) {
        ("", Operation::Create) => create(asked).await,
        ("", Operation::Delete) if node_of(asked.old) != node => Err(asked.refusal(&format!(
            "node {node:?} can only delete pods with spec.nodeName set to itself"
        ))),
        ("", Operation::Delete) => Ok(()),
        ("", Operation::Update) => Err(asked.refusal(&format!(
            "unexpected operation {operation:?}, node {node:?} can only create and delete mirror pods"
        ))),
        ("status", Operation::Update) => status(asked),
        ("status", _) => Err(asked.refusal(&format!("unexpected operation {operation:?}"))),
        ("eviction", Operation::Create) => eviction(asked).await,
        ("eviction", _) => Err(asked.refusal(&format!("unexpected operation {operation}"))),
        (other, _) => Err(asked.refusal(&format!(
            "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
        ))),
    }
}

/// A pod of a namespace.
pub(super) async fn find(server: &Server, namespace: &str, name: &str) -> Result<Value> {
    let pod = stored::object(server, &format!("/registry/pods/{namespace}/{name}")).await?;
    pod.ok_or_else(|| Status::not_found(Named { group: "", resource: "pod", name }))
}

/// The node that a pod is on.
pub(super) fn node_of(pod: &Value) -> &str {
    text(&pod["spec"]["nodeName"])
}

async fn create(asked: &Asked<'_>) -> Result<()> {
    let Asked { node, new: pod, .. } = *asked;
    let refuse = |why: String| Err(asked.refusal(&why));
    if pod["metadata"]["annotations"].get(MIRROR).is_none() {
        return refuse(format!(
            "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
        ));
    }
    if node_of(pod) != node {
        return refuse(format!(
            "node {node:?} can only create pods with spec.nodeName set to itself"
        ));
    }
    match items(&pod["metadata"]["ownerReferences"]) {
        [owner] => owned(asked, owner).await?,
        [] => {
            return refuse(format!(
                "node {node:?} can only create pods with an owner reference set to itself"
            ));
        }
        _ => {
            return refuse(format!(
                "node {node:?} can only create pods with a single owner reference set to itself"
            ));
        }
    }
    match api_references::of(pod) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => {
            refuse(format!("node {node:?} can not create pods that reference {what}"))
        }
        Err(why) => refuse(format!("error checking mirror pod for API references: {why}")),
    }
}

/// Refuses an owner that is not the node itself.
async fn owned(asked: &Asked<'_>, owner: &Value) -> Result<()> {
    let node = asked.node;
    let refuse = |why: String| Err(asked.refusal(&why));
    let is_itself = ["apiVersion", "kind", "name"].map(|field| text(&owner[field]));
    if is_itself != ["v1", "Node", node] {
        return refuse(format!(
            "node {node:?} can only create pods with an owner reference set to itself"
        ));
    }
    if owner["controller"] != true {
        return refuse(format!(
            "node {node:?} can only create pods with a controller owner reference set to itself"
        ));
    }
    if owner["blockOwnerDeletion"] == true {
        return refuse(format!(
            "node {node:?} must not set blockOwnerDeletion on an owner reference"
        ));
    }
    let itself: Option<Value> =
        stored::object(asked.write.server, &format!("/registry/minions/{node}")).await?;
    let itself = itself
        .ok_or_else(|| Status::not_found(Named { group: "", resource: "node", name: node }))?;
    let wanted = text(&owner["uid"]);
    let is = metadata::text(&itself, "uid");
    if wanted != is {
        return refuse(format!("node {node} UID mismatch: expected {wanted} got {is}"));
    }
    Ok(())
}

fn status(asked: &Asked<'_>) -> Result<()> {
    let Asked { node, new, old, .. } = *asked;
    let refuse = |why: String| Err(asked.refusal(&why));
    if node_of(old) != node {
        return refuse(format!(
            "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
        ));
    }
    if labels(old) != labels(new) {
        return refuse(format!("node {node:?} cannot update labels through pod status"));
    }
    if claims(old) != claims(new) {
        return refuse(format!("node {node:?} cannot update resource claim statues"));
    }
    if extended_claim(old) != extended_claim(new) {
        return refuse(format!("node {node:?} cannot update extended resource claim status"));
    }
    Ok(())
}

fn labels(pod: &Value) -> Option<&Map<String, Value>> {
    pod["metadata"]["labels"].as_object().filter(|labels| !labels.is_empty())
}

fn extended_claim(pod: &Value) -> Option<[&Value; 2]> {
    let status = &pod["status"]["extendedResourceClaimStatus"];
    status.is_object().then(|| [&status["resourceClaimName"], &status["requestMappings"]])
}

/// What was claimed for a pod.
fn claims(pod: &Value) -> Vec<[&Value; 2]> {
    let statuses = items(&pod["status"]["resourceClaimStatuses"]);
    statuses.iter().map(|status| [&status["name"], &status["resourceClaimName"]]).collect()
}

async fn eviction(asked: &Asked<'_>) -> Result<()> {
    let name = asked.name();
    if name.is_empty() {
        return Err(asked.refusal("could not determine pod from request data"));
    }
    let pod = find(asked.write.server, asked.write.place.namespace, name).await?;
    if node_of(&pod) == asked.node {
        return Ok(());
    }
    let why = format!("node {} can only evict pods with spec.nodeName set to itself", asked.node);
    Err(asked.refusal(&why))
}
