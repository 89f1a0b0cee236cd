//! Which Pod is evicted, how fast, and what is told about it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::{Container, Pod};
use steersman_values::Quantity;

use super::admission::is_critical;
use super::pressure::Observations;
use super::requests::{amount, binary, decimal};
use super::signal::Signal;
use super::threshold::Threshold;
use super::usage::{ContainerUsage, PodUsage, Usages};

/// How long a Pod has that must go at once, in seconds.
pub(super) const AT_ONCE: i64 = 1;

/// A Pod that is evicted: it fails with the reason [`REASON`](super::REASON) and this message, which
/// an Event of the same reason tells too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Eviction<'a> {
    pub(crate) pod: &'a Pod,
    /// How long it has, instead of its own grace period.
    pub(crate) grace_seconds: i64,
    pub(crate) message: String,
    /// What the Event says more.
    pub(crate) annotations: BTreeMap<&'static str, String>,
    /// Whether it gets the condition `DisruptionTarget` with the reason `TerminationByKubelet`.
    pub(crate) disrupted: bool,
}

/// What the choice is made by.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// What is [starved](super::pressure::Observed::starved); the first is what counts.
    pub(crate) starved: &'a [Threshold],
    pub(crate) observations: &'a Observations,
    pub(crate) usages: &'a Usages,
    /// How long a Pod has when a soft threshold was passed, in seconds.
    pub(crate) grace_max_seconds: i64,
}

/// The Pod that is evicted, of Pods in their [order](super::rank()). Critical ones never are.
pub(crate) fn choose<'a>(ranked: &[&'a Pod], choice: &Choice<'_>) -> Option<Eviction<'a>> {
    let threshold = choice.starved.first()?;
    let pod = *ranked.iter().find(|pod| !is_critical(pod))?;
    let own = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let grace_seconds = match own {
        _ if threshold.is_hard() => AT_ONCE,
        Some(own) => own.min(choice.grace_max_seconds),
        None => choice.grace_max_seconds,
    };
    let (message, annotations) = choice.told(pod, threshold.signal);
    Some(Eviction { pod, grace_seconds, message, annotations, disrupted: true })
}

impl Choice<'_> {
    fn told(&self, pod: &Pod, signal: Signal) -> (String, BTreeMap<&'static str, String>) {
        let resource = signal.resource();
        let mut message = format!("The node was low on resource: {resource}. ");
        if let Some((quantity, available)) = self.passed(resource) {
            let _ = write!(message, "Threshold quantity: {quantity}, available: {available}. ");
        }
        let usage = pod.metadata.uid.as_ref().and_then(|uid| self.usages.get(uid));
        let Some(usage) = usage else { return (message, BTreeMap::new()) };
        let mut annotations = BTreeMap::new();
        if let Some(request) = pod_request(pod).filter(|_| resource == "memory") {
            let (name, used) =
                (pod.metadata.name.clone().unwrap_or_default(), binary(usage.memory));
            let _ = write!(
                message,
                "Pod {name} was using {used}, request is {request}, has larger consumption of \
                 {resource}. "
            );
            annotations.insert("offending_pod", name);
            annotations.insert("offending_pod_usage", used);
        }
        let (mut names, mut amounts) = (Vec::new(), Vec::new());
        for Offender { name, used, request } in offenders(pod, usage, resource) {
            let used = binary(used);
            let _ = write!(
                message,
                "Container {name} was using {used}, request is {request}, has larger consumption \
                 of {resource}. "
            );
            names.push(name);
            amounts.push(used);
        }
        annotations.insert("offending_containers", names.join(","));
        annotations.insert("offending_containers_usage", amounts.join(","));
        annotations.insert("starved_resource", resource.to_owned());
        (message, annotations)
    }

    /// The threshold of a resource that was passed, and what there is instead.
    fn passed(&self, resource: &str) -> Option<(String, String)> {
        let of_resource = self.starved.iter().filter(|it| it.signal.resource() == resource);
        let mut observed = of_resource
            .filter_map(|threshold| Some((threshold, self.observations.get(&threshold.signal)?)));
        let (threshold, observation) = observed.next()?;
        let available = match resource {
            "memory" | "ephemeral-storage" => binary(observation.available),
            _ => decimal(observation.available),
        };
        Some((binary(threshold.value.of(observation.capacity)), available))
    }
}

/// A container that uses more than it asked for.
struct Offender<'a> {
    name: &'a str,
    used: i64,
    request: Quantity,
}

fn offenders<'a>(pod: &'a Pod, usage: &'a PodUsage, resource: &'a str) -> Vec<Offender<'a>> {
    let spec = pod.spec.iter();
    let containers: Vec<&Container> = spec
        .flat_map(|it| it.containers.iter().chain(it.init_containers.iter().flatten()))
        .collect();
    let offender = |used: &'a ContainerUsage| {
        let container = containers.iter().find(|container| container.name == used.name)?;
        let amount_used = match resource {
            "memory" => used.memory?,
            "ephemeral-storage" => used.root?.bytes.saturating_add(used.logs?.bytes),
            _ => return None,
        };
        let requests = container.resources.as_ref().and_then(|it| it.requests.as_ref());
        let request = amount(requests, resource).unwrap_or(Quantity::ZERO);
        let exceeds = Quantity::parse(&amount_used.to_string()).is_ok_and(|used| used > request);
        exceeds.then_some(Offender { name: &used.name, used: amount_used, request })
    };
    usage.containers.iter().filter_map(offender).collect()
}

/// How much memory a Pod asked for as a whole.
fn pod_request(pod: &Pod) -> Option<Quantity> {
    amount(pod.spec.as_ref()?.resources.as_ref()?.requests.as_ref(), "memory")
}
