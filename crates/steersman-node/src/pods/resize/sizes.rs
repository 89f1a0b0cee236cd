//! What the containers of a Pod have of its node.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use serde::{Deserialize, Serialize};
use steersman_values::Quantity;

use crate::runtime::Resizable;

/// The condition of a Pod that has not been given what it wants.
pub(super) const PENDING: &str = "PodResizePending";
/// The condition of one whose containers do not have what it was given.
pub(super) const IN_PROGRESS: &str = "PodResizeInProgress";
/// Why that does not get on.
pub(super) const ERROR: &str = "Error";

/// How far what a Pod wants of its node has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::pods) struct Sizes {
    /// What its node has set aside for it.
    pub(in crate::pods) allocated: Allocation,
    /// What its containers run with.
    pub(in crate::pods) actuated: Actuated,
    /// Why it was not given what it wants.
    pub(in crate::pods) pending: Option<Pending>,
    /// What it was given and its containers may not have yet.
    pub(in crate::pods) progress: Option<Progress>,
    /// The containers that are stopped only to be started with other resources, each by how many of
    /// its name were started before it.
    pub(in crate::pods) restarting: BTreeMap<String, i32>,
    /// When what failed is tried again.
    pub(in crate::pods) again: Option<Timestamp>,
    /// Its containers have got what it was given, which others may have room by once they hear of it.
    pub(in crate::pods) completed: bool,
}

/// Resources of a Pod and of its containers, by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::pods) struct Allocation {
    pub(in crate::pods) whole: Option<ResourceRequirements>,
    pub(in crate::pods) containers: BTreeMap<String, ResourceRequirements>,
}

/// What containers run with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::pods) struct Actuated {
    /// What the cgroup of the Pod was made for.
    pub(in crate::pods) whole: Option<ResourceRequirements>,
    /// By the name of the container, with how many of that name were started before it.
    pub(in crate::pods) containers: BTreeMap<String, (i32, ResourceRequirements)>,
}

/// Why a Pod has not been given what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pods) struct Pending {
    pub(in crate::pods) message: String,
    /// Of the spec that wants it.
    pub(in crate::pods) generation: Option<i64>,
}

/// A resize that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pods) struct Progress {
    /// Of the spec that wanted it.
    pub(in crate::pods) generation: Option<i64>,
    /// Why it does not get on.
    pub(in crate::pods) error: Option<String>,
}

