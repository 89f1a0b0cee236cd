//! A run: fill, settle, load, settle, clean.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::DeleteParams;
use steersman::{Client, ListOptions};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::crowd::Crowd;
use crate::error::LoadError;
use crate::observer::{Count, Observer};
use crate::pace::{Action, Pace, Step};
use crate::population::{LABEL, Population};
use crate::recorder::Recorder;
use crate::report::{Gauges, Operation, Report};
use crate::requests::Requests;
use crate::scenario::Scenario;
use crate::server::Process;
use crate::watchers;

/// How often it is looked whether all is ready, or gone.
const LOOK: Duration = Duration::from_millis(50);
/// Looking takes at most this part of the time.
const LOOKING_PART: u32 = 20;
/// A run of an hour has points of this many seconds, a shorter one of one.
const POINTS_MAX: u64 = 3600;
/// The server is asked about its process at every so many points.
const POINTS_PER_SCRAPE: u32 = 5;

/// A scenario and the cluster that is to bear it.
pub struct Load {
    client: Client,
    scenario: Scenario,
    keep: bool,
    live: Live,
}

/// What can be told while a run goes on.
#[derive(Default)]
struct Live {
    recorder: OnceLock<Arc<Recorder>>,
    /// Of the present phase.
    done: AtomicU64,
    wanted: AtomicU64,
    unsent: AtomicU64,
    without_object: AtomicU64,
}

/// How far a run is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Seconds since the run began.
    pub seconds: f64,
    /// What is being done.
    pub phase: String,
    /// How much of it is done.
    pub done: u64,
    /// How much there is to do.
    pub wanted: u64,
    /// How each sort of request fares; the one point is of the last second.
    pub operations: Vec<Operation>,
    /// How the cluster is.
    pub gauges: Gauges,
}

impl Load {
    /// Nothing happens until it [runs](Self::run).
    pub fn new(client: Client, scenario: Scenario) -> Self {
        Self { client, scenario, keep: false, live: Live::default() }
    }

    /// Leaves what was made in the cluster.
    #[must_use]
    pub fn keep(mut self) -> Self {
        self.keep = true;
        self
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let Some(recorder) = self.live.recorder.get() else { return Progress::default() };
        Progress {
            seconds: recorder.elapsed(),
            phase: recorder.phases().pop().map(|phase| phase.name).unwrap_or_default(),
            done: self.live.done.load(Ordering::Relaxed),
            wanted: self.live.wanted.load(Ordering::Relaxed),
            operations: recorder.latest(),
            gauges: recorder.gauges().last().copied().unwrap_or_default(),
        }
    }

    /// Does all that the scenario says, once; if it is told to stop, it cleans up and tells what it
    /// has.
    pub async fn run(&self, stop: &CancellationToken) -> Result<Report, LoadError> {
        let recorder = Arc::clone(self.live.recorder.get_or_init(|| Arc::new(Recorder::start())));
        let version = self.client.kube().apiserver_version().await;
        let version = version.map_err(|error| LoadError::Prepare(error.into()))?;
        let population = Population::of(&self.client, &self.scenario).await?;
        self.prepare(&population, &recorder).await?;
        let observer = Observer::start(&self.client, &population, &recorder).await;
        let client = self.client.clone();
        let recorder_of = Arc::clone(&recorder);
        let requests = Arc::new(Requests { client, population, recorder: recorder_of, observer });
        let points = self.draw_points(&requests);
        self.work(&requests, stop).await;
        if !self.keep {
            self.clean(&requests).await;
        }
        drop(points);
        recorder.draw(gauges(requests.observer.count(), Process::of(&self.client).await));
        Ok(Report {
            scenario: self.scenario.clone(),
            server: version.git_version,
            phases: recorder.phases(),
            operations: recorder.operations(),
            gauges: recorder.gauges(),
            unsent: self.live.unsent.load(Ordering::Relaxed),
            without_object: self.live.without_object.load(Ordering::Relaxed),
        })
    }

