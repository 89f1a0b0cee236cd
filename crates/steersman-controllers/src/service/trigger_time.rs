//! When what led to a change of endpoints happened: the earliest of what changed since they were
//! looked at last. Who measures how long changes take to arrive needs it.
//!
//! As in Kubernetes a time is not known where a Pod changed twice in between, where one is gone, and
//! where a Service itself was changed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use steersman::ObjectKey;

/// What was known of each Service when it was last looked at.
#[derive(Default)]
pub(crate) struct TriggerTimes {
    known: Mutex<HashMap<ObjectKey, Known>>,
}

struct Known {
    service: Option<Timestamp>,
    /// By name.
    pods: HashMap<String, Seen>,
    /// How often it was looked.
    looks: u64,
}

/// A Pod at the last look.
struct Seen {
    /// When it last became ready or ceased to be.
    changed: Timestamp,
    /// At which look.
    at: u64,
}

impl TriggerTimes {
    /// The time to tell, if there is one, from what has changed since the last call.
    pub(crate) fn next(&self, service: &Service, pods: &[Arc<Pod>]) -> Option<Timestamp> {
        let created = service.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let mut all = self.lock();
        let known = all.entry(ObjectKey::of_meta(&service.metadata));
        let known = known.or_insert_with(|| Known {
            service: created,
            pods: HashMap::with_capacity(pods.len()),
            looks: 0,
        });
        let earliest = known.look(pods);
        let of_service = created.filter(|_| created > known.service);
        known.service = created;
        if known.looks == 1 { created } else { earliest.into_iter().chain(of_service).min() }
    }

    /// The same, where only these Pods have changed since the last call: those that are still there, and
    /// all by name.
    pub(crate) fn next_of(
        &self,
        service: &Service,
        pods: &[Arc<Pod>],
        changed: &HashSet<Arc<str>>,
    ) -> Option<Timestamp> {
        let mut all = self.lock();
        let known = all.get_mut(&ObjectKey::of_meta(&service.metadata))?;
        known.look_at(pods, changed)
    }

    /// Forgets a Service that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Takes in how all Pods are, and gives the earliest time of those that have changed. A Service may
    /// have thousands, of which one has.
    fn look(&mut self, pods: &[Arc<Pod>]) -> Option<Timestamp> {
        self.looks += 1;
        let (earliest, seen) = self.see(pods);
        if seen < self.pods.len() {
            let at = self.looks;
            self.pods.retain(|_, pod| pod.at == at);
        }
        earliest
    }

    /// The same where only some have changed.
    fn look_at(&mut self, pods: &[Arc<Pod>], changed: &HashSet<Arc<str>>) -> Option<Timestamp> {
        self.looks += 1;
        let (earliest, _) = self.see(pods);
        let at = self.looks;
        for name in changed {
            if self.pods.get(&**name).is_some_and(|pod| pod.at != at) {
                self.pods.remove(&**name);
            }
        }
        earliest
    }

    /// Takes in how Pods are; gives the earliest time of those that have changed, and how many have any.
    fn see(&mut self, pods: &[Arc<Pod>]) -> (Option<Timestamp>, usize) {
        let at = self.looks;
        let (mut earliest, mut seen) = (None::<Timestamp>, 0);
        for pod in pods {
            let Some((name, changed)) = pod.metadata.name.as_deref().zip(of_pod(pod)) else {
                continue;
            };
            seen += 1;
            let before =
                self.pods.get_mut(name).map(|it| std::mem::replace(it, Seen { changed, at }));
            if before.as_ref().is_none_or(|before| changed > before.changed) {
                earliest = Some(earliest.map_or(changed, |time| time.min(changed)));
            }
            if before.is_none() {
                self.pods.insert(name.to_owned(), Seen { changed, at });
            }
        }
        (earliest, seen)
    }
}

fn of_pod(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pods(of: &[(&str, i64)]) -> Vec<Arc<Pod>> {
        let pod = |(name, second): &(&str, i64)| {
            let time = Timestamp::from_second(*second).unwrap().to_string();
            let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": time}]);
            let pod = json!({"metadata": {"name": name}, "status": {"conditions": ready}});
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        of.iter().map(pod).collect()
    }

    #[test]
    fn the_earliest_of_what_has_changed_is_told() {
        let times = TriggerTimes::default();
        let created = Timestamp::from_second(3).unwrap().to_string();
        let metadata = json!({"name": "web", "namespace": "default", "creationTimestamp": created});
        let web: Service = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let next = |of: &[(&str, i64)]| times.next(&web, &pods(of)).map(Timestamp::as_second);
        assert_eq!(next(&[("a", 1), ("b", 5)]), Some(3), "a new one: its own time");
        assert_eq!(next(&[("a", 1), ("b", 5)]), None, "nothing has changed");
        assert_eq!(next(&[("a", 9), ("b", 7)]), Some(7));
        assert_eq!(next(&[("a", 9)]), None, "when one went is not known");
        assert_eq!(next(&[("a", 9), ("b", 11)]), Some(11));
        times.forget(&ObjectKey::namespaced("default", "web"));
        assert_eq!(next(&[("a", 9)]), Some(3));
    }

    #[test]
    fn a_look_at_those_that_have_changed_tells_what_a_look_at_all_does() {
        let web: Service = serde_json::from_value(json!({"metadata": {"name": "web"}})).unwrap();
        let (whole, part) = (TriggerTimes::default(), TriggerTimes::default());
        let mut now = vec![("a", 1), ("b", 5), ("c", 5)];
        whole.next(&web, &pods(&now));
        part.next(&web, &pods(&now));
        for (changed, is) in
            [("a", Some(9)), ("b", None), ("d", Some(8)), ("b", Some(7)), ("c", Some(5))]
        {
            now.retain(|(name, _)| *name != changed);
            now.extend(is.map(|second| (changed, second)));
            let seen: Vec<_> = is.map(|second| (changed, second)).into_iter().collect();
            let names = HashSet::from([Arc::from(changed)]);
            let told = part.next_of(&web, &pods(&seen), &names);
            assert_eq!(told, whole.next(&web, &pods(&now)), "{changed}");
        }
    }
}
