//! What was so when slices told of every Pod of a Service. As long as nobody else writes them and the
//! Service stays as it is, only Pods that have changed since have to be looked at: a Service may have
//! thousands, of which one has.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use steersman::ObjectKey;
use tokio::time::Instant;

use super::hints::Traffic;
use super::packing::{endpoints, pod_of};

/// After so long all Pods are looked at again, should a change have been lost: of what comes and goes
/// faster than handlers are called, those do not hear.
const TRUSTED: Duration = Duration::from_secs(600);

/// Names of Pods, or of slices.
pub(super) type Names = HashSet<Arc<str>>;

/// By the Service, which Pods have changed; `None`, if all have to be looked at.
type Notes = HashMap<ObjectKey, Option<Names>>;

/// Pods that have changed, by the Services that they concern, and nodes. Clones share their content.
///
/// Who notes a change has it in the caches by then, and who takes changes reads those afterwards: what
/// comes in between is seen twice rather than never.
#[derive(Clone, Default)]
pub(super) struct Changed {
    pods: Arc<Mutex<Notes>>,
    /// How often nodes came, went or changed in what endpoints tell of them.
    nodes: Arc<AtomicU64>,
}

impl Changed {
    /// Notes that a Pod has changed which concerns a Service.
    pub(super) fn note(&self, service: &ObjectKey, pod: &ObjectKey) {
        let mut pods = self.lock();
        if !pods.contains_key(service) {
            pods.insert(service.clone(), Some(Names::new()));
        }
        if let Some(Some(names)) = pods.get_mut(service) {
            names.insert(Arc::clone(&pod.name));
        }
    }

    /// Notes that a Service has changed. Until this was heard of, Pods were noted by what it selected
    /// before, while somebody may have seen it already.
    pub(super) fn note_service(&self, service: &ObjectKey) {
        self.lock().insert(service.clone(), None);
    }

    /// Notes that a node has changed.
    pub(super) fn note_node(&self) {
        self.nodes.fetch_add(1, Ordering::Relaxed);
    }

    /// The Pods that have changed since this was last asked for the Service; `None` if all have to be
    /// looked at.
    pub(super) fn take(&self, service: &ObjectKey) -> Option<Names> {
        self.lock().remove(service).unwrap_or_else(|| Some(Names::new()))
    }

    /// How often nodes have changed.
    pub(super) fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the endpoints of all Pods of a Service depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Circumstances {
    service: Option<String>,
    nodes: u64,
}

impl Circumstances {
    /// A Service as it is, when nodes have changed so often.
    pub(super) fn of(service: &Service, nodes: u64) -> Self {
        Self { service: service.metadata.resource_version.clone(), nodes }
    }
}

/// The Pods that are looked at, and the slices that tell of them. All others are as they should be.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) pods: Names,
    pub(super) slices: Names,
}

/// What was so when slices told of every Pod.
#[derive(Debug, Default)]
pub(super) struct Settled {
    circumstances: Circumstances,
    /// When all Pods were looked at.
    since: Option<Instant>,
    /// The versions of the slices, by name.
    slices: HashMap<Arc<str>, Option<String>>,
    /// The slices that tell of a Pod, by its name: one for each family.
    places: HashMap<Arc<str>, Vec<Arc<str>>>,
}

impl Settled {
    /// What has to be looked at since these Pods have changed; nothing, if all Pods have to be.
    pub(super) fn look(
        &self,
        service: &Service,
        now: &Circumstances,
        slices: &[Arc<EndpointSlice>],
        changed: Names,
    ) -> Option<Look> {
        let is_same = |slice: &Arc<EndpointSlice>| {
            let version = &slice.metadata.resource_version;
            version.is_some() && self.slices.get(name(slice)) == Some(version)
        };
        let holds = self.since.is_some_and(|since| since.elapsed() < TRUSTED)
            && self.circumstances == *now
            && now.service.is_some()
            && slices.len() == self.slices.len()
            && slices.iter().all(is_same)
            // These hints depend on all endpoints.
            && Traffic::of(service) != Traffic::Automatic;
        let told = || changed.iter().filter_map(|pod| self.places.get(pod)).flatten();
        let slices = holds.then(|| told().map(Arc::clone).collect())?;
        Some(Look { slices, pods: changed })
    }

    /// All Pods were looked at, and these slices tell of them.
    pub(super) fn of_all<'a>(
        circumstances: Circumstances,
        slices: impl Iterator<Item = &'a EndpointSlice>,
    ) -> Self {
        let since = Some(Instant::now());
        let mut settled = Self { circumstances, since, ..Self::default() };
        slices.for_each(|slice| settled.add(slice, |_| true));
        settled
    }

    /// Some Pods were looked at, and slices were written, deleted and left as they are for them.
    pub(super) fn after<'a>(
        mut self,
        look: &Look,
        written: impl Iterator<Item = &'a EndpointSlice>,
        deleted: &[Arc<EndpointSlice>],
        kept: &[Arc<EndpointSlice>],
    ) -> Self {
        deleted.iter().for_each(|slice| drop(self.slices.remove(name(slice))));
        look.pods.iter().for_each(|pod| drop(self.places.remove(pod)));
        for slice in kept.iter().filter(|slice| look.slices.contains(name(slice))) {
            self.add(slice, |pod| look.pods.contains(pod));
        }
        written.for_each(|slice| self.add(slice, |_| true));
        self
    }

    /// Takes in a slice, and that it tells of some of its Pods.
    fn add(&mut self, slice: &EndpointSlice, concerns: impl Fn(&str) -> bool) {
        let slice_name: Arc<str> = name(slice).into();
        for pod in endpoints(slice).iter().filter_map(pod_of).filter(|pod| concerns(pod)) {
            match self.places.get_mut(pod) {
                None => drop(self.places.insert(pod.into(), vec![Arc::clone(&slice_name)])),
                Some(places) if places.contains(&slice_name) => {}
                Some(places) => places.push(Arc::clone(&slice_name)),
            }
        }
        self.slices.insert(slice_name, slice.metadata.resource_version.clone());
    }
}

fn name(slice: &EndpointSlice) -> &str {
    slice.metadata.name.as_deref().unwrap_or_default()
}
