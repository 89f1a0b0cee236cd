//! The Pods that a namespace has when more is asked of them than before: nothing happens to them,
//! but whoever asks is told.
//!
//! Pods of one controller are alike, so the first of each are looked at before the others, for
//! there are limits to how many are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use steersman_store::{Entry, RangeRequest, StoreError};
use tokio::time::Instant;

use super::configuration::Configuration;
use super::evaluate::evaluate;
use super::policy::LevelVersion;
use super::subject::Pod;
use crate::state::Server;

/// The most Pods that are looked at.
const PODS_MAX: usize = 3000;

/// How long Pods are looked at; at most half of it, which are to be looked at first.
const TIME_MAX: Duration = Duration::from_secs(1);

/// How many are looked at before others have their turn.
const AT_ONCE: usize = 64;

/// What whoever changes what is enforced in a namespace is told of its Pods.
pub(super) async fn warnings(
    server: &Arc<Server>,
    config: &Configuration,
    namespace: &str,
    enforce: LevelVersion,
) -> Vec<String> {
    let now = Instant::now();
    let Ok(pods) = pods(server, namespace).await else {
        return vec!["failed to list pods while checking new PodSecurity enforce level".to_owned()];
    };
    let (briefs, unread) = briefs(&pods, config, now + TIME_MAX / 2).await;
    let pods = prioritized(briefs.into_iter());
    let mut review = Review { total: pods.len() + unread, ..Review::default() };
    for pod in pods.iter().take(PODS_MAX) {
        review.look_at(pod, enforce);
        if Instant::now() > now + TIME_MAX {
            break;
        }
        if review.looked_at.is_multiple_of(AT_ONCE) {
            tokio::task::yield_now().await;
        }
    }
    review.warnings(namespace, enforce)
}

/// What of Pods decides when they are looked at, and how many there were no time for until `end`.
async fn briefs<'a>(
    pods: &'a [Entry],
    config: &Configuration,
    end: Instant,
) -> (Vec<Brief<'a>>, usize) {
    let mut briefs = Vec::new();
    for (n, some) in pods.chunks(AT_ONCE).enumerate() {
        if n > 0 && Instant::now() >= end {
            return (briefs, pods.len() - n * AT_ONCE);
        }
        briefs.extend(some.iter().filter_map(|entry| Brief::of(entry, config)));
        tokio::task::yield_now().await;
    }
    (briefs, 0)
}

async fn pods(server: &Arc<Server>, namespace: &str) -> Result<Vec<Entry>, StoreError> {
    let prefix = format!("/registry/pods/{namespace}/");
    let request = RangeRequest { prefix, stale: true, ..RangeRequest::default() };
    Ok(server.store.range(request).await?.entries)
}

/// What of a Pod decides when it is looked at.
struct Brief<'a> {
    name: String,
    /// The uid of its controller.
    controller: Option<String>,
    stored: &'a [u8],
}

#[derive(Deserialize)]
struct Stored {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

#[derive(Deserialize)]
struct OwnerReference {
    uid: String,
    #[serde(default)]
    controller: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    runtime_class_name: String,
}

impl<'a> Brief<'a> {
    /// `None` for a Pod that is exempt.
    fn of(entry: &'a Entry, config: &Configuration) -> Option<Self> {
        let stored: Stored = serde_json::from_slice(&entry.value).ok()?;
        if config.exempts_runtime_class(&stored.spec.runtime_class_name) {
            return None;
        }
        let Metadata { name, owner_references } = stored.metadata;
        let controller = owner_references.into_iter().find(|owner| owner.controller);
        Some(Self { name, controller: controller.map(|owner| owner.uid), stored: &entry.value })
    }
}

/// The Pods, with the first of each controller before the others of it.
fn prioritized<'a>(pods: impl Iterator<Item = Brief<'a>>) -> Vec<Brief<'a>> {
    let mut seen = BTreeSet::new();
    let is_first = |pod: &Brief<'_>| pod.controller.clone().is_none_or(|uid| seen.insert(uid));
    let (mut first, others): (Vec<_>, Vec<_>) = pods.partition(is_first);
    first.extend(others);
    first
}

/// What was found so far.
#[derive(Default)]
struct Review {
    total: usize,
    looked_at: usize,
    /// What is wrong with Pods: the first of those by name, and how many there are.
    found: BTreeMap<String, (String, usize)>,
}

impl Review {
    fn look_at(&mut self, pod: &Brief<'_>, enforce: LevelVersion) {
        self.looked_at += 1;
        let object: Value = serde_json::from_slice(pod.stored).unwrap_or_default();
        let found = evaluate(enforce, Pod::of(&object));
        if found.is_empty() {
            return;
        }
        let (first, count) = self.found.entry(found.reasons()).or_default();
        if *count == 0 || pod.name < *first {
            first.clone_from(&pod.name);
        }
        *count += 1;
    }

    fn warnings(self, namespace: &str, enforce: LevelVersion) -> Vec<String> {
        let Self { total, looked_at, found } = self;
        let mut warnings = Vec::new();
        if looked_at < total {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {looked_at} of \
                 {total} existing pods"
            ));
        }
        if !found.is_empty() {
            warnings.push(format!(
                "existing pods in namespace {namespace:?} violate the new PodSecurity enforce \
                 level \"{enforce}\""
            ));
        }
        let mut of_pods: Vec<String> = found
            .into_iter()
            .map(|(reasons, (first, count))| match count {
                1 => format!("{first}: {reasons}"),
                2 => format!("{first} (and 1 other pod): {reasons}"),
                more => format!("{first} (and {} other pods): {reasons}", more - 1),
            })
            .collect();
        of_pods.sort();
        warnings.extend(of_pods);
        warnings
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use steersman_store::{Entry, Revision};
    use tokio::time::Instant;

    use super::{AT_ONCE, Configuration, TIME_MAX, briefs};

    fn pod(n: usize) -> Entry {
        let value = format!(r#"{{"metadata":{{"name":"pod-{n}"}}}}"#);
        let key = format!("/registry/pods/default/pod-{n}");
        let at = Revision::default();
        Entry { key: key.into(), value: Bytes::from(value), created: at, modified: at }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_pods_are_read_than_there_is_time_for() {
        let pods: Vec<Entry> = (0..10 * AT_ONCE).map(pod).collect();
        let config = Configuration::default();
        let (read, unread) = briefs(&pods, &config, Instant::now() + TIME_MAX).await;
        assert_eq!((read.len(), unread), (pods.len(), 0));
        let (read, unread) = briefs(&pods, &config, Instant::now()).await;
        assert_eq!((read.len(), unread), (AT_ONCE, pods.len() - AT_ONCE));
    }
}
