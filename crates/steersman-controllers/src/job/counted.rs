//! Which Pods this process has counted: a cache that is late may show one with its finalizer again,
//! long after it lost it, and it must not be counted twice.
//!
//! A Pod is remembered until the cache shows it without its finalizer, or its Job has finished.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::facts::{FINALIZER, has_finalizer, uid_of};

/// The uids of Pods that were counted, by the uids of their Jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    jobs: Arc<Mutex<HashMap<String, HashSet<String>>>>,
}

impl Counted {
    /// Takes the finalizer from those Pods that were counted, so that they are taken for what they
    /// are; gives back those of them whose finalizer is to be taken once more, to be sure.
    pub(super) fn correct(&self, job: &str, pods: &mut [Arc<Pod>]) -> Vec<Arc<Pod>> {
        let mut jobs = self.lock();
        let Some(counted) = jobs.get_mut(job) else { return Vec::new() };
        let mut late = Vec::new();
        for pod in pods {
            if !has_finalizer(pod) {
                counted.remove(uid_of(pod));
            } else if counted.contains(uid_of(pod)) {
                late.push(Arc::clone(pod));
                let mut free = Pod::clone(pod);
                let finalizers = free.metadata.finalizers.as_mut();
                finalizers.into_iter().for_each(|all| all.retain(|it| it != FINALIZER));
                *pod = Arc::new(free);
            }
        }
        late
    }

    /// Remembers Pods that have lost their finalizers, and those that a Job has on its list and that
    /// the cache does not show.
    pub(super) fn add(&self, job: &Job, pods: &[Arc<Pod>], released: &[String]) {
        let list = job.status.as_ref().and_then(|it| it.uncounted_terminated_pods.as_ref());
        let listed = list.map(|list| list.succeeded.iter().chain(&list.failed).flatten());
        let shown = |uid: &String| pods.iter().any(|pod| uid_of(pod) == uid);
        let missing = listed.into_iter().flatten().filter(|uid| !shown(uid));
        let all: HashSet<String> = missing.chain(released).cloned().collect();
        if !all.is_empty() {
            let job = job.metadata.uid.clone().unwrap_or_default();
            self.lock().entry(job).or_default().extend(all);
        }
    }

    /// Forgets a Job that has finished or is gone.
    pub(super) fn forget(&self, job: &str) {
        self.lock().remove(job);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashSet<String>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
