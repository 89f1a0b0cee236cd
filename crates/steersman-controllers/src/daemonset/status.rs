//! The status of a DaemonSet, computed from nodes and Pods.

use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSetStatus;

use super::nodes::placement;
use super::plan::{Daemon, node_name};
use crate::pod::{self, Availability};

impl Daemon<'_> {
    /// The status, after so many names of revisions were taken.
    pub(super) fn status(&self, collisions: Option<i32>) -> DaemonSetStatus {
        let mut status = DaemonSetStatus {
            observed_generation: self.set.metadata.generation,
            collision_count: collisions,
            conditions: self.set.status.as_ref().and_then(|status| status.conditions.clone()),
            ..DaemonSetStatus::default()
        };
        let (mut available, mut updated) = (0, 0);
        for node in self.nodes {
            // Of several Pods the one that stays counts.
            let pod = self.pods.get(node_name(node)).and_then(|pods| pods.first());
            if !placement(self.set, node).runs {
                status.number_misscheduled += i32::from(pod.is_some());
                continue;
            }
            status.desired_number_scheduled += 1;
            let Some(pod) = pod else { continue };
            status.current_number_scheduled += 1;
            status.number_ready += i32::from(pod::is_ready(pod));
            available += i32::from(self.is_available(pod));
            updated += i32::from(self.is_updated(pod));
        }
        let nonzero = |count: i32| (count != 0).then_some(count); // Kubernetes leaves zeros out
        status.updated_number_scheduled = nonzero(updated);
        status.number_available = nonzero(available);
        status.number_unavailable = nonzero(status.desired_number_scheduled - available);
        status
    }

    /// When the next Pod that is ready becomes available, if nothing happens to it.
    pub(super) fn next_available(&self) -> Option<Duration> {
        let pods = self.pods.values().flatten();
        let rests = pods.filter_map(|pod| {
            match pod::availability(pod, self.min_ready_seconds(), self.now) {
                Availability::In(rest) => Some(rest),
                Availability::Available | Availability::NotReady => None,
            }
        });
        rests.min()
    }
}
