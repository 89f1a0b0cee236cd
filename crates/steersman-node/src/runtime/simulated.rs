//! A runtime without containers: everything starts at once, runs for ever, and stops when its
//! moment of termination is over.
//!
//! Of Pods that run it remembers nothing: what it tells of them follows from the Pod alone, so a
//! restart changes nothing. Of those that stop it remembers since when.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman::Result;
use tokio::time::Instant;

use super::{ContainerRuntime, StartedContainer, Stopping};

pub(crate) struct Simulated {
    /// How long containers take to end when they are told to.
    termination: Duration,
    /// By the Pod's uid: when it was told to stop.
    stopping: Mutex<HashMap<String, Instant>>,
}

impl Simulated {
    /// A runtime whose containers take so long to end.
    pub(crate) fn new(termination: Duration) -> Self {
        Self { termination, stopping: Mutex::default() }
    }
}

impl ContainerRuntime for Simulated {
    async fn run(&self, pod: &Pod) -> Result<Vec<StartedContainer>> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let Some(spec) = &pod.spec else {
            return Ok(Vec::new());
        };
        let all = spec.init_containers.iter().flatten().chain(&spec.containers);
        let all = all.map(|container| (&container.name, &container.image));
        let added = spec.ephemeral_containers.iter().flatten();
        let added = added.map(|container| (&container.name, &container.image));
        Ok(all.chain(added).map(|(name, image)| started(uid, name, image.as_deref())).collect())
    }

    async fn stop(&self, pod: &Pod) -> Result<Stopping> {
        let grace = pod.metadata.deletion_grace_period_seconds;
        let grace = grace.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        let takes = grace.map_or(self.termination, |grace| grace.min(self.termination));
        if takes.is_zero() {
            return Ok(Stopping::Done);
        }
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let since = stopping.entry(uid).or_insert_with(Instant::now);
        let left = takes.saturating_sub(since.elapsed());
        Ok(if left.is_zero() { Stopping::Done } else { Stopping::Takes(left) })
    }

    fn forget(&self, uid: &str) {
        self.stopping.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

fn started(uid: &str, name: &str, image: Option<&str>) -> StartedContainer {
    StartedContainer {
        name: name.to_owned(),
        id: format!("simulated://{uid}/{name}"),
        image_id: format!("simulated://{}", image.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(grace: Option<i64>) -> Pod {
        let pod = json!({"metadata": {"uid": "u", "deletionGracePeriodSeconds": grace}});
        serde_json::from_value(pod).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn containers_take_their_moment_to_end_but_never_longer_than_the_grace_period() {
        let takes = |millis| Stopping::Takes(Duration::from_millis(millis));
        for (termination, grace, first) in [
            (0, Some(30), Stopping::Done),
            (1000, Some(30), takes(1000)),
            (5000, Some(2), takes(2000)),
            (1000, Some(0), Stopping::Done),
            (1000, None, takes(1000)),
        ] {
            let runtime = Simulated::new(Duration::from_millis(termination));
            assert_eq!(runtime.stop(&pod(grace)).await.unwrap(), first, "{termination} {grace:?}");
        }
        let runtime = Simulated::new(Duration::from_secs(10));
        runtime.stop(&pod(Some(30))).await.unwrap();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(runtime.stop(&pod(Some(30))).await.unwrap(), takes(7000));
        assert_eq!(runtime.stop(&pod(Some(3))).await.unwrap(), Stopping::Done, "grace cut short");
        runtime.forget("u");
        assert_eq!(runtime.stop(&pod(Some(30))).await.unwrap(), takes(10000));
    }
}
