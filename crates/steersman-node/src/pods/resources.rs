//! What all containers of a Pod have together, as its status tells it.
//!
//! Main containers run together, so what they have adds up. Init containers run before them, one after
//! another and beside the companions that were started before, so only the most that one of them needs
//! counts. What is said for the Pod as a whole goes before, and what the Pod takes beside its containers
//! comes on top (`PodRequests` and `PodLimits` of `k8s.io/component-helpers/resource`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use steersman_values::Quantity;

use super::plan::Observed;
use crate::restart_policy::accompanies;

/// Amounts by the name of the resource.
type List = BTreeMap<String, Written>;

/// One of the lists of resources.
type Which = fn(&ResourceRequirements) -> Option<&List>;

/// Tells what a Pod has of its node, and what it runs with. Of one that runs that is only what it has
/// as a whole.
pub(super) fn tell<'a>(
    spec: &'a PodSpec,
    observed: &'a Observed,
    runs: bool,
    status: &mut PodStatus,
) {
    let sizes = &observed.sizes;
    let allocated = |container: &'a Container| {
        let own = sizes.allocated.containers.get(&container.name);
        own.or(container.resources.as_ref())
    };
    let actuated = |container: &'a Container| {
        let found = observed.of(&container.name).filter(|found| runs && found.runs());
        let own = found.and_then(|found| sizes.of_run(&found.name, found.attempt));
        own.or_else(|| allocated(container))
    };
    let (given, has) = (sizes.allocated.whole.as_ref(), sizes.actuated.whole.as_ref());
    let has = given.and(has);
    status.allocated_resources = not_empty(requests(spec, given, &allocated));
    let (mut requests, mut limits) = (requests(spec, has, &actuated), limits(spec, has, &actuated));
    if runs {
        requests.retain(|name, _| is_of_pod(name, has.and_then(|it| it.requests.as_ref())));
        limits.retain(|name, _| is_of_pod(name, has.and_then(|it| it.limits.as_ref())));
    }
    status.resources = Some(ResourceRequirements {
        requests: not_empty(requests),
        limits: not_empty(limits),
        claims: None,
    });
}

/// Whether a Pod has a resource as a whole: in its cgroup, or because it says so.
fn is_of_pod(name: &str, said: Option<&List>) -> bool {
    matches!(name, "cpu" | "memory") || said.is_some_and(|said| said.contains_key(name))
}

/// What a Pod asks for.
fn requests<'a>(
    spec: &'a PodSpec,
    whole: Option<&ResourceRequirements>,
    of: &impl Fn(&'a Container) -> Option<&'a ResourceRequirements>,
) -> List {
    let mut requests = total(spec, whole, |it| it.requests.as_ref(), of);
    add(&mut requests, spec.overhead.as_ref());
    requests
}

/// What a Pod may use. What it takes beside its containers comes on top of what is limited at all.
fn limits<'a>(
    spec: &'a PodSpec,
    whole: Option<&ResourceRequirements>,
    of: &impl Fn(&'a Container) -> Option<&'a ResourceRequirements>,
) -> List {
    let mut limits = total(spec, whole, |it| it.limits.as_ref(), of);
    for (name, beside) in spec.overhead.iter().flatten() {
        if let Some(limit) = limits.get_mut(name).filter(|limit| read(limit) != Quantity::ZERO) {
            *limit = sum(limit, beside);
        }
    }
    limits
}

fn total<'a>(
    spec: &'a PodSpec,
    whole: Option<&ResourceRequirements>,
    which: Which,
    of: &impl Fn(&'a Container) -> Option<&'a ResourceRequirements>,
) -> List {
    let of = |container: &'a Container| of(container).and_then(which);
    let mut total = List::new();
    for container in &spec.containers {
        add(&mut total, of(container));
    }
    let (mut beside, mut most) = (List::new(), List::new());
    for container in spec.init_containers.iter().flatten() {
        if accompanies(container) {
            add(&mut total, of(container));
            add(&mut beside, of(container));
            raise(&mut most, &beside);
        } else {
            let mut needed = of(container).cloned().unwrap_or_default();
            add(&mut needed, Some(&beside));
            raise(&mut most, &needed);
        }
    }
    raise(&mut total, &most);
    for (name, amount) in whole.and_then(which).into_iter().flatten() {
        total.insert(name.clone(), amount.clone());
    }
    total
}

fn add(list: &mut List, more: Option<&List>) {
    for (name, amount) in more.into_iter().flatten() {
        match list.get_mut(name) {
            Some(before) => *before = sum(before, amount),
            None => drop(list.insert(name.clone(), amount.clone())),
        }
    }
}

/// Raises amounts to others that are larger.
fn raise(list: &mut List, others: &List) {
    for (name, amount) in others {
        match list.get_mut(name) {
            Some(before) if read(before) >= read(amount) => {}
            Some(before) => before.clone_from(amount),
            None => drop(list.insert(name.clone(), amount.clone())),
        }
    }
}

