//! How long to wait before a container is started again, or its image pulled again: 10 seconds, then
//! twice as long each time, up to 5 minutes. With another image or other resources it begins anew.
//!
//! As in a kubelet this is known to nobody else, and forgotten with the process.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};

use super::anew::Anew;
use crate::runtime::StartError;

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const MAX: SignedDuration = SignedDuration::from_secs(300);
/// What went well for so long begins anew.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_secs(600);

/// How long to wait since something was tried last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backoff {
    pub(super) delay: SignedDuration,
    /// When it was tried last.
    pub(super) since: Timestamp,
}

impl Backoff {
    /// How long to wait the next time, when something that failed at `failed` is tried now.
    pub(super) fn next(last: Option<&Self>, failed: Timestamp, now: Timestamp) -> Self {
        let delay = match last.filter(|last| !last.is_forgotten(failed)) {
            Some(last) => (last.delay + last.delay).min(MAX),
            None => FIRST,
        };
        Self { delay, since: now }
    }

    /// Whether what failed at this moment went well for so long before that it does not count.
    pub(super) fn is_forgotten(&self, failed: Timestamp) -> bool {
        failed.duration_since(self.since) > FORGOTTEN_AFTER
    }
}

/// What trouble with a container belongs to: another one may have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Definition {
    image: Option<String>,
    resources: Option<ResourceRequirements>,
}

impl Definition {
    /// That of the container of this name.
    pub(super) fn of(spec: &PodSpec, name: &str) -> Self {
        let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
        if let Some(found) = all.find(|container| container.name == name) {
            return Self { image: found.image.clone(), resources: found.resources.clone() };
        }
        let mut added = spec.ephemeral_containers.iter().flatten();
        let found = added.find(|container| container.name == name);
        Self { image: found.and_then(|found| found.image.clone()), resources: None }
    }
}

/// What is known of the trouble with one container.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trouble {
    /// What it was like.
    pub(super) of: Definition,
    /// Since it was restarted last.
    pub(super) restart: Option<Backoff>,
    /// Since it could not be started, and why.
    pub(super) start: Option<(Backoff, StartError)>,
    /// When the last one was made and ended at once, and why.
    pub(super) failed_run: Option<(Timestamp, StartError)>,
}

/// A container of a Pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose<'a> {
    /// Of the Pod.
    pub(super) uid: &'a str,
    pub(super) spec: &'a PodSpec,
    pub(super) name: &'a str,
}

/// Trouble by the name of the container.
pub(super) type Troubles = HashMap<String, Trouble>;

/// The trouble with all Pods, by their uids.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pods: Mutex<HashMap<String, Troubles>>,
    /// The containers that were stopped only to be started as they now are in their Pods, by uid and
    /// name, with how many were started before them.
    replaced: Mutex<HashMap<String, HashMap<String, i32>>>,
    /// The containers that count as if they had never been there, by uid.
    anew: Mutex<HashMap<String, Anew>>,
    /// The Pods of which people were told that their time is up, by uid.
    overdue: Mutex<HashSet<String>>,
    /// The Pods that have to go for others, by uid, and whether people were told.
    victims: Mutex<HashMap<String, bool>>,
    /// The Pods that wait for those to be gone, by uid.
    preemptors: Mutex<HashMap<String, Vec<String>>>,
}

impl Memory {
    pub(super) fn of(&self, uid: &str) -> Troubles {
        locked(&self.pods).get(uid).cloned().unwrap_or_default()
    }

    /// Notes that a container that ended at `failed` is started again.
    pub(super) fn restarted(&self, whose: Whose<'_>, failed: Timestamp, now: Timestamp) {
        self.change(whose, |trouble| {
            trouble.restart = Some(Backoff::next(trouble.restart.as_ref(), failed, now));
        });
    }

