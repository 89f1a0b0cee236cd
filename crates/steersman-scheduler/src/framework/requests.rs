//! How much of each resource a Pod asks for.
//!
//! Containers run together, so their requests add up. Init containers run before them, one
//! after another, so only the largest counts; those that keep running beside the others
//! (`restartPolicy: Always`) add up as well. While a container is resized, the largest of what it
//! asks for, has been given and has counts.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::host_ports::HostPort;
use super::resources::Resources;

/// What scoring assumes for a container that does not say: a tenth of a cpu, 200 MiB.
const ASSUMED: [(&str, i64); 2] = [("cpu", 100), ("memory", 200 << 20)];

/// What a Pod takes from the node it runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRequests {
    /// What it asks for.
    pub asked: Resources,
    /// The same with an assumption where it does not say: what scoring counts.
    pub assumed: Resources,
    /// The ports of its node that it takes.
    pub ports: Vec<HostPort>,
}

impl PodRequests {
    /// What this Pod takes.
    pub fn of(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else {
            return Self::default();
        };
        let given = Given::of(pod.status.as_ref());
        let mut asked = of_containers(spec, &given, &[]);
        of_whole(spec, &given, &mut asked);
        let of_pod = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let missing = |(name, _): &&(&str, i64)| of_pod.is_none() || asked.get(name) == 0;
        let assumptions: Vec<_> = ASSUMED.iter().filter(missing).copied().collect();
        let mut assumed = of_containers(spec, &given, &assumptions);
        of_whole(spec, &given, &mut assumed);
        Self { asked, assumed, ports: HostPort::all_of(pod) }
    }

    /// What is assumed of a Pod by its containers alone, whatever it says about itself.
    pub(crate) fn assumed_of_containers(pod: &Pod) -> Resources {
        let Some(spec) = &pod.spec else {
            return Resources::default();
        };
        let mut assumed = of_containers(spec, &Given::of(pod.status.as_ref()), &ASSUMED);
        assumed.add(&Resources::of(spec.overhead.as_ref()));
        assumed
    }
}

/// What has been given to a Pod and to its containers, which may be resized.
struct Given<'a> {
    containers: Vec<&'a ContainerStatus>,
    /// Where it stands what was given to the Pod as a whole, and what it has.
    whole: Option<&'a PodStatus>,
    /// What is asked for cannot be given here, so that it does not count.
    is_infeasible: bool,
}

impl<'a> Given<'a> {
    fn of(status: Option<&'a PodStatus>) -> Self {
        let Some(status) = status else {
            return Self { containers: Vec::new(), whole: None, is_infeasible: false };
        };
        let statuses = status.container_statuses.iter().chain(&status.init_container_statuses);
        let resized = |status: &&ContainerStatus| status.resources.is_some();
        let pending = |type_: &str| type_ == "PodResizePending";
        let mut conditions = status.conditions.iter().flatten();
        let condition = conditions.find(|condition| pending(&condition.type_));
        Self {
            containers: statuses.flatten().filter(resized).collect(),
            whole: Some(status),
            is_infeasible: condition.is_some_and(|c| c.reason.as_deref() == Some("Infeasible")),
        }
    }

    /// What was given to the Pod as a whole, and what it has.
    fn whole(&self) -> Option<Resources> {
        let status = self.whole?;
        let mut whole = Resources::of(status.resources.as_ref()?.requests.as_ref());
        whole.raise(&Resources::of(status.allocated_resources.as_ref()));
        Some(whole)
    }

    /// What a container takes.
    fn requests(&self, container: &Container) -> Resources {
        let asked = Resources::of(requests(container));
        let named = |status: &&&ContainerStatus| status.name == container.name;
        let Some(status) = self.containers.iter().find(named) else { return asked };
        let actual = status.resources.as_ref().and_then(|it| it.requests.as_ref());
        let mut taken = Resources::of(actual);
        taken.raise(&Resources::of(status.allocated_resources.as_ref()));
        if !self.is_infeasible {
            taken.raise(&asked);
        }
        taken
    }
}

fn requests(container: &Container) -> Option<&BTreeMap<String, Quantity>> {
    container.resources.as_ref()?.requests.as_ref()
}

