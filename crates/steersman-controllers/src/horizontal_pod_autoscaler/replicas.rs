//! How many replicas a metric asks for.
//!
//! Example: two of three Pods are measured, at 90 % of what they request, and the target is 60 %.
//! That is 1.5 times too much. The third Pod has no metrics; on the way up it counts as idle, so
//! they use 60 % on average, which is the target: nothing changes. Were the third one measured at
//! 90 % as well, ⌈1.5 × 3⌉ = 5 replicas would be asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerBehavior;
use k8s_openapi::api::core::v1::{Container, Pod, PodCondition};
use steersman::{Error, Result};
use steersman_rules::quantity::Quantity;
use steersman_rules::quota::requests_of_spec;

use super::metrics_api::{PodMetrics, Resource};
use super::quantities::milli;
use super::settings::AutoscalerSettings;
use crate::pod::{is_ready, phase};

/// How far the ratio of usage and target may be off one without consequences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerances {
    down: f64,
    up: f64,
}

impl Tolerances {
    /// Those of an autoscaler, of which the second are where it says nothing.
    pub(super) fn of(behavior: Option<&HorizontalPodAutoscalerBehavior>, usual: f64) -> Self {
        let rules = |up: bool| {
            let behavior = behavior?;
            if up { behavior.scale_up.as_ref() } else { behavior.scale_down.as_ref() }
        };
        let tolerance = |up: bool| {
            let given = rules(up).and_then(|rules| rules.tolerance.as_ref());
            given.map_or(usual, |given| milli(given) as f64 / 1000.0)
        };
        Self { down: tolerance(false), up: tolerance(true) }
    }

    fn contain(self, ratio: f64) -> bool {
        (1.0 - self.down..=1.0 + self.up).contains(&ratio)
    }
}

/// The target and its Pods, to which a metric is compared.
pub(super) struct Situation<'a> {
    /// How many replicas are asked for.
    pub(super) spec_replicas: i32,
    /// How many replicas there are.
    pub(super) status_replicas: i32,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) tolerances: Tolerances,
    pub(super) settings: AutoscalerSettings,
    pub(super) now: Timestamp,
}

/// How many replicas are proposed, and what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) replicas: i32,
    /// What a Pod uses on average, or what was measured of an object.
    pub(super) usage: i64,
    /// The same in percent of what is requested, if the target is that.
    pub(super) utilization: Option<i32>,
}

/// What the measured Pods use, compared to the target.
struct Usage {
    ratio: f64,
    average: i64,
    utilization: Option<i32>,
}

/// The Pods of a target by what their metrics are worth.
struct Grouped<'a> {
    /// How many have metrics that count.
    ready: usize,
    /// Those whose metrics do not count.
    unready: Vec<&'a str>,
    /// Those without metrics.
    missing: Vec<&'a str>,
    /// What counts.
    metrics: PodMetrics,
}