    /// Notes that a container could not be started. Only an image is waited for ever longer.
    pub(super) fn not_started(&self, whose: Whose<'_>, why: StartError, now: Timestamp) {
        self.change(whose, |trouble| {
            let last = trouble.start.as_ref().filter(|(_, last)| is_pull(last) && is_pull(&why));
            let backoff = Backoff::next(last.map(|(backoff, _)| backoff), now, now);
            trouble.start = Some((backoff, why));
        });
    }

    /// Notes that a container was made and ended at once.
    pub(super) fn failed_run(&self, whose: Whose<'_>, why: StartError, now: Timestamp) {
        self.started(whose.uid, whose.name);
        self.change(whose, |trouble| trouble.failed_run = Some((now, why)));
    }

    /// Notes that a container was started.
    pub(super) fn started(&self, uid: &str, name: &str) {
        if let Some(trouble) = locked(&self.pods).get_mut(uid).and_then(|all| all.get_mut(name)) {
            trouble.start = None;
            trouble.failed_run = None;
        }
        if let Some(replaced) = locked(&self.replaced).get_mut(uid) {
            replaced.remove(name);
        }
    }

    /// Notes that a container is stopped only to be started as it now is in its Pod.
    pub(super) fn replaced(&self, uid: &str, name: &str, attempt: i32) {
        let mut all = locked(&self.replaced);
        all.entry(uid.to_owned()).or_default().insert(name.to_owned(), attempt);
    }

    /// Those of a Pod, with how many of their name were started before them.
    pub(super) fn replaced_of(&self, uid: &str) -> HashMap<String, i32> {
        locked(&self.replaced).get(uid).cloned().unwrap_or_default()
    }

    /// Notes that all containers of a Pod are started anew.
    pub(super) fn begin_anew(&self, uid: &str, containers: &[(String, i32)], now: Timestamp) {
        locked(&self.anew).entry(uid.to_owned()).or_default().begin(containers, now);
    }

    /// The containers of a Pod that are started anew.
    pub(super) fn anew_of(&self, uid: &str) -> Anew {
        locked(&self.anew).get(uid).cloned().unwrap_or_default()
    }

    /// Notes that the time of a Pod is up, and tells whether that is news.
    pub(super) fn overdue(&self, uid: &str) -> bool {
        locked(&self.overdue).insert(uid.to_owned())
    }

    /// Notes that Pods have to go for another.
    pub(super) fn preempt(&self, uid: &str, victims: &[String]) {
        let mut all = locked(&self.victims);
        for victim in victims {
            all.entry(victim.clone()).or_default();
        }
        locked(&self.preemptors).insert(uid.to_owned(), victims.to_vec());
    }

    /// Whether a Pod has to go for another, and if so whether that is news.
    pub(super) fn preempted(&self, uid: &str) -> Option<bool> {
        let mut all = locked(&self.victims);
        all.get_mut(uid).map(|told| !std::mem::replace(told, true))
    }

    /// Whether a Pod waits for others to be gone of whom some are still there.
    pub(super) fn awaits(&self, uid: &str, is_there: impl Fn(&str) -> bool) -> bool {
        let mut all = locked(&self.preemptors);
        let waits = all.get(uid).is_some_and(|victims| victims.iter().any(|it| is_there(it)));
        if !waits {
            all.remove(uid);
        }
        waits
    }

    /// Forgets a Pod that is gone.
    pub(super) fn forget(&self, uid: &str) {
        locked(&self.victims).remove(uid);
        locked(&self.preemptors).remove(uid);
        locked(&self.pods).remove(uid);
        locked(&self.replaced).remove(uid);
        locked(&self.anew).remove(uid);
        locked(&self.overdue).remove(uid);
    }

    fn change(&self, Whose { uid, spec, name }: Whose<'_>, change: impl FnOnce(&mut Trouble)) {
        let of = Definition::of(spec, name);
        let mut pods = locked(&self.pods);
        let trouble = pods.entry(uid.to_owned()).or_default().entry(name.to_owned()).or_default();
        if trouble.of != of {
            *trouble = Trouble { of, ..Trouble::default() };
        }
        change(trouble);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_pull(why: &StartError) -> bool {
    matches!(why, StartError::ImagePull { .. })
}
