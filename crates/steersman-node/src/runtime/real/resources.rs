//! What resources of Pods and containers mean to the kernel: shares, quotas, limits.
//!
//! The arithmetic is a kubelet's (`pkg/kubelet/cm/helpers_linux.go`, `pkg/kubelet/qos/policy.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use steersman_values::Quantity;

use crate::cri::wire::container::LinuxContainerResources;

const SHARES_MIN: i64 = 2;
const SHARES_MAX: i64 = 262_144;
/// In microseconds.
const PERIOD: i64 = 100_000;
const QUOTA_MIN: i64 = 1_000;
const OOM_GROUP: &str = "memory.oom.group";
const OOM_GUARANTEED: i64 = -997;
const OOM_BEST_EFFORT: i64 = 1000;
/// From here on a Pod is one that its node cannot do without.
const NODE_CRITICAL: i32 = 2_000_001_000;

/// How well a Pod is treated when there is not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Qos {
    Guaranteed,
    Burstable,
    BestEffort,
}

impl Qos {
    /// As the server has found when the Pod was made.
    pub(crate) fn of(pod: &Pod) -> Self {
        match pod.status.as_ref().and_then(|status| status.qos_class.as_deref()) {
            Some("Guaranteed") => Self::Guaranteed,
            Some("Burstable") => Self::Burstable,
            _ => Self::BestEffort,
        }
    }
}

/// What of a machine its containers' resources depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// In bytes.
    pub(super) memory: i64,
    /// Whether all of its cgroups are of the second version.
    pub(super) unified: bool,
}

/// What the cgroup of a whole Pod allows; what is left out has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PodLimits {
    pub(super) cpu_shares: i64,
    /// Of each [`PERIOD`].
    pub(super) cpu_quota: Option<i64>,
    pub(super) memory: Option<i64>,
}

/// A limit or a request.
fn amount(list: Option<&BTreeMap<String, Written>>, name: &str) -> Option<Quantity> {
    list?.get(name).and_then(|text| Quantity::parse(&text.0).ok())
}

fn limit(resources: Option<&ResourceRequirements>, name: &str) -> Option<Quantity> {
    amount(resources?.limits.as_ref(), name).filter(|limit| limit.is_positive())
}

fn request(resources: Option<&ResourceRequirements>, name: &str) -> Option<Quantity> {
    amount(resources?.requests.as_ref(), name)
}

fn shares(milli: i64) -> i64 {
    (milli * 1024 / 1000).clamp(SHARES_MIN, SHARES_MAX)
}

fn quota(milli: i64) -> i64 {
    (milli * PERIOD / 1000).max(QUOTA_MIN)
}

/// What a container is told.
pub(super) fn of_container(
    pod: &Pod,
    container: &Container,
    host: Host,
) -> LinuxContainerResources {
    let whole = pod.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    let own = container.resources.as_ref();
    let cpu_limit = limit(own, "cpu").or_else(|| limit(whole, "cpu")).map(Quantity::milli_value);
    let memory_limit = limit(own, "memory").or_else(|| limit(whole, "memory"));
    let memory_limit = memory_limit.map_or(0, Quantity::value);
    // A request that is not there is taken from the limit; one of nothing is nothing.
    let cpu_request = request(own, "cpu").map(Quantity::milli_value).or(cpu_limit);
    LinuxContainerResources {
        cpu_shares: shares(cpu_request.unwrap_or(0)),
        cpu_period: if cpu_limit.is_some() { PERIOD } else { 0 },
        cpu_quota: cpu_limit.map_or(0, quota),
        memory_limit_in_bytes: memory_limit,
        memory_swap_limit_in_bytes: memory_limit,
        oom_score_adj: oom_score(pod, container, host.memory),
        // Where the kernel can, all processes of a container that runs out of memory are killed
        // together: that of a part of them would leave the rest in a state that nobody expects.
        unified: host.unified.then(|| (OOM_GROUP.into(), "1".into())).into_iter().collect(),
    }
}

/// What the runtime is told that all containers of a Pod have together.
pub(super) fn of_sandbox(limits: &PodLimits) -> LinuxContainerResources {
    LinuxContainerResources {
        cpu_shares: limits.cpu_shares,
        cpu_period: if limits.cpu_quota.is_some() { PERIOD } else { 0 },
        cpu_quota: limits.cpu_quota.unwrap_or(0),
        memory_limit_in_bytes: limits.memory.unwrap_or(0),
        ..LinuxContainerResources::default()
    }
}

fn oom_score(pod: &Pod, container: &Container, memory: i64) -> i64 {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
    match Qos::of(pod) {
        _ if priority >= NODE_CRITICAL => OOM_GUARANTEED,
        Qos::Guaranteed => OOM_GUARANTEED,
        Qos::BestEffort => OOM_BEST_EFFORT,
        Qos::Burstable => {
            let asked = request(container.resources.as_ref(), "memory").map_or(0, Quantity::value);
            let score = 1000 - 1000_i64.saturating_mul(asked) / memory.max(1);
            // Neither as safe as the guaranteed nor as exposed as the others.
            score.clamp(1000 + OOM_GUARANTEED, OOM_BEST_EFFORT - 1)
        }
    }
}

