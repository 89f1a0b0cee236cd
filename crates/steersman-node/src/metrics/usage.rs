//! How much Pods and nodes use.
//!
//! A container that runs uses what its [script](crate::script) says, what the group of its node says,
//! or [next to nothing](IDLE). A
//! node that is ready uses what its Pods do, and [something of its own](SYSTEM). Unlike in reality,
//! nothing has to run for a while before it is measured.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Map, Value, json};
use steersman_values::Quantity;

use crate::groups::UsageProfile;
use crate::script::{Script, Scripted, Scripts};

const API_VERSION: &str = "metrics.k8s.io/v1beta1";

/// Over how long everything is measured: as metrics-server does by its manifest.
const WINDOW: &str = "15s";

/// What a container uses of which nobody says anything: CPU time and memory.
const IDLE: (&str, &str) = ("1m", "8Mi");

/// What a node uses beside its Pods.
const SYSTEM: (&str, &str) = ("50m", "512Mi");

/// How much is used.
#[derive(Clone, Copy)]
struct Usage {
    cpu: Quantity,
    memory: Quantity,
}

impl Usage {
    fn of((cpu, memory): (&str, &str)) -> Self {
        let amount = |text: &str| Quantity::parse(text).expect("it is written here");
        Self { cpu: amount(cpu), memory: amount(memory) }
    }

    fn of_script(script: &Script, otherwise: Self) -> Self {
        Self {
            cpu: script.cpu().unwrap_or(otherwise.cpu),
            memory: script.memory().unwrap_or(otherwise.memory),
        }
    }

    /// What a container uses of which no script says anything.
    fn by_profile(profile: Option<&UsageProfile>, container: &Container) -> Self {
        let idle = Self::of(IDLE);
        let cpu = profile.and_then(|profile| profile.cpu_of(container));
        let memory = profile.and_then(|profile| profile.memory_of(container));
        Self { cpu: cpu.unwrap_or(idle.cpu), memory: memory.unwrap_or(idle.memory) }
    }

    /// Both together. What makes too much of it counts as nothing.
    fn plus(self, other: Self) -> Self {
        let sum = |one: Quantity, other: Quantity| one.checked_add(other).unwrap_or(one);
        Self { cpu: sum(self.cpu, other.cpu), memory: sum(self.memory, other.memory) }
    }

    fn to_value(self) -> Value {
        json!({"cpu": self.cpu.to_string(), "memory": self.memory.to_string()})
    }
}

/// PodMetrics of a Pod, if it runs.
pub(super) fn of_pod(scripts: &Scripts, pod: &Pod, now: &Time) -> Option<Value> {
    let used = used(scripts, pod);
    if used.is_empty() {
        return None;
    }
    let container = |(name, usage): (&str, Usage)| json!({"name": name, "usage": usage.to_value()});
    let mut metrics = measured("PodMetrics", &pod.metadata, now);
    metrics["containers"] = used.into_iter().map(container).collect();
    Some(metrics)
}

/// NodeMetrics of a node on which some of these Pods run, if it is ready.
pub(super) fn of_node(scripts: &Scripts, node: &Node, pods: &[Pod], now: &Time) -> Option<Value> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|told| told.type_ == "Ready" && told.status == "True")?;
    let name = node.metadata.name.as_deref();
    let node_of = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let on_it = pods.iter().filter(|pod| node_of(pod).as_deref() == name);
    let used = on_it.flat_map(|pod| used(scripts, pod)).map(|(_, usage)| usage);
    let mut metrics = measured("NodeMetrics", &node.metadata, now);
    metrics["usage"] = used.fold(Usage::of(SYSTEM), Usage::plus).to_value();
    Some(metrics)
}

/// PodMetrics with what all containers use together.
pub(super) fn with_sum(mut metrics: Value) -> Value {
    let containers = metrics["containers"].as_array().into_iter().flatten();
    let usage = containers.filter_map(|container| {
        let amount = |name: &str| Quantity::of(&container["usage"][name]);
        Some(Usage { cpu: amount("cpu")?, memory: amount("memory")? })
    });
    if let Some(usage) = usage.reduce(Usage::plus) {
        metrics["usage"] = usage.to_value();
    }
    metrics
}

