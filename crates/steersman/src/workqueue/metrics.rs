//! The metrics of a queue, under client-go's names.
//!
//! Durations are observed as they end. Everything else is read from the queues when somebody
//! asks, so that it costs nothing until then. Of a queue that is gone only its counts are still
//! reported, so that the sums of its name never go back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::{Key, Priority, Shared, WorkQueue};
use crate::metrics::{Families, Metrics};

/// `name` as client-go has it, `controller` as controller-runtime adds it.
type Labels = [(&'static str, String); 2];

fn labels(name: &str) -> Labels {
    [("name", name.to_owned()), ("controller", name.to_owned())]
}

type Durations = Family<Labels, Histogram>;

/// The metrics of all queues.
#[derive(Clone)]
pub(crate) struct QueueFamilies {
    queue_duration: Durations,
    work_duration: Durations,
    queues: Arc<Queues>,
}

impl Families for QueueFamilies {
    fn register(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(10e-9, 10., 12));
        let queue_duration = Durations::new_with_constructor(histogram);
        let work_duration = Durations::new_with_constructor(histogram);
        registry.register(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            queue_duration.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes",
            work_duration.clone(),
        );
        let queues = Arc::new(Queues::default());
        registry.register_collector(Box::new(Arc::clone(&queues)));
        Self { queue_duration, work_duration, queues }
    }
}

impl QueueFamilies {
    /// Reports this queue from now on, as long as it lives, and its counts for ever.
    pub(super) fn watch<T: Key>(&self, queue: &WorkQueue<T>) {
        let shared = &queue.shared;
        let Some(metrics) = &shared.metrics else { return };
        let queue: Weak<dyn Observed> = Arc::downgrade(shared) as Weak<Shared<T>>;
        let name = Arc::clone(&shared.name);
        let tally = Arc::clone(&metrics.tally);
        let mut reported = self.queues.lock();
        reported.bury();
        reported.queues.push(Watched { name, queue, tally });
    }
}

/// The durations that one queue observes, and what it counts.
pub(super) struct QueueMetrics {
    queue_duration: Histogram,
    work_duration: Histogram,
    tally: Arc<Tally>,
}

/// What a queue counts. Outlives it.
#[derive(Debug, Default)]
struct Tally {
    /// How often a key became wanted now.
    adds: AtomicU64,
    /// How often a key was added for later.
    retries: AtomicU64,
}

impl QueueMetrics {
    pub(super) fn new(metrics: &Metrics, name: &str) -> Self {
        let families: QueueFamilies = metrics.families();
        Self {
            queue_duration: families.queue_duration.get_or_create_owned(&labels(name)),
            work_duration: families.work_duration.get_or_create_owned(&labels(name)),
            tally: Arc::default(),
        }
    }

    /// Tells how many adds there were so far; to be called under the queue's lock.
    pub(super) fn added(&self, adds: u64) {
        self.tally.adds.store(adds, Ordering::Relaxed);
    }

    pub(super) fn retried(&self) {
        self.tally.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn waited(&self, duration: Duration) {
        self.queue_duration.observe(duration.as_secs_f64());
    }

    pub(super) fn worked(&self, duration: Duration) {
        self.work_duration.observe(duration.as_secs_f64());
    }
}

/// What the queues of one name look like when somebody asks.
#[derive(Clone, Debug, Default)]
struct Reading {
    adds: u64,
    retries: u64,
    /// Nothing if they are all gone.
    load: Option<Load>,
}

/// What a queue has to do.
#[derive(Clone, Debug, Default)]
struct Load {
    depths: BTreeMap<Priority, usize>,
    unfinished: Duration,
    longest_running: Duration,
}

impl Reading {
    fn count(&mut self, tally: &Tally) {
        self.adds += tally.adds.load(Ordering::Relaxed);
        self.retries += tally.retries.load(Ordering::Relaxed);
    }

    /// Queues of one name are reported as one.
    fn merge(&mut self, other: Load) {
        let load = self.load.get_or_insert_default();
        for (priority, depth) in other.depths {
            *load.depths.entry(priority).or_default() += depth;
        }
        load.unfinished += other.unfinished;
        load.longest_running = load.longest_running.max(other.longest_running);
    }
}

/// A queue, whatever its keys.
trait Observed: Send + Sync {
    fn read(&self) -> Load;
}

impl<T: Key> Observed for Shared<T> {
    fn read(&self) -> Load {
        let now = self.clock.now();
        self.step(|state| {
            self.catch_up(&mut state.core);
            Load {
                depths: state.core.depths().collect(),
                unfinished: state.core.working_times(now).sum(),
                longest_running: state.core.working_times(now).max().unwrap_or_default(),
            }
        })
    }
}

/// The queues that are reported.
#[derive(Default)]
struct Queues(Mutex<Reported>);

#[derive(Default)]
struct Reported {
    queues: Vec<Watched>,
    /// The counts of queues that are gone, by name.
    gone: BTreeMap<Arc<str>, Reading>,
}

/// A queue and what is left of it when it is gone.
#[derive(Clone)]
struct Watched {
    name: Arc<str>,
    queue: Weak<dyn Observed>,
    tally: Arc<Tally>,
}

impl Reported {
    /// Keeps no more than their counts of queues that are gone.
    fn bury(&mut self) {
        // Nobody else has its tally, so nobody counts any more.
        for dead in self.queues.extract_if(.., |watched| Arc::get_mut(&mut watched.tally).is_some())
        {
            self.gone.entry(dead.name).or_default().count(&dead.tally);
        }
    }
}

impl Queues {
    fn lock(&self) -> std::sync::MutexGuard<'_, Reported> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readings(&self) -> BTreeMap<Arc<str>, Reading> {
        let mut reported = self.lock();
        reported.bury();
        let queues = reported.queues.clone();
        let mut readings = reported.gone.clone();
        drop(reported); // the last one to have a queue drops it, here as well
        for Watched { name, queue, tally } in queues {
            let reading = readings.entry(name).or_default();
            if let Some(queue) = queue.upgrade() {
                reading.merge(queue.read());
            }
            reading.count(&tally);
        }
        readings
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queues").finish_non_exhaustive()
    }
}

impl Collector for Queues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let readings = self.readings();
        encode_depths(&mut encoder, &readings)?;
        let mut each = |name, help, value: fn(&Reading) -> Option<Value>| {
            encode_each(&mut encoder, (name, help), &readings, value)
        };
        each("workqueue_adds", "Total number of adds handled by workqueue", |reading| {
            Some(Value::Counter(ConstCounter::new(reading.adds)))
        })?;
        each("workqueue_retries", "Total number of retries handled by workqueue", |reading| {
            Some(Value::Counter(ConstCounter::new(reading.retries)))
        })?;
        each(
            "workqueue_unfinished_work_seconds",
            "How many seconds of work has been done that is in progress and hasn't been observed \
             by work_duration; large values indicate stuck threads",
            |reading| reading.load.as_ref().map(|load| Value::seconds(load.unfinished)),
        )?;
        each(
            "workqueue_longest_running_processor_seconds",
            "How many seconds the longest running processor for workqueue has been running",
            |reading| reading.load.as_ref().map(|load| Value::seconds(load.longest_running)),
        )
    }
}

