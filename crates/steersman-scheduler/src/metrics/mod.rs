//! What the scheduler tells of its work, under kube-scheduler's names.
//!
//! What is counted and how long something takes is noted as it happens. How many Pods and nodes there
//! are is read when somebody asks. [`plugins`] are told of one by one, [`devices`] and other [`work`]
//! by themselves.

mod devices;
mod label;
mod plugins;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use steersman::metrics::Families;
use tokio::time::Instant;

pub(crate) use devices::{DeviceMetrics, Waited};
pub(crate) use label::EventName;
pub(crate) use plugins::{Evaluations, PluginMetrics};
pub(crate) use work::WorkMetrics;

/// Beyond so many attempts they are not told apart.
const ATTEMPTS_MAX: u32 = 15;

type One = [(&'static str, &'static str); 1];
type Attempt = [(&'static str, String); 1];
type Outcome = [(&'static str, String); 2];
type Point = [(&'static str, String); 3];

/// How an attempt to schedule a Pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempted {
    Scheduled,
    Unschedulable,
    Error,
}

impl Attempted {
    fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Unschedulable => "unschedulable",
            Self::Error => "error",
        }
    }
}

/// The metrics of all schedulers of a program.
#[derive(Clone)]
pub(crate) struct SchedulerMetrics {
    attempts: Family<Outcome, Counter>,
    attempt_duration: Family<Outcome, Histogram>,
    algorithm_duration: Histogram,
    sli_duration: Family<Attempt, Histogram>,
    pod_attempts: Histogram,
    point_duration: Family<Point, Histogram>,
    permit_wait: Family<One, Histogram>,
    preemptions: Counter,
    victims: Histogram,
    incoming: Family<Outcome, Counter>,
    sizes: Arc<Sizes>,
    /// Of single plug-ins.
    pub(crate) plugins: PluginMetrics,
    /// Of work beside the decisions.
    pub(crate) work: WorkMetrics,
    /// Of claims for devices.
    pub(crate) devices: DeviceMetrics,
}

impl Families for SchedulerMetrics {
    fn register(registry: &mut Registry) -> Self {
        let milliseconds: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2., 15));
        let tenths: fn() -> Histogram = || Histogram::new(exponential_buckets(0.0001, 2., 12));
        let metrics = Self {
            attempts: Family::default(),
            attempt_duration: Family::new_with_constructor(milliseconds),
            algorithm_duration: milliseconds(),
            sli_duration: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.01, 2., 20))
            }),
            pod_attempts: Histogram::new(exponential_buckets(1., 2., 5)),
            point_duration: Family::new_with_constructor(tenths),
            permit_wait: Family::new_with_constructor(milliseconds),
            preemptions: Counter::default(),
            victims: Histogram::new(exponential_buckets(1., 2., 7)),
            incoming: Family::default(),
            sizes: Arc::default(),
            plugins: PluginMetrics::register(registry),
            work: WorkMetrics::register(registry),
            devices: DeviceMetrics::register(registry),
        };
        metrics.register_attempts(registry);
        metrics.register_rest(registry);
        metrics
    }
}

impl SchedulerMetrics {
    fn register_attempts(&self, registry: &mut Registry) {
        let it = self.clone();
        registry.register(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could \
             not be scheduled, while 'error' means an internal scheduler problem",
            it.attempts,
        );
        registry.register(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            it.attempt_duration,
        );
        registry.register(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            it.algorithm_duration,
        );
        registry.register(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling \
             queue and might involve multiple scheduling attempts",
            it.sli_duration,
        );
        registry.register(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod",
            it.pod_attempts,
        );
    }

    fn register_rest(&self, registry: &mut Registry) {
        let it = self.clone();
        registry.register(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point",
            it.point_duration,
        );
        registry.register(
            "scheduler_permit_wait_duration_seconds",
            "Duration of waiting on permit",
            it.permit_wait,
        );
        registry.register(
            "scheduler_preemption_attempts",
            "Total preemption attempts in the cluster till now",
            it.preemptions,
        );
        registry.register(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            it.victims,
        );
        registry.register(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type",
            it.incoming,
        );
        registry.register_collector(Box::new(it.sizes));
    }

