//! What Nodes say of themselves that decides which Pods their machines take.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::placement::{selects, tolerates};
use steersman_scheduler::framework::Resources;

use crate::preemption::Lack;
use crate::rejection::Rejection;
use crate::static_pods::is_static;

/// The standings of many nodes.
#[derive(Debug, Default)]
pub(crate) struct Standings(RwLock<HashMap<String, Arc<Standing>>>);

/// What one Node says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// Its name and labels, and nothing else of it.
    node: Node,
    /// Those that nothing may run beside that does not tolerate them.
    taints: Vec<Taint>,
    /// What its Pods can have.
    pub(crate) limits: Limits,
}

/// How much of what there is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    amounts: Resources,
    /// The resources that not every node has and this one names, even if there is nothing of them.
    extended: BTreeSet<String>,
}

impl Standings {
    /// Takes in what the Node of a machine says.
    pub(crate) fn take_in(&self, name: &str, standing: Standing) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.to_owned(), Arc::new(standing));
    }

    /// What the Node of a machine says, if anybody has seen it.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Standing>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

impl Standing {
    /// As a Node says, apart from what its machine lies about: of that there is this much.
    pub(crate) fn of(node: &Node, real: impl Iterator<Item = (String, Quantity)>) -> Self {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        let stops = |taint: &&Taint| taint.effect == "NoExecute";
        let metadata = ObjectMeta {
            name: node.metadata.name.clone(),
            labels: node.metadata.labels.clone(),
            ..ObjectMeta::default()
        };
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone());
        let mut allocatable = allocatable.unwrap_or_default();
        allocatable.extend(real);
        Self {
            node: Node { metadata, ..Node::default() },
            taints: taints.into_iter().flatten().filter(stops).cloned().collect(),
            limits: Limits::of(&allocatable),
        }
    }

    /// Of a node that has this much, and says nothing else.
    #[cfg(test)]
    pub(crate) fn with(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Whether a Pod wants a node like this one.
    pub(crate) fn is_wanted(&self, pod: &Pod) -> Result<(), Rejection> {
        match pod.spec.as_ref().is_none_or(|spec| selects(spec, &self.node)) {
            true => Ok(()),
            false => Err(Rejection::NodeAffinity),
        }
    }

    /// Whether a Pod can run in spite of the node's taints. Static ones always can.
    pub(crate) fn is_tolerated(&self, pod: &Pod) -> Result<(), Rejection> {
        let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref());
        let tolerations: &[Toleration] = tolerations.unwrap_or_default();
        let tolerated = |taint| tolerations.iter().any(|toleration| tolerates(toleration, taint));
        match self.taints.iter().all(tolerated) || is_static(pod) {
            true => Ok(()),
            false => Err(Rejection::TaintToleration),
        }
    }
}

/// A resource of which there is not enough.
struct Short<'a> {
    resource: &'a str,
    requested: i64,
    used: i64,
    capacity: i64,
}

impl Limits {
    pub(crate) fn of(allocatable: &BTreeMap<String, Quantity>) -> Self {
        let extended = allocatable.keys().filter(|name| is_extended(name)).cloned().collect();
        Self { amounts: Resources::of(Some(allocatable)), extended }
    }

    /// Whether there is as much as a Pod asks for beside what others have. What the node does not
    /// name is somebody else's to give.
    pub(crate) fn check(&self, asked: &Resources, used: &Resources) -> Result<(), Rejection> {
        let mut short = self.short(asked, used);
        let first = short.next().map(|Short { resource, requested, used, capacity }| {
            Rejection::OutOf { resource: resource.to_owned(), requested, used, capacity }
        });
        first.map_or(Ok(()), Err)
    }

    /// How much there is too little of what a Pod asks for.
    pub(crate) fn lacks(&self, asked: &Resources, used: &Resources) -> Vec<Lack> {
        let short = self.short(asked, used).map(|short| Lack {
            resource: short.resource.to_owned(),
            amount: short.used.saturating_add(short.requested) - short.capacity,
        });
        short.collect()
    }

    fn short<'a>(
        &'a self,
        asked: &'a Resources,
        used: &'a Resources,
    ) -> impl Iterator<Item = Short<'a>> {
        asked.iter().filter_map(|(resource, requested)| {
            let (used, capacity) = (used.get(resource), self.amounts.get(resource));
            let is_ours = !is_extended(resource) || self.extended.contains(resource);
            let is_short = is_ours && used.saturating_add(requested) > capacity;
            is_short.then_some(Short { resource, requested, used, capacity })
        })
    }
}

/// A Pod without the resources that its containers get as devices: a claim has those for it, and the
/// node need not.
pub(crate) fn without_devices(pod: &Pod) -> Cow<'_, Pod> {
    let status = pod.status.as_ref();
    let told = status.and_then(|status| status.extended_resource_claim_status.as_ref());
    let Some(told) = told else { return Cow::Borrowed(pod) };
    let mut without = pod.clone();
    let spec = without.spec.get_or_insert_default();
    for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        let requests = container.resources.as_mut().and_then(|it| it.requests.as_mut());
        let name = &container.name;
        let is_device = |resource: &String| {
            let mut mappings = told.request_mappings.iter();
            mappings.any(|it| it.container_name == *name && it.resource_name == *resource)
        };
        if let Some(requests) = requests {
            requests.retain(|resource, _| !is_device(resource));
        }
    }
    Cow::Owned(without)
}

/// Whether a resource is none of those that Kubernetes itself knows.
pub(crate) fn is_extended(resource: &str) -> bool {
    resource.contains('/') && !resource.contains("kubernetes.io/")
}
