//! `NodeRestriction` keeps nodes to what is theirs: their own Node, Lease, CSINode and slices, Pods
//! that run on them, tokens of such Pods, and certificates in their name.
//!
//! Who may do what at all has been decided by then ([`crate::authz`]); what that could not know is
//! what the objects say. This looks only at writes of nodes and never changes anything.

mod api_references;
mod audience;
mod nodes;
mod pods;
mod tokens;

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::metadata;

use super::signing_request;
use crate::admission_registration::Operation;
use crate::authz::node_of;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

/// Keeps nodes to what is theirs.
pub(super) struct NodeRestriction;

const NODE_LEASES: &str = "kube-node-lease";
const KUBELET_SIGNERS: [&str; 2] =
    ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

impl Plugin for NodeRestriction {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        node_of(write.user).is_some()
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move { check(write, Some(new), old).await.map(|()| false) })
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // Where there is a new version it has been looked at.
            if new.is_some() { Ok(()) } else { check(write, None, old).await }
        })
    }
}

/// A write of a node.
struct Asked<'a> {
    write: Attributes<'a>,
    node: &'a str,
    /// The new version; null where there is none.
    new: &'a Value,
    /// The version before; null where there is none.
    old: &'a Value,
}

async fn check(write: Attributes<'_>, new: Option<&Value>, old: Option<&Value>) -> Result<()> {
    let Some(node) = node_of(write.user) else { return Ok(()) };
    let new = new.unwrap_or(&Value::Null);
    let old = old.unwrap_or(&Value::Null);
    let asked = Asked { write, node, new, old };
    if node.is_empty() {
        let why = format!("could not determine node from user {:?}", write.user.name);
        return Err(asked.refusal(&why));
    }
    match (write.resource.group.as_ref(), write.resource.plural.as_ref()) {
        ("", "pods") => pods::check(&asked).await,
        ("", "nodes") => nodes::check(&asked),
        ("", "persistentvolumeclaims") => claim(&asked),
        ("", "serviceaccounts") => tokens::check(&asked).await,
        ("coordination.k8s.io", "leases") => lease(&asked),
        ("storage.k8s.io", "csinodes") => {
            own(&asked, "can only access CSINode with the same name as the requesting node")
        }
        ("resource.k8s.io", "resourceslices") => resource_slice(&asked),
        ("certificates.k8s.io", "certificatesigningrequests") => certificate(&asked),
        _ => Ok(()),
    }
}

impl Asked<'_> {
    fn refusal(&self, why: &str) -> Status {
        self.write.forbidden(self.new, why)
    }

    fn operation(&self) -> Operation {
        self.write.operation
    }

    /// The name of the object; empty where one is yet to be generated.
    fn name(&self) -> &str {
        match self.write.place.name {
            "" => metadata::text(self.new, "name"),
            name => name,
        }
    }
}

fn claim(asked: &Asked<'_>) -> Result<()> {
    if asked.write.subresource != "status" {
        return Err(asked.refusal("may only update PVC status"));
    }
    if asked.operation() != Operation::Update {
        let why = format!("unexpected operation {:?}", asked.operation().as_str());
        return Err(asked.refusal(&why));
    }
    let [old, new] = [asked.old, asked.new].map(but_for_size);
    if old == new {
        return Ok(());
    }
    let why = format!(
        "node {:?} is not allowed to update fields other than status.quantity and \
         status.conditions: {}",
        asked.node,
        difference(&old, &new)
    );
    Err(asked.refusal(&why))
}

/// A claim without what its node may say about it.
fn but_for_size(claim: &Value) -> Value {
    let mut rest = claim.clone();
    for field in ["resourceVersion", "managedFields"] {
        metadata::set(&mut rest, field, None);
    }
    if let Some(status) = rest.get_mut("status").and_then(Value::as_object_mut) {
        for field in ["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"] {
            status.remove(field);
        }
    }
    without_nothing(&mut rest);
    rest
}

/// Takes out what says nothing, for whether it is there makes no difference.
fn without_nothing(value: &mut Value) {
    let Some(fields) = value.as_object_mut() else { return };
    fields.values_mut().for_each(without_nothing);
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
}

/// What differs between two objects, one line for each version of each field.
fn difference(old: &Value, new: &Value) -> String {
    let mut lines = Vec::new();
    differ("", old, new, &mut lines);
    lines.join("\n")
}

fn differ(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    if old == new {
        return;
    }
    if let (Some(before), Some(after)) = (old.as_object(), new.as_object()) {
        let fields: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for field in fields {
            let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
            differ(&path, &old[field], &new[field], lines);
        }
        return;
    }
    for (sign, value) in [('-', old), ('+', new)] {
        if !value.is_null() {
            lines.push(format!("{sign}{path}: {value}"));
        }
    }
}

fn lease(asked: &Asked<'_>) -> Result<()> {
    if asked.write.place.namespace != NODE_LEASES {
        let why = format!("can only access leases in the {NODE_LEASES:?} system namespace");
        return Err(asked.refusal(&why));
    }
    own(asked, "can only access node lease with the same name as the requesting node")
}

/// What has the name of the node.
fn own(asked: &Asked<'_>, why: &str) -> Result<()> {
    if asked.name() == asked.node { Ok(()) } else { Err(asked.refusal(why)) }
}

fn resource_slice(asked: &Asked<'_>) -> Result<()> {
    let (slice, what) = match asked.operation() {
        Operation::Create => (asked.new, "create"),
        Operation::Delete => (asked.old, "delete"),
        Operation::Update | Operation::Connect => return Ok(()),
    };
    if slice["spec"]["nodeName"] == asked.node {
        return Ok(());
    }
    let why =
        format!("can only {what} ResourceSlice with the same NodeName as the requesting node");
    Err(asked.refusal(&why))
}

/// A node asks only for certificates in its own name.
fn certificate(asked: &Asked<'_>) -> Result<()> {
    let signer = asked.new["spec"]["signerName"].as_str().unwrap_or_default();
    if asked.operation() != Operation::Create || !KUBELET_SIGNERS.contains(&signer) {
        return Ok(());
    }
    let subject = signing_request::subject(asked.new)
        .map_err(|why| asked.refusal(&format!("unable to parse csr: {why}")))?;
    let name = format!("system:node:{}", asked.node);
    if subject.common_name == name {
        return Ok(());
    }
    Err(asked.refusal(&format!("can only create a node CSR with CN={name}")))
}
