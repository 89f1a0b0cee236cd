//! `LimitPodHardAntiAffinityTopology` lets pods keep others off their node, and off nothing larger.

use futures::future::{self, BoxFuture};
use serde_json::Value;
use steersman_rules::metadata;

use super::fields::{items, text};
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

const HOSTNAME: &str = "kubernetes.io/hostname";

/// Refuses pods that require to be alone in more than a node.
pub(super) struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.writes("", "pods")
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        let pod = new.unwrap_or(&Value::Null);
        let affinity = &pod["spec"]["affinity"]["podAntiAffinity"];
        let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
        let mut keys = items(required).iter().map(|term| text(&term["topologyKey"]));
        let refused = keys.find(|key| *key != HOSTNAME).map(|key| {
            let why = format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only \
                 key {HOSTNAME} is allowed"
            );
            let named = write.resource.named(metadata::text(pod, "name"));
            Status::forbidden(named, &why, Vec::new())
        });
        Box::pin(future::ready(refused.map_or(Ok(()), Err)))
    }
}