    /// Makes the namespaces. If one is there already, those that were made are removed.
    async fn prepare(&self, population: &Population, recorder: &Recorder) -> Result<(), LoadError> {
        self.begin(recorder, "prepare", u64::from(self.scenario.namespaces));
        for number in 0..self.scenario.namespaces {
            let namespace = population.namespace(number);
            let made = self.client.create(&self.namespace(&namespace)).await;
            if let Err(error) = made {
                for number in 0..number {
                    let made = population.namespace(number);
                    let _ = self.client.delete::<Namespace>(made, &DeleteParams::default()).await;
                }
                return Err(match error.is_already_exists() {
                    true => LoadError::Occupied { namespace },
                    false => LoadError::Prepare(error),
                });
            }
            self.live.done.fetch_add(1, Ordering::Relaxed);
        }
        recorder.end(format!("{} namespaces", self.scenario.namespaces));
        Ok(())
    }

    fn namespace(&self, name: &str) -> Namespace {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let label = (LABEL.to_owned(), self.scenario.name.clone());
        namespace.metadata.labels = Some([label].into());
        namespace
    }

    async fn work(&self, requests: &Arc<Requests>, stop: &CancellationToken) {
        self.fill(requests, stop).await;
        self.settle(requests, stop).await;
        if self.scenario.load.duration.is_zero() || stop.is_cancelled() {
            return;
        }
        self.load(requests, stop).await;
        self.settle(requests, stop).await;
    }

    /// Makes all objects, as fast as they can be made.
    async fn fill(&self, requests: &Arc<Requests>, stop: &CancellationToken) {
        let all = requests.population.all();
        let wanted = all.len() as u64;
        self.begin(&requests.recorder, "fill", wanted);
        let begin = Instant::now();
        let made = Arc::new(AtomicU64::new(0));
        let mut crowd = Crowd::of(self.scenario.clients);
        for lent in all {
            let requests = Arc::clone(requests);
            let made = Arc::clone(&made);
            let job = async move {
                made.fetch_add(u64::from(requests.fill(lent).await), Ordering::Relaxed);
            };
            if !crowd.start(stop, job).await {
                break;
            }
            self.live.done.fetch_add(1, Ordering::Relaxed);
        }
        crowd.end().await;
        let made = made.load(Ordering::Relaxed);
        let rate = made as f64 / begin.elapsed().as_secs_f64().max(0.001);
        requests.recorder.end(format!("{made} of {wanted} objects made, {rate:.0}/s"));
    }

    /// Waits until all that was written is ready.
    async fn settle(&self, requests: &Requests, stop: &CancellationToken) {
        self.begin(&requests.recorder, "settle", 0);
        let begin = Instant::now();
        let count = loop {
            let looked = Instant::now();
            let count = requests.observer.count();
            self.live.wanted.store(count.objects, Ordering::Relaxed);
            self.live.done.store(count.ready, Ordering::Relaxed);
            let is_settled = count.pending == 0 && count.ready == count.objects;
            if is_settled || begin.elapsed() >= self.scenario.patience || stop.is_cancelled() {
                break count;
            }
            sleep(LOOK.max(looked.elapsed() * LOOKING_PART)).await;
        };
        let Count { objects, ready, .. } = count;
        requests.recorder.end(format!("{ready} of {objects} objects ready"));
    }

