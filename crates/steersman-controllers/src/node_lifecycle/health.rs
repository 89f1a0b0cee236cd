//! Whether a node has given signs of life lately.
//!
//! What counts is when they were seen here, not what time it was there: clocks differ. A node that
//! has never said that it is ready has longer, since it is only starting.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::settings::NodeLifecycleSettings;
use crate::node::{condition, readiness};

/// What a kubelet reports, and what nobody knows when it does not.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// What was last seen of a node's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Health {
    /// When it last gave a sign of life.
    pub(super) probe: Timestamp,
    /// What its condition `Ready` says about when it was sent; none if there is no such condition.
    heartbeat: Option<Option<Time>>,
}

/// What is to be done about a node's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Fine,
    /// Nothing before then.
    Until(Timestamp),
    /// It has been silent for too long.
    Silent,
}

impl Health {
    /// What is known of a node when this is seen of it.
    pub(super) fn seen(saved: Option<&Self>, node: &Node, now: Timestamp) -> Self {
        let ready = condition(node, "Ready");
        let heartbeat = ready.map(|ready| ready.last_heartbeat_time.clone());
        let created = node.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        let probe = match saved {
            None if heartbeat.is_none() => created,
            Some(saved) if saved.heartbeat == heartbeat => saved.probe,
            _ => now,
        };
        Self { probe, heartbeat }
    }
}

/// What is to be done about a node whose last sign of life was seen then.
pub(super) fn verdict(
    node: &Node,
    last_seen: Timestamp,
    now: Timestamp,
    settings: &NodeLifecycleSettings,
) -> Verdict {
    let grace = match readiness(node) {
        Some("Unknown") => return Verdict::Fine,
        Some(_) => settings.monitor_grace_period,
        None => settings.startup_grace_period,
    };
    let check = next_look(last_seen + grace, settings.monitor_period);
    if now >= check { Verdict::Silent } else { Verdict::Until(check) }
}

/// When nodes, which are looked at so often, are for the first time after a moment.
fn next_look(after: Timestamp, period: Duration) -> Timestamp {
    let period = i128::try_from(period.as_millis().max(1)).unwrap_or(i128::MAX);
    let looks = i128::from(after.as_millisecond()).div_euclid(period) + 1;
    let next = i64::try_from(looks.saturating_mul(period))
        .ok()
        .and_then(|at| Timestamp::from_millisecond(at).ok());
    next.unwrap_or(Timestamp::MAX)
}

/// The Node, of which nobody knows how it is.
pub(super) fn unknown(node: &Node, now: &Time) -> Node {
    let mut node = node.clone();
    let created = node.metadata.creation_timestamp.clone();
    let conditions = node.status.get_or_insert_default().conditions.get_or_insert_default();
    for type_ in REPORTED {
        let Some(known) = conditions.iter_mut().find(|known| known.type_ == type_) else {
            conditions.push(NodeCondition {
                type_: type_.into(),
                status: "Unknown".into(),
                reason: Some("NodeStatusNeverUpdated".into()),
                message: Some("Kubelet never posted node status.".into()),
                last_heartbeat_time: created.clone(),
                last_transition_time: Some(now.clone()),
            });
            continue;
        };
        if known.status != "Unknown" {
            known.status = "Unknown".into();
            known.reason = Some("NodeStatusUnknown".into());
            known.message = Some("Kubelet stopped posting node status.".into());
            known.last_transition_time = Some(now.clone());
        }
    }
    node
}
