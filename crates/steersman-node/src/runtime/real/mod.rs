//! Real containers, through a container runtime on this machine.
//!
//! What runs is asked of the runtime each time ([`observe`]), so that an agent that was started anew
//! finds everything as it was. [`start`] makes a sandbox and a container as [`config`] says, when it is
//! its [turn](turns); images are [pulled](pulls) and containers [stopped](stops) meanwhile, and whoever
//! waits for them, or for the [network], is woken. Not every Pod [may use](permits) every image.
//! What runs can be [resized](resize). Starts that were [cut off](starting) do not count, and times are
//! those of [one clock](moments).
//! [`relist`] notices what changes by itself, [`cleanup`] takes away what belongs to nobody, and
//! [`containers`], [`images`] and [`rotation`] what is too much; if that is not enough, [`pressure`]
//! evicts Pods.

mod cgroups;
mod cleanup;
mod config;
mod containers;
mod credentials;
mod endings;
mod hooks;
mod image_volumes;
mod images;
mod labels;
mod last_words;
mod ledger;
mod moments;
mod names;
mod network;
mod observe;
mod permits;
mod places;
mod prepare;
mod pressure;
mod probing;
mod pulls;
mod reading;
mod refresh;
mod refusal;
mod relist;
mod resize;
mod resources;
mod rotation;
mod security;
mod signals;
mod start;
mod starting;
mod stops;
mod turns;
mod usage;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::events::Recorder;
use steersman::{Client, ObjectKey, Result, clock};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::{
    Change, ContainerRuntime, Evicted, Ledger, Observation, Outcome, Resized, Start, described,
};
use crate::cri::Cri;
use crate::eviction::Condition;
use crate::garbage::ImageRecords;
use crate::housekeeping::Policies;
use crate::rejection::Rejection;
pub(crate) use cgroups::Cgroups;
use config::Ground;
use endings::Endings;
use ledger::Files;
use moments::Known;
pub(crate) use names::ClusterDns;
use network::NetworkWaits;
use permits::Permits;
pub(crate) use places::Places;
use pressure::Evictions;
use probing::Probing;
use pulls::Pulls;
use reading::FetchedTokens;
use resources::Host;
use stops::Stops;
use turns::Turns;

/// How many Pods may wait to be looked at because something of theirs has changed.
const WOKEN_MAX: usize = 1024;

/// A runtime of real containers. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Real {
    shared: Arc<Shared>,
}

/// What a runtime of real containers stands on.
pub(crate) struct Settings {
    pub(crate) cri: Cri,
    /// The runtime's own name, which the ids of containers begin with.
    pub(crate) runtime: String,
    pub(crate) places: Places,
    pub(crate) cgroups: Cgroups,
    /// The name of the Node.
    pub(crate) node: String,
    /// How much memory the machine has.
    pub(crate) memory: i64,
    pub(crate) dns: ClusterDns,
    /// The addresses of the machine.
    pub(crate) addresses: Vec<String>,
    /// What Pods can have of the machine.
    pub(crate) allocatable: BTreeMap<String, String>,
    /// How often volumes are brought up to date.
    pub(crate) sync_period: Duration,
    pub(crate) policies: Policies,
}

