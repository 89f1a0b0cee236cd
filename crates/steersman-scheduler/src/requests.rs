//! How much of each resource a Pod asks for.
//!
//! Containers run together, so their requests add up. Init containers run before them, one
//! after another, so only the largest counts; those that keep running beside the others
//! (`restartPolicy: Always`) add up as well.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use steersman_values as values;
use steersman_values::quantity::ParseQuantityError;

use crate::host_ports::HostPort;

/// What scoring assumes for a container that requests no cpu: a tenth of one.
const CPU_ASSUMED: i64 = 100;
/// What scoring assumes for a container that requests no memory: 200 MiB.
const MEMORY_ASSUMED: i64 = 200 << 20;

/// Amounts by resource name: thousandths for cpu, whole units for everything else.
///
/// Sums are held wider than amounts, so that what is added can be taken away again exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources(BTreeMap<String, i128>);

impl Resources {
    /// Reads a list as Nodes and containers have it.
    pub(crate) fn of(quantities: Option<&BTreeMap<String, Quantity>>) -> Self {
        let quantities = quantities.into_iter().flatten();
        let amounts =
            quantities.map(|(name, quantity)| (name.clone(), i128::from(amount(name, quantity))));
        Self(amounts.collect())
    }

    /// How much of a resource; zero if it is not named.
    pub(crate) fn get(&self, name: &str) -> i64 {
        self.0.get(name).map_or(0, |amount| narrow(*amount))
    }

    /// Every resource that is named, with its amount.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), narrow(*amount)))
    }

    /// Adds other amounts to these.
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    /// Takes other amounts from these.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let rest = self.0.entry(name.clone()).or_default();
            *rest = rest.saturating_sub(*amount);
        }
        self.0.retain(|_, amount| *amount != 0);
    }

    /// Raises these amounts to others that are larger.
    fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let max = self.0.entry(name.clone()).or_default();
            *max = (*max).max(*amount);
        }
    }

    fn set(&mut self, name: &str, amount: i64) {
        self.0.insert(name.to_owned(), amount.into());
    }
}

/// An amount as others count it; what is too large is the largest there is.
fn narrow(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// How much of a resource a quantity is. Nobody can offer or take less than nothing.
fn amount(resource: &str, quantity: &Quantity) -> i64 {
    let amount = match values::Quantity::parse(&quantity.0) {
        Ok(amount) if resource == "cpu" => amount.milli_value(),
        Ok(amount) => amount.value(),
        Err(ParseQuantityError::Digits { negative: false }) => i64::MAX,
        // The API server lets no nonsense in.
        Err(_) => 0,
    };
    amount.max(0)
}

/// What a Pod takes from the node it runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodRequests {
    /// What it asks for.
    pub(crate) asked: Resources,
    /// The same with an assumption where it does not say: what scoring counts.
    pub(crate) assumed: Resources,
    /// The ports of its node that it takes.
    pub(crate) ports: Vec<HostPort>,
}

impl PodRequests {
    /// What this Pod takes.
    pub(crate) fn of(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else {
            return Self::default();
        };
        let asked = of_spec(spec, &container_requests);
        let mut assumed = of_spec(spec, &assumed_requests);
        for name in ["cpu", "memory"] {
            assumed.set(name, assumed.get(name).max(asked.get(name)));
        }
        Self { asked, assumed, ports: HostPort::all_of(pod) }
    }
}

fn of_spec(spec: &PodSpec, of_container: &dyn Fn(&Container) -> Resources) -> Resources {
    let mut running = Resources::default();
    for container in &spec.containers {
        running.add(&of_container(container));
    }
    let mut starting = Resources::default(); // the most needed while init containers run
    let mut beside = Resources::default(); // init containers that keep running
    for container in spec.init_containers.iter().flatten() {
        let mut needed = of_container(container);
        needed.add(&beside);
        if container.restart_policy.as_deref() == Some("Always") {
            beside = needed.clone();
        }
        starting.raise(&needed);
    }
    running.add(&beside);
    running.raise(&starting);
    let whole_pod = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    for (name, amount) in Resources::of(whole_pod).iter() {
        running.set(name, amount); // what the Pod says about itself beats its containers
    }
    running.add(&Resources::of(spec.overhead.as_ref()));
    running
}

fn container_requests(container: &Container) -> Resources {
    let resources = container.resources.as_ref();
    Resources::of(resources.and_then(|resources| resources.requests.as_ref()))
}

fn assumed_requests(container: &Container) -> Resources {
    let mut requests = container_requests(container);
    for (name, assumed) in [("cpu", CPU_ASSUMED), ("memory", MEMORY_ASSUMED)] {
        if requests.get(name) == 0 {
            requests.set(name, assumed);
        }
    }
    requests
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
        let resources = |cpu: &str| {
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
    fn scoring_assumes_something_for_a_pod_that_asks_for_nothing() {
        let pod = json!({"metadata": {}, "spec": {"containers": [{"name": "c"}]}});
        let requests = PodRequests::of(&serde_json::from_value(pod).unwrap());
        assert_eq!(requests.asked, Resources::default());
        assert_eq!(requests.assumed.get("cpu"), 100);
    }
}