impl Sizes {
    /// What a Pod's status tells. Of containers of which it tells nothing, the spec is believed.
    pub(in crate::pods) fn told(pod: &Pod) -> Self {
        let mut sizes = Self { allocated: Allocation::of(pod), ..Self::default() };
        sizes.actuated.whole = sizes.allocated.whole.clone();
        let Some(status) = &pod.status else { return sizes };
        let condition = |type_: &str| {
            let mut all = status.conditions.iter().flatten();
            all.find(|condition| condition.type_ == type_ && condition.status == "True")
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        sizes.pending = condition(PENDING).map(|condition| Pending {
            message: text(&condition.message),
            generation: condition.observed_generation,
        });
        sizes.progress = condition(IN_PROGRESS).map(|condition: &PodCondition| Progress {
            generation: condition.observed_generation,
            error: (condition.reason.as_deref() == Some(ERROR)).then(|| text(&condition.message)),
        });
        let begun = sizes.progress.as_ref().map(|progress| progress.generation);
        // What is under way was allocated, and the status tells only of what containers have.
        let allocated_as_wanted = begun == Some(pod.metadata.generation);
        let statuses =
            || status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
        for told in statuses() {
            let Some(resources) = &told.resources else { continue };
            if let Some(allocated) = sizes.allocated.containers.get_mut(&told.name)
                && !allocated_as_wanted
            {
                allocated.requests = not_empty(told.allocated_resources.as_ref());
                allocated.limits = not_empty(resources.limits.as_ref());
            }
            if runs(told) {
                let run = (told.restart_count, tidy(Some(resources)));
                sizes.actuated.containers.insert(told.name.clone(), run);
            }
        }
        if statuses().any(|told| told.resources.is_some()) {
            sizes.take_in_whole(pod, status, allocated_as_wanted);
        }
        sizes
    }

    /// Takes in what is told of a Pod that wants something as a whole: of others this is only what their
    /// containers have together.
    fn take_in_whole(&mut self, pod: &Pod, status: &PodStatus, allocated_as_wanted: bool) {
        let Some(wanted) = self.allocated.whole.take() else { return };
        let overhead = pod.spec.as_ref().and_then(|spec| spec.overhead.as_ref());
        let own = |told: &ResourceRequirements| told_of_whole(&wanted, told, overhead);
        self.actuated.whole = status.resources.as_ref().map(own);
        self.allocated.whole = match &status.resources {
            Some(told) if !allocated_as_wanted => Some(own(&ResourceRequirements {
                requests: status.allocated_resources.clone(),
                ..told.clone()
            })),
            None if !allocated_as_wanted => None,
            _ => Some(wanted),
        };
    }

    /// Forgets what the containers had that a Pod's status says have ended.
    pub(super) fn forget_ended(&mut self, pod: &Pod) {
        let Some(status) = &pod.status else { return };
        let statuses = status.init_container_statuses.iter().chain(&status.container_statuses);
        for told in statuses.flatten().filter(|told| told.container_id.is_some() && !runs(told)) {
            if self.of_run(&told.name, told.restart_count).is_some() {
                self.actuated.containers.remove(&told.name);
            }
        }
    }

    /// What a container runs with that was started after so many others of its name, if it is known.
    pub(in crate::pods) fn of_run(
        &self,
        name: &str,
        attempt: i32,
    ) -> Option<&ResourceRequirements> {
        let (of, resources) = self.actuated.containers.get(name)?;
        (*of == attempt).then_some(resources)
    }

    /// Whether a container was stopped only to be started with other resources.
    pub(in crate::pods) fn restarts(&self, name: &str, attempt: i32) -> bool {
        self.restarting.get(name) == Some(&attempt)
    }

    /// Notes that a container was started with what was allocated.
    pub(in crate::pods) fn started(&mut self, name: &str, attempt: i32) {
        self.restarting.remove(name);
        let Some(allocated) = self.allocated.containers.get(name) else { return };
        self.actuated.containers.insert(name.to_owned(), (attempt, allocated.clone()));
    }

    /// Notes that a running container has these resources.
    pub(in crate::pods) fn resized(&mut self, name: &str, resources: ResourceRequirements) {
        if let Some((_, actuated)) = self.actuated.containers.get_mut(name) {
            *actuated = resources;
        }
    }
}

impl Allocation {
    /// What a Pod wants.
    pub(in crate::pods) fn of(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else { return Self::default() };
        let own = |container: &Container| tidy(container.resources.as_ref());
        Self {
            whole: spec.resources.as_ref().map(|whole| tidy(Some(whole))),
            containers: containers(spec).map(|it| (it.name.clone(), own(it))).collect(),
        }
    }

    /// Whether a Pod wants something else.
    pub(in crate::pods) fn differs(&self, pod: &Pod) -> bool {
        let Some(spec) = &pod.spec else { return false };
        let differs = |container: &Container| match self.containers.get(&container.name) {
            Some(own) => !same(Some(own), container.resources.as_ref()),
            None => false,
        };
        containers(spec).any(differs) || !same(self.whole.as_ref(), spec.resources.as_ref())
    }

    /// A Pod with what it was given in place of what it wants.
    pub(in crate::pods) fn applied<'a>(&self, pod: &'a Pod) -> Cow<'a, Pod> {
        if !self.differs(pod) {
            return Cow::Borrowed(pod);
        }
        let mut given = pod.clone();
        if let Some(spec) = &mut given.spec {
            let init = spec.init_containers.iter_mut().flatten();
            for container in init.chain(&mut spec.containers) {
                if let Some(own) = self.containers.get(&container.name) {
                    container.resources = Some(own.clone());
                }
            }
            spec.resources.clone_from(&self.whole);
        }
        Cow::Owned(given)
    }
}

