//! Monitors: one reflector for each resource that a quota counts, each feeding a tally.
//!
//! They are started by the first quota that counts a resource and stop with the last. There is no
//! cache beside the tallies: they hold all that is needed of an object.

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::ResourceQuota;
use serde_json::Value;
use steersman::informer::Event;
use steersman::reflector::{Delta, Deltas, Reflector, Selection};
use steersman::{Client, ObjectKey, Result};
use steersman_rules::quota::Evaluator;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::document::Document;
use super::interest::Interest;
use super::tally::Tally;
use crate::discovery::{self, ResourceName, ServedResource};

/// Deltas waiting between a reflector and its tally.
const DELTAS_MAX: usize = 256;
/// How long to wait before a monitor that panicked starts anew.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The monitors of all resources that quotas count.
pub(super) struct Monitors {
    /// Never held across an await; locked before `running` where both are.
    interest: Arc<Mutex<Interest>>,
    running: Mutex<HashMap<ResourceName, Monitor>>,
    wake: mpsc::Sender<ObjectKey>,
}

/// Follows one resource for as long as it lives.
struct Monitor {
    followed: Arc<Followed>,
    _task: AbortOnDropHandle<()>,
}

/// A resource that is followed.
pub(super) struct Followed {
    name: ResourceName,
    tally: Mutex<Tally>,
    synced: watch::Sender<bool>,
    /// It is no longer served in this version, or not at all.
    lost: AtomicBool,
}

impl Monitors {
    /// Monitors that wake quotas through this channel.
    pub(super) fn new(wake: mpsc::Sender<ObjectKey>) -> Self {
        Self { interest: Arc::default(), running: Mutex::default(), wake }
    }

    /// What is known of quotas.
    pub(super) fn interest(&self) -> MutexGuard<'_, Interest> {
        lock(&self.interest)
    }

    /// Takes in what happened to a quota, and stops what nobody counts any more.
    pub(super) fn observe(&self, event: &Event<ResourceQuota>) {
        let mut interest = self.interest();
        match event {
            Event::Deleted { object, .. } => interest.forget(object.key()),
            event => {
                if let Some(quota) = event.object().object() {
                    interest.observe(&quota, Instant::now());
                }
            }
        }
        lock(&self.running).retain(|resource, _| interest.has(resource));
    }

    /// Follows a resource, if it is served and a quota still counts it.
    pub(super) async fn follow(
        &self,
        resource: &ResourceName,
        client: &Client,
    ) -> Result<Option<Arc<Followed>>> {
        if let Some(monitor) = lock(&self.running).get(resource)
            && !monitor.followed.is_lost()
        {
            return Ok(Some(Arc::clone(&monitor.followed)));
        }
        let (group, plural) = resource;
        let served = discovery::served_resource(client, group, plural).await?;
        let served = served.filter(is_countable);
        let interest = self.interest();
        let mut running = lock(&self.running);
        running.retain(|_, monitor| !monitor.followed.is_lost());
        let evaluator = Evaluator::of(group, plural).filter(|_| interest.has(resource));
        let (Some(served), Some(evaluator)) = (served, evaluator) else { return Ok(None) };
        let monitor = running.entry(resource.clone()).or_insert_with(|| {
            let followed = Arc::new(Followed::new(resource.clone(), evaluator.clone()));
            let feed = Feed {
                followed: Arc::clone(&followed),
                interest: Arc::clone(&self.interest),
                wake: self.wake.clone(),
            };
            let client = client.kube().clone();
            let task = match evaluator.reads_objects() {
                true => tokio::spawn(monitor::<false>(client, served, feed)),
                false => tokio::spawn(monitor::<true>(client, served, feed)),
            };
            Monitor { followed, _task: AbortOnDropHandle::new(task) }
        });
        Ok(Some(Arc::clone(&monitor.followed)))
    }
}

/// Whether quotas can count the objects of a resource.
fn is_countable(resource: &ServedResource) -> bool {
    resource.namespaced && resource.has_verbs(&["create", "list", "watch", "delete"])
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Followed {
    fn new(name: ResourceName, evaluator: Evaluator) -> Self {
        Self {
            name,
            tally: Mutex::new(Tally::new(evaluator)),
            synced: watch::Sender::new(false),
            lost: AtomicBool::new(false),
        }
    }

    /// What its objects use. Never held across an await.
    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    /// Whether it is no longer followed, because it is not served as it was.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until it was read for the first time, or is lost.
    pub(super) async fn synced(&self) {
        // The sender is here, so it cannot end.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }
}

/// Whether a reflector says that its kind is no longer served.
fn is_loss<T>(delta: &Delta<T>) -> bool {
    matches!(delta, Delta::Replaced { version: None, objects, .. } if objects.is_empty())
}

/// What a monitor feeds.
struct Feed {
    followed: Arc<Followed>,
    interest: Arc<Mutex<Interest>>,
    wake: mpsc::Sender<ObjectKey>,
}

/// Follows a resource until it is no longer served. A panic may have lost a delta, so then
/// everything is read anew.
async fn monitor<const PARTIAL: bool>(client: kube::Client, resource: ServedResource, feed: Feed) {
    while !feed.followed.is_lost() {
        let everything = Selection::default();
        let (reflector, deltas) =
            Reflector::channel(client.clone(), &resource.api, everything, DELTAS_MAX);
        let both = async { tokio::join!(reflector.run(), feed.take_all::<PARTIAL>(deltas)) };
        if AssertUnwindSafe(both).catch_unwind().await.is_err() {
            tracing::error!(resource = resource.api.plural, "monitor panicked; relisting");
            tokio::time::sleep(RESTART_DELAY).await;
        }
    }
}

impl Feed {
    async fn take_all<const PARTIAL: bool>(&self, mut deltas: Deltas<Document<PARTIAL>>) {
        loop {
            let batch = deltas.pop_batch(DELTAS_MAX).await;
            if batch.is_empty() {
                return;
            }
            let mut changed = BTreeSet::new();
            for delta in batch {
                if is_loss(&delta) {
                    self.followed.lost.store(true, Ordering::Relaxed);
                    self.followed.synced.send_replace(true);
                    self.wake(None).await;
                    return;
                }
                changed.extend(self.take(delta));
                self.followed.synced.send_replace(true);
            }
            for namespace in changed {
                self.wake(Some(&namespace)).await;
            }
        }
    }

    /// Takes one delta into the tally; says in which namespaces quotas have to be counted.
    fn take<const PARTIAL: bool>(&self, delta: Delta<Document<PARTIAL>>) -> BTreeSet<Arc<str>> {
        let mut tally = self.followed.tally();
        match delta {
            Delta::Replaced { objects, skipped, .. } => {
                let objects = objects.into_iter().map(Document::into_parts);
                let objects: Vec<(ObjectKey, Value)> = objects.collect();
                tally.replace(&objects, &skipped)
            }
            Delta::Applied(object) | Delta::Reread(object) => {
                let (key, object) = object.into_parts();
                tally.observe(&key, &object).into_iter().collect()
            }
            Delta::Deleted(object) => tally.remove(&object.into_parts().0).into_iter().collect(),
            Delta::DeletedKey { key, .. } => tally.remove(&key).into_iter().collect(),
            Delta::Bookmark { .. } => BTreeSet::new(),
        }
    }

    /// Wakes the quotas of a namespace, or of all, that count this resource.
    async fn wake(&self, namespace: Option<&str>) {
        let quotas = lock(&self.interest).of(&self.followed.name, namespace);
        for quota in quotas {
            // Nobody listens only when the controller ends.
            let _ = self.wake.send(quota).await;
        }
    }
}