    /// Sends what is due when it is due.
    async fn load(&self, requests: &Arc<Requests>, stop: &CancellationToken) {
        let load = &self.scenario.load;
        self.begin(&requests.recorder, "load", Pace::of(load).count() as u64);
        let _watchers = watchers::start(&self.client, &requests.population, load.watchers);
        let begin = Instant::now();
        let end = begin + load.duration;
        let mut crowd = Crowd::of(self.scenario.clients);
        let mut sent = 0;
        for (step, number) in Pace::of(load).zip(1..) {
            let due = begin + step.after;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep_until(due) => {}
            }
            if Instant::now() >= end {
                break;
            }
            if let Some(job) = self.job(requests, step, due, number)
                && !crowd.start(stop, job).await
            {
                break;
            }
            sent += 1;
            self.live.done.store(sent, Ordering::Relaxed);
        }
        crowd.end().await;
        if !stop.is_cancelled() {
            sleep_until(end).await;
        }
        let unsent = self.live.wanted.load(Ordering::Relaxed) - sent;
        self.live.unsent.store(unsent, Ordering::Relaxed);
        requests.recorder.end(format!("{sent} requests sent, {unsent} left at the end"));
    }

    /// What is to be done for a step; nothing, if there is no object that nothing else is done to.
    fn job(
        &self,
        requests: &Arc<Requests>,
        step: Step,
        due: Instant,
        number: u64,
    ) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let requests = Arc::clone(requests);
        if step.action == Action::List {
            return Some(Box::pin(async move { requests.list(due).await }));
        }
        let Some(lent) = requests.population.lend() else {
            self.live.without_object.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        Some(Box::pin(async move {
            match step.action {
                Action::Update => requests.update(lent, number, due).await,
                Action::Churn => requests.churn(lent, due).await,
                Action::Get | Action::List => requests.get(lent, due).await,
            }
        }))
    }

    /// Removes all that was made, also if it was told to stop.
    async fn clean(&self, requests: &Arc<Requests>) {
        self.begin(&requests.recorder, "clean", u64::from(self.scenario.namespaces));
        let begin = Instant::now();
        let never = CancellationToken::new();
        let mut crowd = Crowd::of(self.scenario.clients);
        for lent in requests.population.all() {
            if !requests.population.sort(lent.subject).kind.is_namespaced() {
                let requests = Arc::clone(requests);
                crowd.start(&never, async move { requests.remove(lent.subject).await }).await;
            }
        }
        for number in 0..self.scenario.namespaces {
            let namespace = requests.population.namespace(number);
            let requests = Arc::clone(requests);
            crowd.start(&never, async move { requests.remove_namespace(namespace).await }).await;
        }
        crowd.end().await;
        let left = loop {
            let options = ListOptions::default().labels(format!("{LABEL}={}", self.scenario.name));
            let left = self.client.list::<Namespace>(&options).await.map(|left| left.len());
            let gone = left.as_ref().map_or(0, |left| self.scenario.namespaces as usize - left);
            self.live.done.store(gone as u64, Ordering::Relaxed);
            if matches!(left, Ok(0)) || begin.elapsed() >= self.scenario.patience {
                break left;
            }
            sleep(LOOK).await;
        };
        requests.recorder.end(match left {
            Ok(0) => "everything is gone".to_owned(),
            Ok(left) => format!("{left} namespaces are left"),
            Err(error) => format!("it is not known what is left: {error}"),
        });
    }

    fn begin(&self, recorder: &Recorder, phase: &str, wanted: u64) {
        self.live.done.store(0, Ordering::Relaxed);
        self.live.wanted.store(wanted, Ordering::Relaxed);
        recorder.begin(phase);
    }

    /// Draws points for as long as the result lives.
    fn draw_points(&self, requests: &Arc<Requests>) -> JoinSet<()> {
        let period =
            Duration::from_secs((self.scenario.load.duration.as_secs() / POINTS_MAX).max(1));
        let requests = Arc::clone(requests);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut process = Process::default();
            for point in 0.. {
                if point % POINTS_PER_SCRAPE == 0 {
                    process = Process::of(&requests.client).await;
                }
                sleep(period).await;
                requests.recorder.draw(gauges(requests.observer.count(), process));
            }
        });
        task
    }
}

fn gauges(count: Count, process: Process) -> Gauges {
    let Process { memory_bytes, cpu_seconds } = process;
    let Count { objects, ready, .. } = count;
    Gauges { second: 0.0, objects, ready, memory_bytes, cpu_seconds }
}