impl Situation<'_> {
    /// For a target in percent of what Pods request.
    pub(super) fn for_utilization(
        &self,
        metrics: PodMetrics,
        resource: Resource<'_>,
        target: i32,
    ) -> Result<Count> {
        let grouped = self.group(metrics, resource.name)?;
        let requests = requests(self.pods, resource)?;
        // A Pod whose use is unknown is taken to use all it requests, or the target if that is
        // more.
        let percent = i64::from(target.max(100));
        let full = |pod: &str| requests.get(pod).map_or(0, |all| all.saturating_mul(percent) / 100);
        self.count(grouped, |metrics| utilization(metrics, &requests, target), full)
    }

    /// For a target that each Pod should use on average. `resource` is empty for what is none.
    pub(super) fn for_average(
        &self,
        metrics: PodMetrics,
        resource: &str,
        target: i64,
    ) -> Result<Count> {
        let grouped = self.group(metrics, resource)?;
        self.count(grouped, |metrics| Ok(average(metrics, target)), |_| target)
    }

    /// For a target that something besides the Pods should have.
    pub(super) fn for_value(&self, usage: i64, target: i64) -> Result<Count> {
        let ratio = usage as f64 / target as f64;
        let current = self.spec_replicas;
        let replicas = if current == 0 {
            ceil(ratio)
        } else if self.tolerances.contain(ratio) {
            current
        } else {
            if self.pods.is_empty() {
                let why = "no pods returned by selector while calculating replica count";
                return Err(Error::message(format!("unable to calculate ready pods: {why}")));
            }
            let ready = |pod: &&Arc<Pod>| phase(pod) == "Running" && is_ready(pod);
            ceil(ratio * self.pods.iter().filter(ready).count() as f64)
        };
        Ok(Count { replicas, usage, utilization: None })
    }

    /// For a target that something besides the Pods should have for each of them.
    pub(super) fn for_value_per_pod(&self, usage: i64, target: i64) -> Count {
        let current = self.status_replicas;
        let (total, target) = (usage as f64, target as f64);
        let within = self.tolerances.contain(total / (target * f64::from(current)));
        let replicas = if within { current } else { ceil(total / target) };
        let usage = match usage {
            i64::MAX => i64::MAX,
            _ => (total / f64::from(current)).ceil() as i64,
        };
        Count { replicas, usage, utilization: None }
    }

    fn group(&self, mut metrics: PodMetrics, resource: &str) -> Result<Grouped<'_>> {
        if self.pods.is_empty() {
            let why = "no pods returned by selector while calculating replica count";
            return Err(Error::message(why));
        }
        let (mut ready, mut unready, mut missing) = (0, Vec::new(), Vec::new());
        for pod in self.pods {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            if pod.metadata.deletion_timestamp.is_some() || phase(pod) == "Failed" {
                metrics.remove(name);
            } else if phase(pod) == "Pending" {
                metrics.remove(name);
                unready.push(name);
            } else if let Some(metric) = metrics.get(name) {
                let since = metric.timestamp.saturating_sub(metric.window);
                let since = since.unwrap_or(metric.timestamp);
                if resource == "cpu" && self.says_little(pod, since) {
                    metrics.remove(name);
                    unready.push(name);
                } else {
                    ready += 1;
                }
            } else {
                missing.push(name);
            }
        }
        if metrics.is_empty() {
            let why = "did not receive metrics for targeted pods (pods might be unready)";
            return Err(Error::message(why));
        }
        Ok(Grouped { ready, unready, missing, metrics })
    }

    /// Proposes a number. Pods without usable metrics never make the target grow or shrink
    /// further than the others do, and never turn growing into shrinking.
    fn count(
        &self,
        grouped: Grouped<'_>,
        usage: impl Fn(&PodMetrics) -> Result<Usage>,
        full: impl Fn(&str) -> i64,
    ) -> Result<Count> {
        let Grouped { ready, unready, missing, mut metrics } = grouped;
        let measured = usage(&metrics)?;
        let ratio = measured.ratio;
        let counted = |replicas| Count {
            replicas,
            usage: measured.average,
            utilization: measured.utilization,
        };
        let up_with_unready = !unready.is_empty() && ratio > 1.0;
        if !up_with_unready && missing.is_empty() {
            let within = self.tolerances.contain(ratio);
            let replicas = if within { self.spec_replicas } else { ceil(ratio * ready as f64) };
            return Ok(counted(replicas));
        }
        let assumed = |value| super::metrics_api::PodMetric {
            timestamp: self.now,
            window: SignedDuration::ZERO,
            value,
        };
        if ratio < 1.0 {
            metrics.extend(missing.iter().map(|pod| ((*pod).to_owned(), assumed(full(pod)))));
        } else if ratio > 1.0 {
            metrics.extend(missing.iter().map(|pod| ((*pod).to_owned(), assumed(0))));
        }
        if up_with_unready {
            metrics.extend(unready.iter().map(|pod| ((*pod).to_owned(), assumed(0))));
        }
        let second = usage(&metrics)?.ratio;
        let turned = (ratio < 1.0 && second > 1.0) || (ratio > 1.0 && second < 1.0);
        let replicas = ceil(second * metrics.len() as f64);
        let against = (second < 1.0 && replicas > self.spec_replicas)
            || (second > 1.0 && replicas < self.spec_replicas);
        let stays = self.tolerances.contain(second) || turned || against;
        Ok(counted(if stays { self.spec_replicas } else { replicas }))
    }
}

