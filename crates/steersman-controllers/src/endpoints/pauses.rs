//! How often the Endpoints of a Service with many Pods are brought up to date.
//!
//! Each time all of its Pods are read, and a thousand addresses may be written, decoded by whoever
//! watches, and kept in history, because one Pod has become ready. So a change is told at once, and those
//! that come right after it together: of a thousand Pods once a second. Slices tell of each at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use steersman::ObjectKey;
use tokio::time::Instant;

/// Services with fewer Pods than this do not pause.
const FEW: usize = 100;
/// How long the pause is for each Pod, and at most.
const PAUSE_PER_POD: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Which Services pause.
#[derive(Default)]
pub(super) struct Pauses {
    all: Mutex<HashMap<ObjectKey, Pause>>,
}

struct Pause {
    until: Instant,
    /// The version of the Service: what changes of it is told at once.
    service: Option<String>,
}

impl Pauses {
    /// Notes that a Service was looked at that has so many Pods, and that its Endpoints tell of them.
    pub(super) fn looked(&self, service: &Service, pods: usize) {
        let key = ObjectKey::of_meta(&service.metadata);
        let mut all = self.lock();
        if pods < FEW {
            all.remove(&key);
            return;
        }
        let count = u32::try_from(pods).unwrap_or(u32::MAX);
        let until = Instant::now() + PAUSE_PER_POD.saturating_mul(count).min(PAUSE_MAX);
        all.insert(key, Pause { until, service: service.metadata.resource_version.clone() });
    }

    /// How long a Service still pauses, if it does.
    pub(super) fn rest(&self, service: &Service) -> Option<Duration> {
        let all = self.lock();
        let pause = all.get(&ObjectKey::of_meta(&service.metadata))?;
        let rest = pause.until.saturating_duration_since(Instant::now());
        let is_same = pause.service == service.metadata.resource_version;
        (is_same && !rest.is_zero()).then_some(rest)
    }

    /// Forgets a Service that is gone.
    pub(super) fn forget(&self, service: &ObjectKey) {
        self.lock().remove(service);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Pause>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_more_pods_a_service_has_the_longer_it_pauses() {
        let version = |version: &str| -> Service {
            let metadata =
                json!({"name": "web", "namespace": "default", "resourceVersion": version});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let (pauses, web) = (Pauses::default(), version("1"));
        assert_eq!(pauses.rest(&web), None, "nobody has looked yet");
        for (pods, rest) in [(99, None), (100, Some(100)), (5_000, Some(1_000)), (7, None)] {
            pauses.looked(&web, pods);
            assert_eq!(pauses.rest(&web), rest.map(Duration::from_millis), "{pods}");
        }
        pauses.looked(&web, 400);
        tokio::time::advance(Duration::from_millis(300)).await;
        assert_eq!(pauses.rest(&web), Some(Duration::from_millis(100)));
        assert_eq!(pauses.rest(&version("2")), None, "the Service itself has changed");
        tokio::time::advance(Duration::from_millis(100)).await;
        assert_eq!(pauses.rest(&web), None);
        pauses.looked(&web, 400);
        pauses.forget(&ObjectKey::namespaced("default", "web"));
        assert_eq!(pauses.rest(&web), None);
    }
}
