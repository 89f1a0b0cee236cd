//! `PodResizeValidator` refuses to resize a pod to more than its node can ever give.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use steersman_rules::quantity::Quantity;
use steersman_rules::{metadata, quota};

use super::fields::text;
use super::stored;
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Cause, Result, Status};

/// Looks whether the node of a pod can do what is asked.
pub(super) struct PodResizeValidator;

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
    #[serde(default, deserialize_with = "stored::absent")]
    status: NodeStatus,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, deserialize_with = "stored::absent")]
    labels: Labels,
}

#[derive(Default, Deserialize)]
struct Labels {
    #[serde(rename = "kubernetes.io/os")]
    os: Option<String>,
}

#[derive(Default, Deserialize)]
struct NodeStatus {
    #[serde(default)]
    allocatable: Value,
}

impl Plugin for PodResizeValidator {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.operation == Operation::Update
            && write.subresource == "resize"
            && write.resource.is("", "pods")
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some((pod, old)) = new.zip(old) else { return Ok(()) };
            let [is, was] = [pod, old].map(|pod| metadata::number(pod, "generation"));
            let node = text(&pod["spec"]["nodeName"]);
            if node.is_empty() || is == was {
                return Ok(());
            }
            let key = format!("/registry/minions/{node}");
            let Some(found) = stored::known::<Node>(write.server, &key).await? else {
                return Err(write.forbidden(pod, &format!("node {node:?} not found")));
            };
            if let Some(os) = found.metadata.labels.os.filter(|os| os != "linux") {
                let why =
                    format!("pod resize is only supported on linux nodes, node {node:?} is {os:?}");
                return Err(refused(&write, pod, &why, "UnsupportedPlatform"));
            }
            let lacking = lacking(&pod["spec"], &found.status.allocatable);
            if lacking.is_empty() {
                return Ok(());
            }
            let lacking = lacking.join("; ");
            let why = format!("node didn't have enough allocatable resources: {lacking}");
            Err(refused(&write, pod, &why, "NodeCapacity"))
        })
    }
}

fn refused(write: &Attributes<'_>, pod: &Value, why: &str, reason: &str) -> Status {
    let cause = Cause { reason: reason.to_owned(), ..Cause::default() };
    write.forbidden_because(pod, why, vec![cause])
}

/// What a pod asks for that its node does not have.
fn lacking(spec: &Value, allocatable: &Value) -> Vec<String> {
    let mut lacking = Vec::new();
    for (resource, read) in [
        ("cpu", Quantity::milli_value as fn(Quantity) -> i64),
        ("memory", Quantity::value as fn(Quantity) -> i64),
    ] {
        let requested = requested(spec, resource);
        let has = amount(&allocatable[resource]);
        if requested > has {
            let [requested, has] = [requested, has].map(read);
            lacking.push(format!("{resource}, requested: {requested}, allocatable: {has}"));
        }
    }
    lacking
}

/// How much of a resource a pod asks for in all.
fn requested(spec: &Value, resource: &str) -> Quantity {
    quota::requests_of_spec(spec).get(resource).unwrap_or(Quantity::ZERO)
}

fn amount(value: &Value) -> Quantity {
    Quantity::of(value).unwrap_or(Quantity::ZERO)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use steersman_rules::quantity::Quantity;

    use super::requested;

    #[test]
    fn sidecars_count_beside_containers_and_beside_what_starts_after_them() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let sidecar = |cpu: &str| {
            let mut container = container(cpu);
            container["restartPolicy"] = "Always".into();
            container
        };
        let cases: [(Value, &str); 5] = [
            (json!({"containers": [container("1"), container("500m")]}), "1500m"),
            (json!({"containers": [container("1")], "initContainers": [container("2")]}), "2"),
            (
                json!({
                    "containers": [container("1")],
                    "initContainers": [container("2"), sidecar("1"), container("2")],
                }),
                "3",
            ),
            (json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}), "1250m"),
            (
                json!({
                    "containers": [container("1")], "resources": {"requests": {"cpu": "4"}},
                    "overhead": {"cpu": "1"},
                }),
                "5",
            ),
        ];
        for (spec, cpu) in cases {
            assert_eq!(requested(&spec, "cpu"), Quantity::parse(cpu).unwrap(), "{spec}");
        }
    }
}