impl Situation<'_> {
    /// Whether the CPU time of a Pod says little about its load: it is starting, or has never been
    /// ready. `since` is when the time began over which it was measured.
    fn says_little(&self, pod: &Pod, since: Timestamp) -> bool {
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let is_readiness = |condition: &&PodCondition| condition.type_ == "Ready";
        let ready = conditions.into_iter().flatten().find(is_readiness);
        let started = status.and_then(|status| status.start_time.as_ref());
        let (Some(ready), Some(started)) = (ready, started) else { return true };
        let changed = ready.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0);
        let unready = ready.status == "False";
        let is_within = |time: Timestamp, period: Duration| {
            let period = SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX);
            time.duration_since(started.0) < period
        };
        if is_within(self.now, self.settings.cpu_initialization_period) {
            unready || since < changed
        } else {
            unready && is_within(changed, self.settings.initial_readiness_delay)
        }
    }
}

fn utilization(metrics: &PodMetrics, requests: &BTreeMap<&str, i64>, target: i32) -> Result<Usage> {
    let (mut used, mut requested, mut pods) = (0_i128, 0_i128, 0_i128);
    for (pod, metric) in metrics {
        // What is measured of others is none of this target's business.
        let Some(request) = requests.get(pod.as_str()) else { continue };
        used += i128::from(metric.value);
        requested += i128::from(*request);
        pods += 1;
    }
    if requested == 0 {
        return Err(Error::message("no metrics returned matched known pods"));
    }
    let percent = i32::try_from(used * 100 / requested).unwrap_or(i32::MAX);
    Ok(Usage {
        ratio: f64::from(percent) / f64::from(target),
        average: i64::try_from(used / pods).unwrap_or(i64::MAX),
        utilization: Some(percent),
    })
}

fn average(metrics: &PodMetrics, target: i64) -> Usage {
    let used: i128 = metrics.values().map(|metric| i128::from(metric.value)).sum();
    let average = used / i128::try_from(metrics.len().max(1)).unwrap_or(1);
    let average = i64::try_from(average).unwrap_or(i64::MAX);
    Usage { ratio: average as f64 / target as f64, average, utilization: None }
}

/// What each Pod requests of a resource, or a container of it.
fn requests<'a>(pods: &'a [Arc<Pod>], resource: Resource<'_>) -> Result<BTreeMap<&'a str, i64>> {
    let of_pod = |pod: &'a Arc<Pod>| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let request = match resource.container {
            None => of_whole_pod(pod, name, resource.name),
            Some(_) => None,
        };
        Ok((name, request.unwrap_or_else(|| of_containers(pod, name, resource))?))
    };
    pods.iter().map(of_pod).collect()
}

/// What a Pod requests for all of its containers at once, if it does.
fn of_whole_pod(pod: &Pod, name: &str, resource: &str) -> Option<Result<i64>> {
    let spec = pod.spec.as_ref()?;
    let requests = spec.resources.as_ref()?.requests.as_ref()?;
    let can_be =
        |name: &String| name == "cpu" || name == "memory" || name.starts_with("hugepages-");
    if !requests.keys().any(can_be) {
        return None;
    }
    let all = serde_json::to_value(spec).map(|spec| requests_of_spec(&spec)).ok()?;
    let lacks = || {
        let why = format!("missing pod-level request for {resource} in Pod {name}");
        Error::message(why)
    };
    Some(all.get(resource).map(Quantity::milli_value).ok_or_else(lacks))
}

fn of_containers(pod: &Pod, name: &str, resource: Resource<'_>) -> Result<i64> {
    let spec = pod.spec.iter();
    let keeps_running =
        |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let beside = spec.clone().flat_map(|spec| spec.init_containers.iter().flatten());
    let all = spec.flat_map(|spec| &spec.containers).chain(beside.filter(keeps_running));
    let mut sum = 0_i64;
    let mut found = false;
    for container in all {
        if resource.container.is_some_and(|wanted| wanted != container.name) {
            continue;
        }
        let requests = container.resources.as_ref().and_then(|all| all.requests.as_ref());
        let request = requests.and_then(|requests| requests.get(resource.name));
        let (wanted, container) = (resource.name, &container.name);
        let request = milli(request.ok_or_else(|| {
            let why =
                format!("missing request for {wanted} in container {container} of Pod {name}");
            Error::message(why)
        })?);
        sum = sum.saturating_add(request);
        found = true;
    }
    match resource.container {
        Some(container) if !found => {
            Err(Error::message(format!("container {container} not found in Pod {name}")))
        }
        _ => Ok(sum),
    }
}

/// Rounds up to a number of replicas, at most what one can be.
fn ceil(replicas: f64) -> i32 {
    replicas.ceil() as i32
}
