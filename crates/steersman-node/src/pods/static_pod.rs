//! Runs static Pods, each by a task of its own: as long as a file says so, and then to its end.
//!
//! A file that changes is another Pod. It begins when the one before it has ended, for both have the
//! same name.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use steersman::events::Recorder;
use steersman::{Client, ObjectKey, Result, clock};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::events::Teller;
use super::reconcile::{Admission, PodWorker, surroundings};
use super::status::{self, End};
use crate::registration::Machine;
use crate::runtime::ContainerRuntime;
use crate::static_pods::mirror;
use crate::static_pods::mirrors::Mirrors;
use crate::static_pods::source::Source;

/// How often files, and Pods, are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// How long the API server may take for what only shows something.
const ASKED_MAX: Duration = Duration::from_secs(10);

/// Tells the runtime which Pods there are.
type Keep = Box<dyn Fn(Vec<String>) + Send + Sync>;

/// Those who could run static Pods, of whom nobody has said on which machine.
pub(crate) struct StaticPods<R> {
    worker: PodWorker<R>,
    mirrors: Mirrors,
}

impl<R: ContainerRuntime> StaticPods<R> {
    pub(super) fn new(worker: PodWorker<R>, mirrors: Mirrors) -> Self {
        Self { worker, mirrors }
    }

    /// Those of a machine, without files.
    pub(crate) fn of(
        self,
        machine: Machine,
        recorder: Recorder,
        keep: impl Fn(Vec<String>) + Send + Sync + 'static,
    ) -> Running<R> {
        let around = Around { worker: self.worker, mirrors: self.mirrors, machine, recorder };
        Running {
            around: Arc::new(around),
            keep: Box::new(keep),
            source: None,
            wanted: BTreeMap::new(),
            tasks: HashMap::new(),
            ended: JoinSet::new(),
        }
    }
}

/// What all static Pods of a machine have in common.
struct Around<R> {
    worker: PodWorker<R>,
    /// What the API server shows.
    mirrors: Mirrors,
    machine: Machine,
    recorder: Recorder,
}

/// The static Pods of a machine.
pub(crate) struct Running<R> {
    around: Arc<Around<R>>,
    keep: Keep,
    source: Option<Source>,
    /// What files say, by uid.
    wanted: BTreeMap<String, Pod>,
    /// The Pods that have begun and not ended, by uid, and how they are told to.
    tasks: HashMap<String, (ObjectKey, watch::Sender<bool>)>,
    ended: JoinSet<Pod>,
}

impl<R: ContainerRuntime> Running<R> {
    /// Those of the files in a directory.
    pub(crate) fn from(mut self, directory: PathBuf) -> Self {
        self.source = Some(Source::new(directory, &self.around.machine.name));
        self
    }

    /// Reads the files.
    pub(crate) fn read(&mut self) {
        let Some(source) = &mut self.source else { return };
        match source.pods(clock::now()) {
            Ok(wanted) => self.wanted = wanted,
            Err(error) => tracing::error!(%error, "cannot read the manifests of static Pods"),
        }
        let uids: BTreeSet<&String> = self.wanted.keys().chain(self.tasks.keys()).collect();
        (self.keep)(uids.into_iter().cloned().collect());
    }

    /// Takes away what is shown of Pods that there are none of. Nothing waits for it: the API server
    /// itself may be a static Pod.
    async fn hide(&self, client: &Client) {
        let keys: HashSet<&ObjectKey> = self.tasks.values().map(|(key, _)| key).collect();
        for orphan in self.around.mirrors.all() {
            if keys.contains(&ObjectKey::of(&orphan)) {
                continue;
            }
            let hidden = timeout(ASKED_MAX, mirror::delete(&orphan, client)).await;
            if !matches!(hidden, Ok(Ok(()))) {
                tracing::debug!(?hidden, "a static Pod that is gone is still shown; retrying");
            }
        }
    }