/// What the cgroup of a Pod allows.
pub(super) fn of_pod(pod: &Pod) -> PodLimits {
    let Some(spec) = &pod.spec else { return PodLimits::default() };
    let qos = Qos::of(pod);
    if qos == Qos::BestEffort {
        return PodLimits { cpu_shares: SHARES_MIN, ..PodLimits::default() };
    }
    let whole = spec.resources.as_ref();
    let cpu_request = request(whole, "cpu").map(Quantity::milli_value);
    let cpu_request = cpu_request
        .unwrap_or_else(|| sum(spec, |r| request(r, "cpu").map(Quantity::milli_value)).0);
    let limit_of = |name: &'static str, of: fn(Quantity) -> i64| {
        if let Some(limit) = limit(whole, name) {
            return Some(of(limit));
        }
        let (sum, declared) = sum(spec, |resources| limit(resources, name).map(of));
        (declared || qos == Qos::Guaranteed).then_some(sum).filter(|sum| *sum > 0)
    };
    PodLimits {
        cpu_shares: shares(cpu_request),
        cpu_quota: limit_of("cpu", Quantity::milli_value).map(quota),
        memory: limit_of("memory", Quantity::value),
    }
}

/// What the containers of a Pod have together at most, and whether all of them say: main containers
/// and companions at the same time, each init container beside the companions before it.
fn sum(spec: &PodSpec, of: impl Fn(Option<&ResourceRequirements>) -> Option<i64>) -> (i64, bool) {
    let (mut companions, mut peak, mut declared) = (0_i64, 0_i64, true);
    for init in spec.init_containers.iter().flatten() {
        let own = of(init.resources.as_ref());
        declared &= own.is_some();
        if init.restart_policy.as_deref() == Some("Always") {
            companions += own.unwrap_or(0);
            peak = peak.max(companions);
        } else {
            peak = peak.max(companions + own.unwrap_or(0));
        }
    }
    let main = spec.containers.iter().map(|container| of(container.resources.as_ref()));
    let main: Vec<Option<i64>> = main.collect();
    declared &= main.iter().all(Option::is_some);
    let main: i64 = main.into_iter().flatten().sum();
    (peak.max(companions + main), declared)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HOST: Host = Host { memory: 1 << 30, unified: false };

    fn pod(qos: &str, containers: &Value, init: &Value) -> Pod {
        let spec = json!({"containers": containers, "initContainers": init});
        serde_json::from_value(json!({"spec": spec, "status": {"qosClass": qos}})).unwrap()
    }

    fn container(requests: &Value, limits: &Value) -> Value {
        json!({"name": "c", "resources": {"requests": requests, "limits": limits}})
    }

    #[test]
    fn a_container_gets_shares_of_its_request_and_a_quota_of_its_limit() {
        let small = container(
            &json!({"cpu": "250m", "memory": "64Mi"}),
            &json!({"cpu": "500m", "memory": "128Mi"}),
        );
        let pod = pod("Burstable", &json!([small]), &json!([]));
        let got = of_container(&pod, &pod.spec.as_ref().unwrap().containers[0], HOST);
        assert_eq!((got.cpu_shares, got.cpu_quota, got.cpu_period), (256, 50_000, 100_000));
        assert_eq!(got.memory_limit_in_bytes, 128 << 20);
        assert_eq!(got.memory_swap_limit_in_bytes, 128 << 20);
        assert_eq!(got.oom_score_adj, 1000 - 62);
    }

    #[test]
    fn who_asks_for_nothing_gets_the_least_and_goes_first() {
        let pod = pod("BestEffort", &json!([{"name": "c"}]), &json!([]));
        let got = of_container(&pod, &pod.spec.as_ref().unwrap().containers[0], HOST);
        assert_eq!((got.cpu_shares, got.cpu_quota, got.memory_limit_in_bytes), (2, 0, 0));
        assert!(got.unified.is_empty());
        assert_eq!(got.oom_score_adj, 1000);
        assert_eq!(of_pod(&pod), PodLimits { cpu_shares: 2, ..PodLimits::default() });
    }

    #[test]
    fn all_of_a_container_is_killed_at_once_where_the_kernel_can() {
        let pod = pod("BestEffort", &json!([{"name": "c"}]), &json!([]));
        let host = Host { unified: true, ..HOST };
        let got = of_container(&pod, &pod.spec.as_ref().unwrap().containers[0], host);
        assert_eq!(got.unified, [("memory.oom.group".to_owned(), "1".to_owned())].into());
    }

    #[test]
    fn a_pod_is_limited_if_all_its_containers_are() {
        let one = container(&json!({"cpu": "1"}), &json!({"cpu": "1", "memory": "64Mi"}));
        let open = container(&json!({"cpu": "500m"}), &json!({}));
        let limited = of_pod(&pod("Burstable", &json!([one, one]), &json!([])));
        assert_eq!(limited.cpu_shares, 2048);
        assert_eq!((limited.cpu_quota, limited.memory), (Some(200_000), Some(128 << 20)));
        let unlimited = of_pod(&pod("Burstable", &json!([one, open]), &json!([])));
        assert_eq!((unlimited.cpu_shares, unlimited.cpu_quota), (1536, None));
        assert_eq!(unlimited.memory, None);
    }

    #[test]
    fn init_containers_count_if_they_need_more_than_all_the_others() {
        let of = |memory: &str| container(&json!({}), &json!({"cpu": "1", "memory": memory}));
        let mut companion = of("16Mi");
        companion["restartPolicy"] = json!("Always");
        let limits = |init: &Value| of_pod(&pod("Guaranteed", &json!([of("64Mi")]), init)).memory;
        assert_eq!(limits(&json!([of("256Mi")])), Some(256 << 20));
        assert_eq!(limits(&json!([companion, of("32Mi")])), Some(80 << 20));
    }
}