/// What is too large to be added to stays as it is.
fn sum(one: &Written, other: &Written) -> Written {
    let sum = read(one).checked_add(read(other));
    sum.map_or_else(|| one.clone(), |sum| Written(sum.to_string()))
}

/// The server lets no nonsense in.
fn read(amount: &Written) -> Quantity {
    Quantity::parse(&amount.0).unwrap_or(Quantity::ZERO)
}

fn not_empty(list: List) -> Option<List> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;
    use crate::pods::resize::Sizes;
    use crate::pods::tests::{at, runs, seen};
    use crate::runtime::{Container as Found, State};

    fn pod(spec: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"uid": "u1"}, "spec": spec})).unwrap()
    }

    fn container(name: &str, requests: &Value, limits: &Value) -> Value {
        json!({"name": name, "resources": {"requests": requests, "limits": limits}})
    }

    /// What is told of a Pod of which this runs: what it was given, and what it has.
    fn told(pod: &Pod, found: Vec<Found>) -> Value {
        let runs = found.iter().any(Found::runs);
        let mut observed = seen(found);
        observed.sizes = Sizes::told(pod);
        let mut status = PodStatus::default();
        tell(pod.spec.as_ref().unwrap(), &observed, runs, &mut status);
        json!([status.allocated_resources, status.resources])
    }

    #[test]
    fn a_pod_that_asks_for_nothing_has_no_more() {
        let pod = pod(&json!({"containers": [{"name": "main"}]}));
        for found in [vec![], vec![runs("main")]] {
            assert_eq!(told(&pod, found), json!([null, {}]));
        }
    }

    #[test]
    fn containers_add_up_and_of_init_containers_the_largest_counts() {
        let none = json!({});
        let proxy = json!({"name": "proxy", "restartPolicy": "Always", "resources": {
            "requests": {"cpu": "100m"}, "limits": {"cpu": "1"},
        }});
        let pod = pod(&json!({
            "initContainers": [
                container("first", &json!({"memory": "1Gi"}), &none),
                proxy,
                container("second", &json!({"cpu": "2"}), &json!({"cpu": "2"})),
            ],
            "containers": [
                container("main", &json!({"cpu": "250m", "memory": "64Mi"}), &json!({"cpu": "500m"})),
                container("other", &json!({"cpu": "1", "ephemeral-storage": "1Gi"}), &none),
            ],
            "overhead": {"cpu": "250m", "memory": "8Mi"},
        }));
        let requests = json!({"cpu": "2350m", "memory": "1032Mi", "ephemeral-storage": "1Gi"});
        let limits = json!({"cpu": "3250m"});
        let resources = json!({"requests": requests, "limits": limits});
        assert_eq!(told(&pod, vec![]), json!([requests, resources]));
        // Only containers have a disk.
        let as_a_whole = json!({"cpu": "2350m", "memory": "1032Mi"});
        let resources = json!({"requests": as_a_whole, "limits": limits});
        assert_eq!(told(&pod, vec![runs("main")]), json!([requests, resources]));
    }

    #[test]
    fn what_is_said_for_the_pod_goes_before() {
        let pod = pod(&json!({
            "containers": [container("main", &json!({"cpu": "1", "memory": "1Gi"}), &json!({}))],
            "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
        }));
        let requests = json!({"cpu": "3", "memory": "1Gi"});
        let resources = json!({"requests": requests, "limits": {"cpu": "4"}});
        for found in [vec![], vec![runs("main")]] {
            assert_eq!(told(&pod, found), json!([requests, resources]));
        }
    }

    #[test]
    fn what_runs_is_told_with_what_it_has() {
        let pod =
            pod(&json!({"containers": [container("main", &json!({"cpu": "2"}), &json!({}))]}));
        let mut observed = seen([runs("main")]);
        observed.sizes = Sizes::told(&pod);
        observed.sizes.started("main", 0);
        let more = json!({"requests": {"cpu": "3"}});
        let more = serde_json::from_value(more).unwrap();
        observed.sizes.allocated.containers.insert("main".into(), more);
        let cpu = |observed: &Observed| {
            let mut status = PodStatus::default();
            tell(pod.spec.as_ref().unwrap(), observed, true, &mut status);
            let has = status.resources.unwrap().requests.unwrap();
            [status.allocated_resources.unwrap(), has].map(|list| list["cpu"].0.clone())
        };
        assert_eq!(cpu(&observed), ["3", "2"]);
        let (code, reason) = (0, "Completed".to_owned());
        let state = State::Exited { finished: at(1), code, reason, message: None };
        observed.now.containers[0].state = state;
        assert_eq!(cpu(&observed), ["3", "3"], "what does not run has what it would have");
    }
}
