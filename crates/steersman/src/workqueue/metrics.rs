//! What a queue tells Prometheus, under client-go's names.
//!
//! Durations are observed as they end. Everything else is read from the queues when somebody
//! asks, so that it costs nothing until then; a queue that is gone is not reported any more.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
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
use crate::metrics::Metrics;

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

impl QueueFamilies {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(10e-9, 10., 12));
        let (queue_duration, work_duration) = (
            Durations::new_with_constructor(histogram),
            Durations::new_with_constructor(histogram),
        );
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

    /// Reports this queue from now on, as long as it lives.
    pub(super) fn watch<T: Key>(&self, queue: &WorkQueue<T>) {
        let queue: Weak<dyn Observed> = Arc::downgrade(&queue.shared) as Weak<Shared<T>>;
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(queue);
    }
}

/// The durations that one queue observes.
pub(super) struct QueueMetrics {
    queue_duration: Histogram,
    work_duration: Histogram,
}

impl QueueMetrics {
    pub(super) fn new(metrics: &Metrics, name: &str) -> Self {
        let families = &metrics.workqueue;
        Self {
            queue_duration: families.queue_duration.get_or_create_owned(&labels(name)),
            work_duration: families.work_duration.get_or_create_owned(&labels(name)),
        }
    }

    pub(super) fn waited(&self, duration: Duration) {
        self.queue_duration.observe(duration.as_secs_f64());
    }

    pub(super) fn worked(&self, duration: Duration) {
        self.work_duration.observe(duration.as_secs_f64());
    }
}

/// What a queue looks like when somebody asks.
#[derive(Clone, Debug, Default)]
struct Reading {
    depths: BTreeMap<Priority, usize>,
    adds: u64,
    retries: u64,
    unfinished: Duration,
    longest_running: Duration,
}

impl Reading {
    /// Queues of one name are reported as one.
    fn merge(&mut self, other: Self) {
        for (priority, depth) in other.depths {
            *self.depths.entry(priority).or_default() += depth;
        }
        self.adds += other.adds;
        self.retries += other.retries;
        self.unfinished += other.unfinished;
        self.longest_running = self.longest_running.max(other.longest_running);
    }
}

/// A queue, whatever its keys.
trait Observed: Send + Sync {
    fn name(&self) -> &str;
    fn read(&self) -> Reading;
}

impl<T: Key> Observed for Shared<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self) -> Reading {
        let now = self.clock.now();
        let retries = self.retried.load(Ordering::Relaxed);
        self.step(|state| {
            self.catch_up(&mut state.core);
            Reading {
                depths: state.core.depths().collect(),
                adds: state.core.adds,
                retries,
                unfinished: state.core.working_times(now).sum(),
                longest_running: state.core.working_times(now).max().unwrap_or_default(),
            }
        })
    }
}

/// The queues that are reported.
#[derive(Default)]
struct Queues(Mutex<Vec<Weak<dyn Observed>>>);

impl Queues {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Weak<dyn Observed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readings(&self) -> BTreeMap<String, Reading> {
        let mut readings = BTreeMap::<String, Reading>::new();
        let queues: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        for queue in queues {
            readings.entry(queue.name().to_owned()).or_default().merge(queue.read());
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
        let mut each = |name, help, value: fn(&Reading) -> Value| {
            encode_each(&mut encoder, (name, help), &readings, value)
        };
        each("workqueue_adds", "Total number of adds handled by workqueue", |reading| {
            Value::Counter(ConstCounter::new(reading.adds))
        })?;
        each("workqueue_retries", "Total number of retries handled by workqueue", |reading| {
            Value::Counter(ConstCounter::new(reading.retries))
        })?;
        each(
            "workqueue_unfinished_work_seconds",
            "How many seconds of work has been done that is in progress and hasn't been observed \
             by work_duration; large values indicate stuck threads",
            |reading| Value::Gauge(ConstGauge::new(reading.unfinished.as_secs_f64())),
        )?;
        each(
            "workqueue_longest_running_processor_seconds",
            "How many seconds the longest running processor for workqueue has been running",
            |reading| Value::Gauge(ConstGauge::new(reading.longest_running.as_secs_f64())),
        )
    }
}

enum Value {
    Counter(ConstCounter<u64>),
    Gauge(ConstGauge<f64>),
}

impl Value {
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

/// One value for each queue.
fn encode_each(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    readings: &BTreeMap<String, Reading>,
    value: fn(&Reading) -> Value,
) -> fmt::Result {
    let kind = value(&Reading::default()).metric_type();
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
    for (queue, reading) in readings {
        value(reading).encode(metric.encode_family(&labels(queue))?)?;
    }
    Ok(())
}

/// One depth for each queue and priority, as controller-runtime has it.
fn encode_depths(
    encoder: &mut DescriptorEncoder<'_>,
    readings: &BTreeMap<String, Reading>,
) -> fmt::Result {
    let kind = ConstGauge::new(0_u64).metric_type();
    let help = "Current depth of workqueue";
    let mut metric = encoder.encode_descriptor("workqueue_depth", help, None, kind)?;
    for (queue, reading) in readings {
        for (priority, depth) in &reading.depths {
            let [name, controller] = labels(queue);
            let labels = [name, controller, ("priority", priority.0.to_string())];
            ConstGauge::new(*depth as u64).encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
