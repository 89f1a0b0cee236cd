//! Which running containers do not have what they were given.
//!
//! Decreases come before increases, so that what one gives back is there for the others; a container
//! whose policy asks for it is started again instead.

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};

use super::sizes::{Amounts, Sizes, containers, same};
use crate::runtime::{Change, Container as Found, Observation, Resizable, State};

/// What has to be done to containers that run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::pods) struct Changes {
    /// These get other resources while they run, memory first.
    pub(in crate::pods) updates: Vec<Change>,
    /// These have to be started again.
    pub(in crate::pods) restarts: Vec<String>,
    /// The Pod as a whole has been given something else.
    pub(in crate::pods) whole: bool,
}

/// What has to be done to the containers of a Pod whose spec says what it was given.
pub(in crate::pods) fn changes(pod: &Pod, observed: &Observation, sizes: &Sizes) -> Changes {
    let mut changes = Changes::default();
    let Some(spec) = &pod.spec else { return changes };
    changes.whole = !same(sizes.actuated.whole.as_ref(), spec.resources.as_ref());
    let (mut memory, mut cpu) = (Vec::new(), Vec::new());
    for container in containers(spec) {
        let Some(actuated) = running(container, observed, sizes) else { continue };
        let differing: Vec<(Resizable, Amounts, Amounts)> = [Resizable::Memory, Resizable::Cpu]
            .into_iter()
            .map(|resource| {
                let whole = sizes.actuated.whole.as_ref();
                let is = Amounts::of(resource, Some(actuated), whole);
                let own = container.resources.as_ref();
                (resource, is, Amounts::of(resource, own, spec.resources.as_ref()))
            })
            .filter(|(_, is, wanted)| is != wanted)
            .collect();
        if differing.iter().any(|(resource, ..)| restarts_for(container, *resource)) {
            changes.restarts.push(container.name.clone());
            continue;
        }
        // Memory is changed first, so that each change tells of the other as it is by then.
        let mut current = actuated.clone();
        for (resource, is, wanted) in differing {
            current = mixed(resource, &current, container.resources.as_ref());
            let change = Change {
                name: container.name.clone(),
                resource,
                resources: current.clone(),
                limit: (is.limit, wanted.limit),
            };
            let list = if resource == Resizable::Memory { &mut memory } else { &mut cpu };
            let grows = match is.limit == wanted.limit {
                true => wanted.request > is.request,
                false => wanted.limit > is.limit,
            };
            list.insert(if grows { list.len() } else { 0 }, change);
        }
    }
    memory.append(&mut cpu);
    changes.updates = memory;
    changes
}

/// Whether a running container, or the Pod as a whole, has something else than it was given.
pub(in crate::pods) fn is_in_progress(pod: &Pod, observed: &Observation, sizes: &Sizes) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let differs = |container: &Container| {
        let found = found(container, observed).filter(|found| found.runs() && !found.outdated);
        let actuated = found.and_then(|found| sizes.of_run(&found.name, found.attempt));
        actuated.is_some_and(|is| !same(Some(is), container.resources.as_ref()))
    };
    containers(spec).any(differs) || !same(sizes.actuated.whole.as_ref(), spec.resources.as_ref())
}

fn found<'a>(container: &Container, observed: &'a Observation) -> Option<&'a Found> {
    observed.containers.iter().find(|found| found.name == container.name)
}

/// What a container runs with that neither is being stopped nor has to be.
fn running<'a>(
    container: &Container,
    observed: &Observation,
    sizes: &'a Sizes,
) -> Option<&'a ResourceRequirements> {
    let found = found(container, observed)?;
    let State::Running { stopping: false, .. } = found.state else { return None };
    if found.outdated || found.failed_probe.is_some() {
        return None;
    }
    sizes.of_run(&found.name, found.attempt)
}

/// Whether a container has to be started again for another amount of a resource.
fn restarts_for(container: &Container, resource: Resizable) -> bool {
    let mut policies = container.resize_policy.iter().flatten();
    let own = policies.find(|policy| policy.resource_name == resource.name());
    own.is_some_and(|policy| policy.restart_policy == "RestartContainer")
}

/// Resources with one of them changed to what is wanted.
fn mixed(
    resource: Resizable,
    is: &ResourceRequirements,
    wanted: Option<&ResourceRequirements>,
) -> ResourceRequirements {
    let mut mixed = is.clone();
    let wanted = wanted.map(|wanted| (wanted.requests.as_ref(), wanted.limits.as_ref()));
    let (requests, limits) = wanted.unwrap_or_default();
    for (list, wanted) in [(&mut mixed.requests, requests), (&mut mixed.limits, limits)] {
        match wanted.and_then(|wanted| wanted.get(resource.name())) {
            Some(amount) => {
                let list = list.get_or_insert_default();
                list.insert(resource.name().to_owned(), amount.clone());
            }
            None => {
                if let Some(list) = list {
                    list.remove(resource.name());
                }
            }
        }
    }
    mixed
}