/// How much of what can be resized a container has; nothing if it is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    /// Of cpus in thousandths, of memory in bytes.
    pub(super) request: i64,
    pub(super) limit: i64,
}

impl Amounts {
    /// Those of a container; limits that it does not have are those of its Pod.
    pub(super) fn of(
        resource: Resizable,
        own: Option<&ResourceRequirements>,
        whole: Option<&ResourceRequirements>,
    ) -> Self {
        let read = match resource {
            Resizable::Cpu => Quantity::milli_value,
            Resizable::Memory => Quantity::value,
        };
        let name = resource.name();
        let request = own.and_then(|own| amount(own.requests.as_ref(), name));
        let limit = |of: Option<&ResourceRequirements>| amount(of?.limits.as_ref(), name);
        Self {
            request: request.map_or(0, read),
            limit: limit(own).or_else(|| limit(whole)).map_or(0, read),
        }
    }
}

/// Whether resources are the same as far as they can be changed.
pub(super) fn same(a: Option<&ResourceRequirements>, b: Option<&ResourceRequirements>) -> bool {
    let amounts = |resources: Option<&ResourceRequirements>| {
        [Resizable::Memory, Resizable::Cpu].map(|resource| {
            let name = resource.name();
            let requests = resources.and_then(|it| amount(it.requests.as_ref(), name));
            (requests, resources.and_then(|it| amount(it.limits.as_ref(), name)))
        })
    };
    amounts(a) == amounts(b)
}

fn amount(list: Option<&BTreeMap<String, Written>>, name: &str) -> Option<Quantity> {
    list?.get(name).and_then(|text| Quantity::parse(&text.0).ok())
}

/// All containers whose resources can be changed, in the order in which they start.
pub(super) fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.init_containers.iter().flatten().chain(&spec.containers)
}

/// Whether a Pod's status tells what all its containers were given: it does of those that exist.
pub(super) fn is_told(pod: &Pod) -> bool {
    let (Some(spec), Some(status)) = (&pod.spec, &pod.status) else { return false };
    let statuses =
        || status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    containers(spec).all(|container| {
        statuses().any(|told| told.name == container.name && told.resources.is_some())
    })
}

fn runs(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// The same resources, with nothing in place of empty lists: so they are read back.
fn tidy(resources: Option<&ResourceRequirements>) -> ResourceRequirements {
    let Some(all) = resources else { return ResourceRequirements::default() };
    ResourceRequirements {
        claims: all.claims.clone().filter(|claims| !claims.is_empty()),
        limits: not_empty(all.limits.as_ref()),
        requests: not_empty(all.requests.as_ref()),
    }
}

/// What is told of a Pod, as far as it wants that as a whole: the rest is what its containers have, and
/// what it takes beside them.
fn told_of_whole(
    wanted: &ResourceRequirements,
    told: &ResourceRequirements,
    overhead: Option<&BTreeMap<String, Written>>,
) -> ResourceRequirements {
    type List = BTreeMap<String, Written>;
    let part = |wanted: Option<&List>, told: Option<&List>| {
        let names = wanted.into_iter().flat_map(BTreeMap::keys);
        let own = names.filter_map(|name| {
            let told = told?.get(name)?;
            let beside = overhead.and_then(|overhead| overhead.get(name));
            Some((name.clone(), beside.map_or_else(|| told.clone(), |it| without(told, it))))
        });
        let own: List = own.collect();
        (!own.is_empty()).then_some(own)
    };
    ResourceRequirements {
        requests: part(wanted.requests.as_ref(), told.requests.as_ref()),
        limits: part(wanted.limits.as_ref(), told.limits.as_ref()),
        claims: wanted.claims.clone(),
    }
}

fn without(amount: &Written, other: &Written) -> Written {
    let read = |text: &Written| Quantity::parse(&text.0).ok();
    let rest = read(amount).zip(read(other)).and_then(|(one, other)| one.checked_sub(other));
    rest.map_or_else(|| amount.clone(), |rest| Written(rest.to_string()))
}

fn not_empty(list: Option<&BTreeMap<String, Written>>) -> Option<BTreeMap<String, Written>> {
    list.filter(|list| !list.is_empty()).cloned()
}