    /// Runs what files say, for ever.
    pub(crate) async fn run(mut self, client: Client) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            while let Some(ended) = self.ended.try_join_next() {
                match ended {
                    Ok(pod) => {
                        self.tasks.remove(pod.metadata.uid.as_deref().unwrap_or_default());
                    }
                    Err(error) => tracing::error!(%error, "the worker of a static Pod failed"),
                }
            }
            self.read();
            for (uid, (_, end)) in &self.tasks {
                if !self.wanted.contains_key(uid) {
                    self.around.worker.runtime.ends(uid);
                    end.send_replace(true);
                }
            }
            for (uid, pod) in &self.wanted {
                let key = ObjectKey::of(pod);
                if self.tasks.values().any(|(running, _)| *running == key) {
                    continue; // it, or the one before it
                }
                let (end, ending) = watch::channel(false);
                let live = Live {
                    around: Arc::clone(&self.around),
                    client: client.clone(),
                    pod: pod.clone(),
                };
                self.tasks.insert(uid.clone(), (key, end));
                self.ended.spawn(live.run(ending));
            }
            self.hide(&client).await;
        }
    }
}

/// A static Pod that runs.
struct Live<R> {
    around: Arc<Around<R>>,
    client: Client,
    /// With the status that it was last seen to have.
    pod: Pod,
}

impl<R: ContainerRuntime> Live<R> {
    /// Runs until it is told to end, and has.
    async fn run(mut self, mut ending: watch::Receiver<bool>) -> Pod {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = ending.changed() => {}
            }
            let told = *ending.borrow_and_update();
            let looked = match told {
                true => self.end().await,
                false => self.look().await.map(|()| false),
            };
            match looked {
                Ok(true) => return self.pod,
                Ok(false) => {}
                Err(error) => {
                    let pod = self.pod.metadata.name.as_deref();
                    tracing::warn!(%error, pod, "a static Pod is looked at again later");
                }
            }
        }
    }

    fn teller(&self) -> Teller<'_> {
        Teller::new(&self.pod, &self.around.machine, &self.around.recorder)
    }

    /// Brings its containers to where they are to be, and shows how it is.
    async fn look(&mut self) -> Result<()> {
        let Around { worker, machine, .. } = &*self.around;
        let now = clock::now();
        if status::has_ended(&self.pod) {
            worker.runtime.wind_down(&self.pod).await?;
            return self.show().await;
        }
        let given = match worker.admit(&self.pod, machine, &self.client).await? {
            Admission::Taken(given) => given,
            Admission::Waits => return Ok(()), // until the next look
            Admission::Refused(rejection) => {
                self.teller().rejected(&rejection);
                let rejected = status::rejected(&self.pod, &rejection, &clock::now_time());
                return self.become_(rejected).await;
            }
        };
        let teller = self.teller();
        let (observed, plan) = worker.settle(&self.pod, &teller, &self.client, now).await?;
        worker.allocations.forget_told(&self.pod, &machine.name);
        teller.waiting(&plan.waiting);
        let around = surroundings(&self.pod, machine, &observed, given);
        let status = status::running(&self.pod, &around, &observed, &plan, now);
        self.become_(status).await
    }

    /// Takes in how it is, and shows it.
    async fn become_(&mut self, status: PodStatus) -> Result<()> {
        self.pod.status = Some(status);
        self.show().await
    }

    /// The API server may be away: that changes nothing here.
    async fn show(&self) -> Result<()> {
        let status = self.pod.status.clone().unwrap_or_default();
        let found = self.around.mirrors.of(&ObjectKey::of(&self.pod));
        let shown = mirror::show(&self.pod, &status, found.as_ref(), &self.client);
        let shown = timeout(ASKED_MAX, shown).await;
        if !matches!(shown, Ok(Ok(()))) {
            tracing::debug!(?shown, "a static Pod cannot be shown; retrying");
        }
        Ok(())
    }

    /// Stops what runs, and tells whether nothing is left.
    async fn end(&mut self) -> Result<bool> {
        let Around { worker, .. } = &*self.around;
        let now = clock::now();
        let observed = worker.stop(&self.pod, &self.teller(), now).await?;
        self.pod.status = Some(status::ending(&self.pod, &observed, &End::Told, now));
        if observed.any_runs() || !worker.runtime.wind_down(&self.pod).await? {
            self.show().await?;
            return Ok(false);
        }
        worker.forget(self.pod.metadata.uid.as_deref().unwrap_or_default());
        Ok(true)
    }
}
