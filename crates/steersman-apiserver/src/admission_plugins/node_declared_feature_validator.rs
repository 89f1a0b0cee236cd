//! `NodeDeclaredFeatureValidator` refuses a change of a pod that its node says it cannot follow.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use steersman_rules::metadata;

use super::fields::{items, text};
use super::stored;
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

/// The features that a change may need, by name.
const FEATURES: [(&str, Needs); 2] = [
    ("InPlacePodLevelResourcesVerticalScaling", |old, new| {
        let is_set = |spec: &Value| !spec["resources"].is_null();
        (is_set(old) || is_set(new)) && old["resources"] != new["resources"]
    }),
    ("InPlacePodVerticalScalingInitContainers", |old, new| {
        let [before, after] = [old, new].map(|spec| items(&spec["initContainers"]));
        before.iter().zip(after).any(|(before, after)| {
            before["restartPolicy"] != "Always" && before["resources"] != after["resources"]
        })
    }),
];

/// Whether going from one spec of a pod to another needs a feature.
type Needs = fn(&Value, &Value) -> bool;

/// Looks what the node of a pod declares.
pub(super) struct NodeDeclaredFeatureValidator;

#[derive(Deserialize)]
struct Node {
    #[serde(default, deserialize_with = "stored::absent")]
    status: NodeStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeStatus {
    #[serde(default, deserialize_with = "stored::absent")]
    declared_features: Vec<String>,
}

impl Plugin for NodeDeclaredFeatureValidator {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.operation == Operation::Update
            && matches!(write.subresource, "" | "resize")
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
            let node = text(&pod["spec"]["nodeName"]);
            let [is, was] = [pod, old].map(|pod| metadata::number(pod, "generation"));
            if node.is_empty() || is == was {
                return Ok(());
            }
            let needed = |(_, needs): &(&str, Needs)| needs(&old["spec"], &pod["spec"]);
            let mut needed: Vec<&str> =
                FEATURES.iter().filter(|one| needed(one)).map(|(name, _)| *name).collect();
            if needed.is_empty() {
                return Ok(());
            }
            let key = format!("/registry/minions/{node}");
            let Some(found) = stored::known::<Node>(write.server, &key).await? else {
                return Err(write.forbidden(pod, &format!("node {node:?} not found")));
            };
            needed.retain(|name| !found.status.declared_features.iter().any(|has| has == name));
            if needed.is_empty() {
                return Ok(());
            }
            let needed = needed.join(", ");
            let why = format!(
                "pod update requires features {needed} which are not available on node {node:?}"
            );
            Err(write.forbidden(pod, &why))
        })
    }
}
