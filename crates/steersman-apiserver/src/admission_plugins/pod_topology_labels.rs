//! `PodTopologyLabels` tells pods the zone and the region of their node, as labels.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use super::fields::{set, text};
use super::stored;
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

/// Copies labels of a node to what is bound to it.
pub(super) struct PodTopologyLabels;

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, deserialize_with = "stored::absent")]
    labels: Labels,
}

/// Which labels are copied.
#[derive(Default, Deserialize)]
struct Labels {
    #[serde(rename = "topology.kubernetes.io/zone")]
    zone: Option<String>,
    #[serde(rename = "topology.kubernetes.io/region")]
    region: Option<String>,
}

impl Plugin for PodTopologyLabels {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.operation == Operation::Create
            && matches!(write.subresource, "" | "binding")
            && write.resource.is("", "pods")
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let node = match write.subresource {
                "" => text(&new["spec"]["nodeName"]),
                _ if new["target"]["kind"] == "Node" => text(&new["target"]["name"]),
                _ => "",
            };
            if node.is_empty() {
                return Ok(false);
            }
            let key = format!("/registry/minions/{node}");
            let node: Option<Metadata> = stored::known_metadata(write.server, &key).await?;
            // Nobody asks that a node exists, so neither does this.
            let labels = node.map(|node| node.labels).unwrap_or_default();
            Ok(copy(labels, &mut new["metadata"]))
        })
    }
}

fn copy(labels: Labels, metadata: &mut Value) -> bool {
    let mut changed = false;
    for (key, value) in [(ZONE, labels.zone), (REGION, labels.region)] {
        let Some(value) = value else { continue };
        if !metadata["labels"].is_object() {
            metadata["labels"] = serde_json::json!({});
        }
        changed |= set(&mut metadata["labels"], key, value);
    }
    changed
}
