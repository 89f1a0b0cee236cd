//! What a Pod asks for and may use altogether.
//!
//! Containers run together, so what they have adds up. Init containers run before them, one after
//! another, so only the largest counts; those that keep running (`restartPolicy: Always`) add up
//! as well. What the Pod says for all of them counts instead, and its overhead comes on top. While
//! a container is being resized, it counts as what it has or as what it wants, whichever is more.

use serde_json::Value;

use super::amounts::Amounts;
use crate::quantity::Quantity;
use crate::rules::document::{items, text};
use crate::rules::resource_name::HUGE_PAGES;

/// What a Pod asks for.
pub(super) fn requests(pod: &Value) -> Amounts {
    with_overhead(total(pod, "requests"), &pod["spec"])
}

/// What a Pod of this spec asks for, whatever it has got so far.
pub fn requests_of_spec(spec: &Value) -> Amounts {
    with_overhead(of_containers(spec, &Value::Null, "requests"), spec)
}

fn with_overhead(mut requests: Amounts, spec: &Value) -> Amounts {
    requests.add(&Amounts::of(&spec["overhead"]));
    requests
}

/// What a Pod may use. Overhead comes on top of what is limited at all.
pub(super) fn limits(pod: &Value) -> Amounts {
    let mut limits = total(pod, "limits");
    let limited = |name: &str| limits.get(name).is_some_and(|limit| limit != Quantity::ZERO);
    let overhead = Amounts::of(&pod["spec"]["overhead"]).only(limited);
    limits.add(&overhead);
    limits
}

/// Whether a Pod says something for all of its containers.
pub(super) fn says_for_all(spec: &Value) -> bool {
    ["requests", "limits"].iter().any(|list| !for_all(spec, list).is_empty())
}

/// What a Pod says for all of its containers.
fn for_all(spec: &Value, list: &str) -> Amounts {
    let can_be = |name: &str| ["cpu", "memory"].contains(&name) || name.starts_with(HUGE_PAGES);
    Amounts::of(&spec["resources"][list]).only(can_be)
}

/// What the containers have, and the Pod itself says.
fn total(pod: &Value, list: &str) -> Amounts {
    of_containers(&pod["spec"], &pod["status"], list)
}

fn of_containers(spec: &Value, status: &Value, list: &str) -> Amounts {
    let mut running = Amounts::default();
    for container in items(&spec["containers"]) {
        running.add(&of_container(status, container, list));
    }
    let mut beside = Amounts::default(); // init containers that keep running
    let mut starting = Amounts::default(); // the most that is needed while init containers run
    for container in items(&spec["initContainers"]) {
        let mut needed = if keeps_running(container) {
            let own = of_container(status, container, list);
            running.add(&own);
            beside.add(&own);
            Amounts::default()
        } else {
            Amounts::of(&container["resources"][list])
        };
        needed.add(&beside);
        starting.raise(&needed);
    }
    running.raise(&starting);
    for (name, amount) in for_all(spec, list).iter() {
        running.set(name, amount);
    }
    running
}

fn keeps_running(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// What a container has, or wants if that is more and can be.
fn of_container(pod_status: &Value, container: &Value, list: &str) -> Amounts {
    let wanted = Amounts::of(&container["resources"][list]);
    let Some(status) =
        status(pod_status, container).filter(|status| status["resources"].is_object())
    else {
        return wanted;
    };
    let mut has = Amounts::of(&status["resources"][list]);
    if list == "requests" {
        has.raise(&Amounts::of(&status["allocatedResources"]));
    }
    if is_infeasible(pod_status) {
        return has;
    }
    let mut most = wanted;
    most.raise(&has);
    most
}

fn status<'a>(status: &'a Value, container: &Value) -> Option<&'a Value> {
    let lists = [&status["containerStatuses"], &status["initContainerStatuses"]];
    let mut all = lists.into_iter().flat_map(items);
    all.find(|status| status["name"] == container["name"])
}

/// Whether the node has said that it cannot give what is wanted.
fn is_infeasible(status: &Value) -> bool {
    let mut conditions = items(&status["conditions"]).iter();
    let pending = conditions.find(|condition| condition["type"] == "PodResizePending");
    pending.is_some_and(|condition| text(&condition["reason"]) == "Infeasible")
}