    /// An attempt of a profile has ended.
    pub(crate) fn attempted(&self, how: Attempted, profile: &str, took: Duration) {
        let labels = [("result", how.as_str().to_owned()), ("profile", profile.to_owned())];
        self.attempts.get_or_create(&labels).inc();
        self.attempt_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A decision took so long.
    pub(crate) fn decided(&self, took: Duration) {
        self.algorithm_duration.observe(took.as_secs_f64());
    }

    /// A Pod is bound, this long after it was tried for the first time.
    pub(crate) fn bound(&self, attempts: u32, took: Duration) {
        let label = match attempts {
            ATTEMPTS_MAX.. => format!("{ATTEMPTS_MAX}+"),
            fewer => fewer.to_string(),
        };
        self.sli_duration.get_or_create(&[("attempts", label)]).observe(took.as_secs_f64());
        self.pod_attempts.observe(f64::from(attempts));
    }

    /// The plug-ins at an extension point were run.
    pub(crate) fn ran(&self, point: &str, status: &str, profile: &str, since: Instant) {
        let labels = [("extension_point", point), ("status", status), ("profile", profile)];
        let labels = labels.map(|(name, value)| (name, value.to_owned()));
        self.point_duration.get_or_create(&labels).observe(since.elapsed().as_secs_f64());
    }

    /// A Pod waited to be permitted.
    pub(crate) fn waited(&self, result: &'static str, took: Duration) {
        self.permit_wait.get_or_create(&[("result", result)]).observe(took.as_secs_f64());
    }

    /// It was tried to make room for a Pod; so many have to go, if that helps.
    pub(crate) fn preempted(&self, victims: Option<usize>) {
        self.preemptions.inc();
        if let Some(victims) = victims {
            self.victims.observe(f64::from(u32::try_from(victims).unwrap_or(u32::MAX)));
        }
    }

    /// A Pod came into a queue.
    pub(crate) fn came(&self, queue: &str, event: &str) {
        let labels = [("queue", queue.to_owned()), ("event", event.to_owned())];
        self.incoming.get_or_create(&labels).inc();
    }

    /// Tells from now on how much there is of what somebody keeps, as long as that lives.
    pub(crate) fn measure<K: Kept + 'static>(&self, kept: &Arc<K>) {
        let kept: Weak<K> = Arc::downgrade(kept);
        *self.sizes.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }
}