struct Shared {
    cri: Cri,
    runtime: String,
    places: Places,
    cgroups: Cgroups,
    ground: Ground,
    addresses: Vec<String>,
    allocatable: BTreeMap<String, String>,
    sync_period: Duration,
    policies: Policies,
    /// When images were used last.
    images: tokio::sync::Mutex<ImageRecords>,
    permits: Permits,
    tokens: FetchedTokens,
    probing: Probing,
    recorder: Recorder,
    /// When the agent was started.
    started: Timestamp,
    /// The Pods that have not ended, as they were seen last and as far as they are [`remembered`], by
    /// uid.
    running: Mutex<HashMap<String, Arc<Pod>>>,
    /// When all that runs was listed last; at first, when the agent was started.
    relisted: Mutex<Instant>,
    pulls: Pulls,
    network_waits: NetworkWaits,
    stops: Stops,
    turns: Turns,
    evictions: Evictions,
    endings: Endings,
    seen: Mutex<Seen>,
    /// The Pods that no API server knows, by uid.
    kept: Mutex<HashSet<String>>,
    /// The Pods that have gone since it was looked last for what belongs to nobody, by uid.
    gone: Mutex<HashSet<String>>,
    /// Which Pods have given back what they had, by uid.
    wound_down: Mutex<HashSet<String>>,
    wake: mpsc::Sender<ObjectKey>,
    /// Until somebody listens.
    woken: Mutex<Option<mpsc::Receiver<ObjectKey>>>,
}

/// What the runtime said and will not change.
#[derive(Default)]
struct Seen {
    /// By the id of the container, while it is in the same state.
    containers: HashMap<String, Known>,
    /// The addresses of a sandbox, by its id.
    addresses: HashMap<String, Vec<String>>,
}