/// What the containers of a Pod use that run.
fn used<'a>(scripts: &Scripts, pod: &'a Pod) -> Vec<(&'a str, Usage)> {
    let Some((spec, status)) = pod.spec.as_ref().zip(pod.status.as_ref()) else {
        return Vec::new();
    };
    if status.phase.as_deref() != Some("Running") {
        return Vec::new();
    }
    let main = spec.containers.iter().map(|container| (container, true));
    let init = spec.init_containers.iter().flatten().map(|container| (container, false));
    let statuses = [&status.container_statuses, &status.init_container_statuses];
    let statuses = statuses.into_iter().flatten().flatten();
    let runs = |container: &Container| {
        let is_running = |status: &ContainerStatus| {
            status.name == container.name
                && status.state.as_ref().is_some_and(|state| state.running.is_some())
        };
        statuses.clone().any(is_running)
    };
    let profile = spec.node_name.as_deref().and_then(|node| scripts.profile(node));
    main.chain(init)
        .filter(|(container, _)| runs(container))
        .map(|(container, main)| {
            let image = container.image.as_deref().unwrap_or_default();
            let scripted = Scripted { pod, name: &container.name, image, main };
            let otherwise = Usage::by_profile(profile.as_ref(), container);
            let usage = Usage::of_script(&scripts.script(&scripted), otherwise);
            (container.name.as_str(), usage)
        })
        .collect()
}

/// The metrics of an object, which have its name and labels, without what it uses.
fn measured(kind: &str, of: &ObjectMeta, now: &Time) -> Value {
    let mut metadata = Map::new();
    for (field, value) in [
        ("name", json!(of.name)),
        ("namespace", json!(of.namespace)),
        ("creationTimestamp", json!(now)),
        ("labels", json!(of.labels)),
    ] {
        if !value.is_null() {
            metadata.insert(field.to_owned(), value);
        }
    }
    json!({
        "kind": kind, "apiVersion": API_VERSION, "metadata": metadata, "timestamp": now,
        "window": WINDOW,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::{Value, json};
    use steersman::clock;

    use super::{of_node, of_pod, with_sum};
    use crate::script::Scripts;

    /// A Pod whose main containers are in this state.
    fn pod(phase: &str, state: &str) -> Pod {
        let status = |name: &str, state: Value| {
            json!({
                "name": name, "ready": true, "restartCount": 0, "image": "", "imageID": "",
                "state": state,
            })
        };
        let running = |name: &str| status(name, json!({state: {"exitCode": 0}}));
        let done = status("setup", json!({"terminated": {"exitCode": 0}}));
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
            "spec": {
                "nodeName": "node-0", "containers": [{"name": "main"}, {"name": "side"}],
                "initContainers": [{"name": "setup"}],
            },
            "status": {
                "phase": phase, "containerStatuses": [running("main"), running("side")],
                "initContainerStatuses": [done],
            },
        }))
        .unwrap()
    }

    fn scripts() -> Scripts {
        let scripts = Scripts::default();
        scripts.rule().named("web").container("main").uses("250m", "64Mi");
        scripts
    }

    #[test]
    fn containers_that_run_use_what_is_said_or_next_to_nothing() {
        let now = clock::now_time();
        let metrics = of_pod(&scripts(), &pod("Running", "running"), &now).unwrap();
        let container =
            |name, cpu, memory| json!({"name": name, "usage": {"cpu": cpu, "memory": memory}});
        assert_eq!(
            metrics,
            json!({
                "kind": "PodMetrics", "apiVersion": "metrics.k8s.io/v1beta1",
                "metadata": {
                    "name": "web", "namespace": "shop", "labels": {"app": "web"},
                    "creationTimestamp": now,
                },
                "timestamp": now, "window": "15s",
                "containers": [container("main", "250m", "64Mi"), container("side", "1m", "8Mi")],
            })
        );
        assert_eq!(with_sum(metrics)["usage"], json!({"cpu": "251m", "memory": "72Mi"}));
        for (phase, state) in [("Pending", "waiting"), ("Succeeded", "terminated")] {
            assert_eq!(of_pod(&scripts(), &pod(phase, state), &now), None, "{phase}");
        }
    }

    #[test]
    fn a_node_that_is_ready_uses_what_its_pods_do_and_more() {
        let now = clock::now_time();
        let node = |name: &str, ready: &str| -> Node {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            let status = json!({"conditions": conditions});
            serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).unwrap()
        };
        let pods = [pod("Running", "running"), pod("Failed", "terminated")];
        let usage = |node: &Node| {
            of_node(&scripts(), node, &pods, &now).map(|metrics| metrics["usage"].clone())
        };
        let busy = json!({"cpu": "301m", "memory": "584Mi"});
        assert_eq!(usage(&node("node-0", "True")), Some(busy));
        let idle = json!({"cpu": "50m", "memory": "512Mi"});
        assert_eq!(usage(&node("node-1", "True")), Some(idle));
        assert_eq!(usage(&node("node-2", "False")), None);
    }
}
