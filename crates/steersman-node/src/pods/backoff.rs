//! How long to wait before a container is started again, or its image pulled again: 10 seconds, then
//! twice as long each time, up to 5 minutes.
//!
//! As in a kubelet this is known to nobody else, and forgotten with the process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

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

/// What is known of the trouble with one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trouble {
    /// Since it was restarted last.
    pub(super) restart: Option<Backoff>,
    /// Since it could not be started, and why.
    pub(super) start: Option<(Backoff, StartError)>,
}

/// Trouble by the name of the container.
pub(super) type Troubles = HashMap<String, Trouble>;

/// The trouble with all Pods, by their uids.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pods: Mutex<HashMap<String, Troubles>>,
}

impl Memory {
    pub(super) fn of(&self, uid: &str) -> Troubles {
        self.lock().get(uid).cloned().unwrap_or_default()
    }

    /// Notes that a container that ended at `failed` is started again.
    pub(super) fn restarted(&self, uid: &str, name: &str, failed: Timestamp, now: Timestamp) {
        self.change(uid, name, |trouble| {
            trouble.restart = Some(Backoff::next(trouble.restart.as_ref(), failed, now));
        });
    }

    /// Notes that a container could not be started. Only an image is waited for ever longer.
    pub(super) fn not_started(&self, uid: &str, name: &str, why: StartError, now: Timestamp) {
        self.change(uid, name, |trouble| {
            let last = trouble.start.as_ref().filter(|(_, last)| is_pull(last) && is_pull(&why));
            let backoff = Backoff::next(last.map(|(backoff, _)| backoff), now, now);
            trouble.start = Some((backoff, why));
        });
    }

    /// Notes that a container was started.
    pub(super) fn started(&self, uid: &str, name: &str) {
        if let Some(trouble) = self.lock().get_mut(uid).and_then(|all| all.get_mut(name)) {
            trouble.start = None;
        }
    }

    /// Forgets a Pod that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn change(&self, uid: &str, name: &str, change: impl FnOnce(&mut Trouble)) {
        let mut pods = self.lock();
        change(pods.entry(uid.to_owned()).or_default().entry(name.to_owned()).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Troubles>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_pull(why: &StartError) -> bool {
    matches!(why, StartError::ImagePull { .. })
}