enum Value {
    Counter(ConstCounter<u64>),
    Gauge(ConstGauge<f64>),
}

impl Value {
    fn seconds(duration: Duration) -> Self {
        Self::Gauge(ConstGauge::new(duration.as_secs_f64()))
    }

    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Counter(counter) => counter.encode(encoder),
            Self::Gauge(gauge) => gauge.encode(encoder),
        }
    }

    fn metric_type(&self) -> prometheus_client::metrics::MetricType {
        match self {
            Self::Counter(counter) => counter.metric_type(),
            Self::Gauge(gauge) => gauge.metric_type(),
        }
    }
}

/// One value for each name that has one.
fn encode_each(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    readings: &BTreeMap<Arc<str>, Reading>,
    value: fn(&Reading) -> Option<Value>,
) -> fmt::Result {
    let values = readings.iter().filter_map(|(queue, reading)| Some((queue, value(reading)?)));
    let mut values = values.peekable();
    let Some((_, first)) = values.peek() else { return Ok(()) };
    let mut metric = encoder.encode_descriptor(name, help, None, first.metric_type())?;
    for (queue, value) in values {
        value.encode(metric.encode_family(&labels(queue))?)?;
    }
    Ok(())
}

/// One depth for each queue and priority, as controller-runtime has it.
fn encode_depths(
    encoder: &mut DescriptorEncoder<'_>,
    readings: &BTreeMap<Arc<str>, Reading>,
) -> fmt::Result {
    let kind = ConstGauge::new(0_u64).metric_type();
    let help = "Current depth of workqueue";
    let mut metric = encoder.encode_descriptor("workqueue_depth", help, None, kind)?;
    for (queue, reading) in readings {
        for (priority, depth) in reading.load.iter().flat_map(|load| &load.depths) {
            let [name, controller] = labels(queue);
            let labels = [name, controller, ("priority", priority.0.to_string())];
            ConstGauge::new(*depth as u64).encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
