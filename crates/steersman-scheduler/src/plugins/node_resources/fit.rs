//! A node must have as much free of every resource as a Pod asks for.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::DeviceClass;

use super::strategy::{Strategy, Weighted};
use super::{counts_devices, look_at_devices, taken};
use crate::framework::{
    Action, Before, ClassResources, ClusterEvent, Code, Cycle, Hint, IMPLICIT, Interest, NodeInfo,
    Object, Plugin, PodInfo, PodRequests, Points, PreScore, Refusal, Replacement, Resource,
    Resources,
};
use crate::plugins::handle::Handle;
use crate::plugins::pod::is_of;

/// Looks whether there is room, and how much.
pub(crate) struct Fit {
    /// Extended resources that are somebody else's business.
    pub(crate) ignored: Vec<String>,
    /// The same by what stands before the slash.
    pub(crate) ignored_groups: Vec<String>,
    pub(crate) strategy: Strategy,
    /// What the strategy looks at.
    pub(crate) resources: Vec<Weighted>,
    /// Knows classes of devices.
    pub(crate) handle: Arc<Handle>,
}

impl Default for Fit {
    fn default() -> Self {
        let weighted = |name: &str| Weighted { name: name.to_owned(), weight: 1 };
        Self {
            ignored: Vec::new(),
            ignored_groups: Vec::new(),
            strategy: Strategy::LeastAllocated,
            resources: vec![weighted("cpu"), weighted("memory")],
            handle: Arc::default(),
        }
    }
}

/// What is assumed of a Pod by its containers alone.
#[derive(Clone)]
struct OfContainers(Resources);

/// What is taken of a node.
struct Taken<'a> {
    requested: &'a Resources,
    pods: usize,
}

/// What a Pod asks for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    resources: &'a Resources,
    /// Which of them are devices where a node does not have them.
    classes: Option<&'a ClassResources>,
}

impl<'a> Taken<'a> {
    fn on(node: &'a NodeInfo) -> Self {
        Self { requested: &node.requested, pods: node.pods.len() }
    }
}

impl<'a> Asked<'a> {
    fn of(cycle: &'a Cycle<'_>) -> Self {
        Self { resources: &cycle.info.requests.asked, classes: cycle.state.get() }
    }

    /// Whether a node gives a resource out as devices.
    fn is_device(&self, resource: &str, node: &NodeInfo) -> bool {
        let class = self.classes.and_then(|classes| classes.class(resource));
        class.is_some() && node.allocatable.get(resource) == 0
    }
}

/// What of a resource there is too little of.
struct Lack {
    reason: Cow<'static, str>,
    /// Not even an empty node of this kind has as much.
    is_unresolvable: bool,
}

impl Plugin for Fit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn points(&self) -> Points {
        Points::FILTER | Points::PRE_SCORE | Points::SCORE
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::AssignedPod, Action::DELETE),
                Interest::new(Resource::AssignedPod, Action::POD_SCALE_DOWN),
                Interest::new(Resource::UnscheduledPod, Action::POD_SCALE_DOWN),
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_ALLOCATABLE),
                Interest::new(Resource::DeviceClass, Action::ADD),
                Interest::new(Resource::DeviceClass, Action::UPDATE),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        match &event.object {
            Object::Pod(Before { old: Some(old), new: Some(new) }) => {
                (is_of(pod, event) || gave_up(pod, old, new)).into()
            }
            Object::Node(change) => self.helps(pod, change).into(),
            Object::DeviceClass(change) => is_asked_for(pod, change).into(),
            _ => Hint::Queue,
        }
    }

    fn is_local(&self) -> bool {
        true
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let taken = Taken::on(node);
        let mut lacks = self.lacks(Asked::of(cycle), &taken, node);
        let Some(first) = lacks.next() else { return Ok(()) };
        let mut is_unresolvable = first.is_unresolvable;
        let more = lacks.map(|lack| {
            is_unresolvable |= lack.is_unresolvable;
            lack.reason
        });
        let mut refusal = Refusal::unschedulable(first.reason).with(more);
        if is_unresolvable {
            refusal.code = Code::UnschedulableAndUnresolvable;
        }
        Err(refusal)
    }

    fn rules_out(&self, cycle: &Cycle<'_>, node: &NodeInfo, after: Replacement<'_>) -> bool {
        let mut requested = node.requested.clone();
        after.gone.iter().for_each(|pod| requested.subtract(&pod.requests.asked));
        after.coming.iter().for_each(|pod| requested.add(&pod.requests.asked));
        let pods = (node.pods.len() + after.coming.len()).saturating_sub(after.gone.len());
        let taken = Taken { requested: &requested, pods };
        self.lacks(Asked::of(cycle), &taken, node).next().is_some()
    }

    /// What a whole Pod asks for counts on its node, and not when nodes are compared for it: so it is
    /// in Kubernetes.
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Arc<NodeInfo>]) -> Result<PreScore, Refusal> {
        if cycle.spec().resources.is_some() {
            cycle.state.insert(OfContainers(PodRequests::assumed_of_containers(cycle.pod)));
        }
        if counts_devices(&self.resources, cycle) {
            look_at_devices(cycle, &self.handle);
        }
        Ok(PreScore::Score)
    }

    /// What the containers alone ask for is not known of a Pod that asks for the same as a whole, nor
    /// which devices are taken, of a node.
    fn scores_locally(&self, cycle: &Cycle<'_>) -> bool {
        cycle.spec().resources.is_none() && !counts_devices(&self.resources, cycle)
    }

    fn score(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let PodRequests { asked, assumed, .. } = &cycle.info.requests;
        let assumed = cycle.state.get().map_or(assumed, |OfContainers(assumed)| assumed);
        let devices = cycle.state.get();
        self.strategy.sum(self.resources.iter().filter_map(|Weighted { name, weight }| {
            let wanted = match name.as_str() {
                "cpu" | "memory" => assumed.get(name),
                _ => asked.get(name),
            };
            let taken = taken(name, &node.assumed, wanted, node, devices)?;
            Some((self.strategy.score(taken.after, taken.allocatable), *weight))
        }))
    }
}