/// How many Pods and nodes there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Pods that have no node yet, by queue.
    pub(crate) pending: [(&'static str, usize); 4],
    /// What the cache holds, by type.
    pub(crate) cached: [(&'static str, usize); 3],
    /// Pods that a plug-in refused, by its name and that of the profile.
    pub(crate) refused: BTreeMap<[String; 2], usize>,
    /// What happened while Pods are being decided upon, and those Pods.
    pub(crate) in_flight: BTreeMap<String, usize>,
}

/// Who keeps Pods and nodes.
pub(crate) trait Kept: Send + Sync {
    fn reading(&self) -> Reading;
}

/// Reads how many there are when somebody asks.
#[derive(Default)]
struct Sizes(Mutex<Option<Weak<dyn Kept>>>);

impl fmt::Debug for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Sizes").finish()
    }
}

impl Collector for Sizes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(kept) = kept.and_then(|kept| kept.upgrade()) else { return Ok(()) };
        let reading = kept.reading();
        let help = "Number of pending pods, by the queue type. 'active' means number of pods in \
                    activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means \
                    number of pods in unschedulablePods that the scheduler attempted to schedule \
                    and failed; 'gated' is the number of unschedulable pods that the scheduler \
                    never attempted to schedule because they are gated";
        let gauge = MetricType::Gauge;
        let mut metric = encoder.encode_descriptor("scheduler_pending_pods", help, None, gauge)?;
        for (queue, count) in reading.pending {
            ConstGauge::new(count as u64).encode(metric.encode_family(&[("queue", queue)])?)?;
        }
        let help = "Number of nodes, pods, and assumed (bound) pods in the scheduler cache";
        let mut metric = encoder.encode_descriptor("scheduler_cache_size", help, None, gauge)?;
        for (type_, count) in reading.cached {
            ConstGauge::new(count as u64).encode(metric.encode_family(&[("type", type_)])?)?;
        }
        let help = "The number of unschedulable pods broken down by plugin name. A pod will \
                    increment the gauge for all plugins that caused it to not schedule and so this \
                    metric have meaning only when broken down by plugin";
        let name = "scheduler_unschedulable_pods";
        let mut metric = encoder.encode_descriptor(name, help, None, gauge)?;
        for ([plugin, profile], count) in &reading.refused {
            let labels = [("plugin", plugin.as_str()), ("profile", profile)];
            ConstGauge::new(*count as u64).encode(metric.encode_family(&labels)?)?;
        }
        let help = "Number of events currently tracked in the scheduling queue";
        let mut metric =
            encoder.encode_descriptor("scheduler_inflight_events", help, None, gauge)?;
        for (event, count) in &reading.in_flight {
            let labels = [("event", event.as_str())];
            ConstGauge::new(*count as u64).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use steersman::metrics::Metrics;

    use super::*;

    struct Few;

    impl Kept for Few {
        fn reading(&self) -> Reading {
            Reading {
                pending: [("active", 1), ("backoff", 2), ("unschedulable", 3), ("gated", 4)],
                cached: [("nodes", 5), ("pods", 6), ("assumed_pods", 7)],
                refused: [(["NodePorts".to_owned(), "p".to_owned()], 3)].into(),
                in_flight: [("PodPopped".to_owned(), 1)].into(),
            }
        }
    }

    /// What plug-ins, devices and other work have to tell.
    fn tell_of_the_rest(scheduler: &SchedulerMetrics) {
        let event = EventName { resource: "Node", action: "Add" };
        let plugin = "NodePorts";
        scheduler.plugins.evaluations(plugin, "Filter", &"p".into()).inc();
        scheduler.plugins.took(plugin, "Filter", "Success", Instant::now());
        scheduler.plugins.hinted(plugin, event, "QueueSkip", Duration::ZERO);
        scheduler.work.handled(event, Instant::now());
        drop(scheduler.work.binding());
        scheduler.work.preempted(false, Duration::ZERO);
        scheduler.work.bound_after_flush();
        scheduler.work.volumes_failed();
        scheduler.devices.created(false);
        let waited = Waited {
            status: "timeout",
            drivers: vec!["a".into(), "b".into()],
            conditional: vec!["a".into()],
            ..Waited::default()
        };
        scheduler.devices.waited(&"p".into(), &waited);
    }

    #[tokio::test(start_paused = true)]
    async fn the_names_are_those_of_kubernetes() {
        let metrics = Metrics::default();
        let scheduler: SchedulerMetrics = metrics.families();
        let few = Arc::new(Few);
        scheduler.measure(&few);
        scheduler.attempted(Attempted::Scheduled, "p", Duration::from_millis(3));
        scheduler.decided(Duration::from_millis(1));
        scheduler.bound(2, Duration::from_secs(1));
        scheduler.bound(20, Duration::from_secs(1));
        scheduler.ran("Filter", "Success", "p", Instant::now());
        scheduler.waited("Success", Duration::ZERO);
        scheduler.preempted(Some(2));
        scheduler.came("active", "NodeAdd");
        tell_of_the_rest(&scheduler);
        let told = metrics.render_text();
        for line in [
            "scheduler_schedule_attempts_total{result=\"scheduled\",profile=\"p\"} 1",
            "scheduler_scheduling_attempt_duration_seconds_count{result=\"scheduled\",profile=\"p\"} 1",
            "scheduler_scheduling_algorithm_duration_seconds_count 1",
            "scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"2\"} 1",
            "scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"15+\"} 1",
            "scheduler_pod_scheduling_attempts_sum 22",
            "scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Filter\",\
             status=\"Success\",profile=\"p\"} 1",
            "scheduler_permit_wait_duration_seconds_count{result=\"Success\"} 1",
            "scheduler_preemption_attempts_total 1",
            "scheduler_preemption_victims_sum 2",
            "scheduler_queue_incoming_pods_total{queue=\"active\",event=\"NodeAdd\"} 1",
            "scheduler_pending_pods{queue=\"gated\"} 4",
            "scheduler_cache_size{type=\"assumed_pods\"} 7",
            "scheduler_unschedulable_pods{plugin=\"NodePorts\",profile=\"p\"} 3",
            "scheduler_inflight_events{event=\"PodPopped\"} 1",
            "scheduler_plugin_evaluation_total{plugin=\"NodePorts\",extension_point=\"Filter\",\
             profile=\"p\"} 1",
            "scheduler_plugin_execution_duration_seconds_count{plugin=\"NodePorts\",\
             extension_point=\"Filter\",status=\"Success\"} 1",
            "scheduler_queueing_hint_execution_duration_seconds_count{plugin=\"NodePorts\",\
             event=\"NodeAdd\",hint=\"QueueSkip\"} 1",
            "scheduler_event_handling_duration_seconds_count{event=\"NodeAdd\"} 1",
            "scheduler_goroutines{operation=\"binding\"} 0",
            "scheduler_preemption_goroutines_execution_total{result=\"error\"} 1",
            "scheduler_preemption_goroutines_duration_seconds_count{result=\"error\"} 1",
            "scheduler_pod_scheduled_after_flush_total 1",
            "scheduler_volume_scheduling_stage_error_total{operation=\"bind\"} 1",
            "scheduler_resourceclaim_creates_total{status=\"failure\"} 1",
            "scheduler_dra_bindingconditions_allocations_total{profile=\"p\",driver=\"a\",\
             status=\"timeout\"} 1",
            "scheduler_dra_bindingconditions_wait_duration_seconds_count{profile=\"p\",\
             driver=\"b\",status=\"timeout\"} 1",
        ] {
            assert!(told.contains(line), "{line} is not in\n{told}");
        }
        drop(few);
        assert!(!metrics.render_text().contains("scheduler_pending_pods{"));
    }
}