impl Real {
    /// A runtime that tells people by this recorder what it finds.
    pub(crate) fn new(settings: Settings, recorder: &Recorder) -> Self {
        let recorder = recorder.instance(&settings.node);
        let Settings { cri, runtime, places, cgroups, node, memory, dns, .. } = settings;
        let (wake, woken) = mpsc::channel(WOKEN_MAX);
        let shared = Shared {
            pulls: Pulls::default(),
            network_waits: NetworkWaits::default(),
            stops: Stops::default(),
            turns: Turns::default(),
            evictions: Evictions::default(),
            endings: Endings::default(),
            seen: Mutex::default(),
            kept: Mutex::default(),
            gone: Mutex::default(),
            wound_down: Mutex::default(),
            wake,
            woken: Mutex::new(Some(woken)),
            ground: Ground {
                node,
                host: Host { memory, unified: cgroups.is_unified() },
                dns,
                profiles: places.profiles(),
            },
            permits: Permits::in_directory(places.permits()),
            cri,
            runtime,
            places,
            cgroups,
            addresses: settings.addresses,
            allocatable: settings.allocatable,
            sync_period: settings.sync_period,
            policies: settings.policies,
            images: tokio::sync::Mutex::default(),
            tokens: FetchedTokens::default(),
            probing: Probing::default(),
            recorder,
            started: clock::now(),
            running: Mutex::default(),
            relisted: Mutex::new(Instant::now()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What the machine is short of.
    pub(crate) fn conditions(&self) -> watch::Receiver<Vec<Condition>> {
        self.shared.evictions.conditions()
    }

    /// Says which Pods are there that no API server knows of; what is left of others is removed.
    pub(crate) fn keep(&self, uids: impl IntoIterator<Item = String>) {
        *locked(&self.shared.kept) = uids.into_iter().collect();
    }

    /// When all that runs was listed last.
    pub(crate) fn relisted(&self) -> Instant {
        *locked(&self.shared.relisted)
    }

    /// Notices what changes and takes away what belongs to nobody, for ever.
    pub(crate) async fn run(&self, client: Client) {
        let shared = &self.shared;
        futures::join!(
            relist::run(shared),
            images::run(shared),
            containers::run(shared, &client),
            rotation::run(shared),
            pressure::run(shared, &client),
            cleanup::run(shared, &client),
            refresh::run(shared, &client, shared.sync_period),
        );
    }
}

impl Shared {
    /// Lets the worker of a Pod look at it.
    async fn wake(&self, pod: ObjectKey) {
        let _ = self.wake.send(pod).await; // nobody listens any more when this stops
    }

    /// The Node, as far as Events name it.
    fn node(&self) -> Node {
        let name = self.ground.node.clone();
        let uid = Some(name.clone()); // as a kubelet has it
        let metadata = ObjectMeta { uid, name: Some(name), ..ObjectMeta::default() };
        Node { metadata, ..Node::default() }
    }
}

impl ContainerRuntime for Real {
    fn ledger(&self) -> Option<Arc<dyn Ledger>> {
        Some(Arc::new(Files::in_directories_of(&self.shared.places)))
    }

    fn refuses(&self, pod: &Pod) -> Option<Rejection> {
        let never = refusal::refuses(pod);
        never.or_else(|| pressure::refuses(&self.shared, pod).map(Rejection::Evicted))
    }

    fn evicted(&self, pod: &Pod) -> Option<Evicted> {
        self.shared.evictions.why(uid_of(pod))
    }

    async fn observe(&self, pod: &Pod, _: Timestamp) -> Result<Observation> {
        locked(&self.shared.running).insert(uid_of(pod).to_owned(), Arc::new(remembered(pod)));
        Ok(observe::observe(&self.shared, pod).await?)
    }

    fn takes_time(&self) -> bool {
        true
    }

    async fn start(
        &self,
        pod: &Pod,
        start: &Start,
        client: &Client,
        _: Timestamp,
    ) -> Result<Outcome> {
        start::start(&self.shared, pod, start, client).await
    }

    async fn missing_secrets(&self, _: &Pod, _: &Client) -> Vec<String> {
        Vec::new() // each start looks for them itself
    }

    fn ends(&self, uid: &str) {
        self.shared.endings.tell(uid);
    }

    async fn stop(&self, pod: &Pod, names: &[String], _: Timestamp) -> Result<()> {
        Ok(stops::stop(&self.shared, pod, names).await?)
    }

    async fn resize(&self, pod: &Pod, changes: &[Change]) -> Result<Resized> {
        Ok(resize::resize(&self.shared, pod, changes).await?)
    }

    async fn wind_down(&self, pod: &Pod) -> Result<bool> {
        cleanup::wind_down(&self.shared, pod).await
    }

    fn forget(&self, uid: &str) {
        cleanup::forget(&self.shared, uid);
    }

    fn changes(&self) -> impl Stream<Item = ObjectKey> + Send + 'static {
        let woken = locked(&self.shared.woken).take();
        stream::unfold(woken, |woken| async move {
            let mut woken = woken?;
            let key = woken.recv().await?;
            Some((key, Some(woken)))
        })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is remembered of a Pod as long as it runs: who it is, what it is, and where. Most of what an API
/// server says of one is about others, such as who has written what, and nobody here asks for it.
fn remembered(pod: &Pod) -> Pod {
    let of = &pod.metadata;
    let metadata = ObjectMeta {
        name: of.name.clone(),
        namespace: of.namespace.clone(),
        uid: of.uid.clone(),
        labels: of.labels.clone(),
        annotations: of.annotations.clone(),
        deletion_timestamp: of.deletion_timestamp.clone(),
        deletion_grace_period_seconds: of.deletion_grace_period_seconds,
        ..ObjectMeta::default()
    };
    let status = pod.status.as_ref().map(|status| PodStatus {
        qos_class: status.qos_class.clone(),
        host_ip: status.host_ip.clone(),
        host_ips: status.host_ips.clone(),
        pod_ip: status.pod_ip.clone(),
        pod_ips: status.pod_ips.clone(),
        ..PodStatus::default()
    });
    Pod { metadata, spec: pod.spec.clone(), status }
}

/// The names of all containers that run.
fn names_of_running(parts: &observe::Parts) -> Vec<String> {
    let running = parts.containers.iter().filter(|one| observe::runs(one));
    running.map(|one| observe::name_of(one).to_owned()).collect()
}

fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// Whether a Pod uses the network of its machine.
fn is_on_host(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)
}

/// A Pod's key.
fn key_of(pod: &Pod) -> ObjectKey {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    ObjectKey::namespaced(text(&pod.metadata.namespace), text(&pod.metadata.name))
}