impl Fit {
    /// What a node has too little of if this much is taken.
    fn lacks<'a>(
        &'a self,
        asked: Asked<'a>,
        taken: &'a Taken<'_>,
        node: &'a NodeInfo,
    ) -> impl Iterator<Item = Lack> + 'a {
        let pods = i64::try_from(taken.pods).unwrap_or(i64::MAX);
        let is_full = pods.saturating_add(1) > node.pods_max;
        let too_many = || Lack { reason: "Too many pods".into(), is_unresolvable: false };
        let counted = move |name: &str| !self.ignores(name) && !asked.is_device(name, node);
        let resources = asked.resources.iter().filter(move |(name, _)| counted(name));
        is_full.then(too_many).into_iter().chain(resources.filter_map(|(name, wanted)| {
            let capacity = node.allocatable.get(name);
            let has_room = wanted <= capacity.saturating_sub(taken.requested.get(name));
            (!has_room).then(|| Lack { reason: lack(name), is_unresolvable: wanted > capacity })
        }))
    }

    fn fits_into(&self, asked: Asked<'_>, node: &NodeInfo) -> bool {
        self.lacks(asked, &Taken::on(node), node).next().is_none()
    }

    fn ignores(&self, resource: &str) -> bool {
        if self.ignored.is_empty() && self.ignored_groups.is_empty() {
            return false;
        }
        let Some((group, _)) = resource.split_once('/') else { return false };
        let is_native = group == "kubernetes.io" || group.ends_with(".kubernetes.io");
        let is_listed = |list: &[String], name: &str| list.iter().any(|it| it == name);
        !is_native && (is_listed(&self.ignored, resource) || is_listed(&self.ignored_groups, group))
    }

    /// Whether a node has become large enough for a Pod.
    fn helps(&self, pod: &Pod, change: &Before<Node>) -> bool {
        let Some(new) = &change.new else { return false };
        let resources = PodRequests::of(pod).asked;
        let lister = self.handle.lister();
        let classes = lister.map(|lister| ClassResources::of(&resources, &**lister));
        let asked = Asked { resources: &resources, classes: classes.as_ref() };
        let new = NodeInfo::new(Arc::clone(new));
        let Some(old) = &change.old else { return self.fits_into(asked, &new) };
        let old = NodeInfo::new(Arc::clone(old));
        let is_more = |name: &str| {
            new.allocatable.get(name) > old.allocatable.get(name) || asked.is_device(name, &new)
        };
        let has_more =
            new.pods_max > old.pods_max || resources.iter().any(|(name, _)| is_more(name));
        has_more && self.fits_into(asked, &new)
    }
}

fn lack(resource: &str) -> Cow<'static, str> {
    match resource {
        "cpu" => "Insufficient cpu".into(),
        "memory" => "Insufficient memory".into(),
        _ => format!("Insufficient {resource}").into(),
    }
}

/// Whether a Pod now asks for less of what another wants.
fn gave_up(pod: &Pod, old: &PodInfo, new: &PodInfo) -> bool {
    let wanted = PodRequests::of(pod).asked;
    let less = |name: &str| old.requests.asked.get(name) > new.requests.asked.get(name);
    wanted.iter().any(|(name, _)| less(name))
}

/// Whether a Pod asks for a resource that has come to stand for devices of a class.
fn is_asked_for(pod: &Pod, change: &Before<DeviceClass>) -> bool {
    let Some(new) = &change.new else { return false };
    let resource = |class: &DeviceClass| class.spec.extended_resource_name.clone();
    let explicit = resource(new);
    let implicit = match &change.old {
        Some(old) if resource(old) == explicit => return false,
        Some(_) => None, // it has had its name before
        None => new.metadata.name.as_ref().map(|name| format!("{IMPLICIT}{name}")),
    };
    let asked = PodRequests::of(pod).asked;
    implicit.iter().chain(&explicit).any(|name| asked.get(name) != 0)
}