fn stays(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn of_containers(spec: &PodSpec, given: &Given<'_>, assumptions: &[(&str, i64)]) -> Resources {
    let of_container = |container: &Container, may_be_resized: bool| {
        let mut asked = match may_be_resized && !given.containers.is_empty() {
            true => given.requests(container),
            false => Resources::of(requests(container)),
        };
        for (name, amount) in assumptions {
            if requests(container).is_none_or(|requests| !requests.contains_key(*name)) {
                asked.set(name, *amount);
            }
        }
        asked
    };
    let mut running = Resources::default();
    for container in &spec.containers {
        running.add(&of_container(container, true));
    }
    let mut starting = Resources::default(); // the most needed while init containers run
    let mut beside = Resources::default(); // init containers that keep running
    for container in spec.init_containers.iter().flatten() {
        let mut needed = of_container(container, stays(container));
        needed.add(&beside);
        if stays(container) {
            beside = needed.clone();
        }
        starting.raise(&needed);
    }
    running.add(&beside);
    running.raise(&starting);
    running
}

/// What a Pod says about itself beats its containers; what it takes beside them is added.
fn of_whole(spec: &PodSpec, given: &Given<'_>, requests: &mut Resources) {
    let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    // Every Pod that runs says what it has; it matters for those that ask as a whole.
    let taken_of_all = whole.and_then(|_| given.whole());
    for name in whole.into_iter().flat_map(BTreeMap::keys) {
        let asked = Resources::of(whole).get(name);
        let taken = taken_of_all.as_ref().map(|whole| whole.get(name));
        requests.set(
            name,
            match taken {
                Some(taken) if given.is_infeasible => taken,
                Some(taken) => taken.max(asked),
                None => asked,
            },
        );
    }
    requests.add(&Resources::of(spec.overhead.as_ref()));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn container(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    fn cpu(spec: &Value) -> i64 {
        let pod = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        PodRequests::of(&pod).asked.get("cpu")
    }

    #[test]
    fn containers_add_up() {
        assert_eq!(cpu(&json!({"containers": [container("1"), container("250m")]})), 1250);
    }

    #[test]
    fn a_negative_request_counts_as_none() {
        assert_eq!(cpu(&json!({"containers": [container("1"), container("-8")]})), 1000);
    }

    #[test]
    fn sums_beyond_the_largest_amount_can_be_taken_apart_again() {
        let spec = json!({"containers": [container("100E"), container("1")]});
        assert_eq!(cpu(&spec), i64::MAX);
        let resources = |cpu: &str| -> Resources {
            let quantities = [("cpu".to_owned(), Quantity(cpu.into()))].into();
            Resources::of(Some(&quantities))
        };
        let mut used = resources("1");
        used.add(&resources("100E"));
        used.subtract(&resources("100E"));
        assert_eq!(used.get("cpu"), 1000);
    }

    #[test]
    fn of_init_containers_the_largest_counts() {
        let init = [container("2"), container("3")];
        let spec = json!({"containers": [container("1")], "initContainers": init});
        assert_eq!(cpu(&spec), 3000);
    }

    #[test]
    fn an_init_container_that_keeps_running_adds_up() {
        let mut sidecar = container("2");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({"containers": [container("1")], "initContainers": [sidecar]});
        assert_eq!(cpu(&spec), 3000);
    }

    #[test]
    fn the_pods_own_request_and_its_overhead_count() {
        let spec = json!({
            "containers": [container("1")],
            "resources": {"requests": {"cpu": "4"}},
            "overhead": {"cpu": "500m"},
        });
        assert_eq!(cpu(&spec), 4500);
    }

    #[test]
    fn while_a_container_is_resized_the_most_of_what_it_asks_and_has_counts() {
        let given = |asked: &str, actual: &str, reason: &str| -> i64 {
            let pod = json!({
                "spec": {"containers": [container(asked)]},
                "status": {
                    "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
                    "containerStatuses": [{
                        "name": "c", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
                        "resources": {"requests": {"cpu": actual}},
                        "allocatedResources": {"cpu": "1"},
                    }],
                },
            });
            PodRequests::of(&serde_json::from_value(pod).unwrap()).asked.get("cpu")
        };
        assert_eq!(given("4", "2", "Deferred"), 4000);
        assert_eq!(given("1", "2", "Deferred"), 2000);
        assert_eq!(given("4", "2", "Infeasible"), 2000);
    }

    #[test]
    fn while_a_pod_is_resized_as_a_whole_the_most_of_what_it_asks_and_has_counts() {
        let given = |asked: &str, actual: &str, reason: &str| -> i64 {
            let pod = json!({
                "spec": {"containers": [{"name": "c"}], "resources": {"requests": {"cpu": asked}}},
                "status": {
                    "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
                    "resources": {"requests": {"cpu": actual}},
                    "allocatedResources": {"cpu": "1"},
                },
            });
            PodRequests::of(&serde_json::from_value(pod).unwrap()).asked.get("cpu")
        };
        assert_eq!(given("4", "2", "Deferred"), 4000);
        assert_eq!(given("1", "2", "Deferred"), 2000);
        assert_eq!(given("4", "500m", "Infeasible"), 1000);
    }

    #[test]
    fn scoring_assumes_something_for_a_pod_that_asks_for_nothing() {
        let pod = json!({"metadata": {}, "spec": {"containers": [{"name": "c"}]}});
        let requests = PodRequests::of(&serde_json::from_value(pod).unwrap());
        assert_eq!(requests.asked, Resources::default());
        assert_eq!(requests.assumed.get("cpu"), 100);
    }
}
