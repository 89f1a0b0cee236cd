//! What happens to the slices of a Service: objects in, changes out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman_values::IpFamily;

use super::MANAGER;
use super::endpoint::{Candidate, common_ports, ports, publishes_not_ready};
use super::hints::Traffic;
use super::packing::{Blank, Changes, Standing, endpoints, pack};
use super::settled::Look;
use super::topology::Zones;
use crate::service::{
    Desired, HEADLESS, MANAGED_BY, PortsKey, SERVICE_NAME, families_of, has_cluster_ip,
    is_endpoint, name_prefix, names, ports_key,
};

/// The most endpoints in a slice.
pub(super) const MAX: usize = 100;
/// Labels of slices that are not those of their Service.
const RESERVED: [&str; 3] = [SERVICE_NAME, MANAGED_BY, HEADLESS];

/// A Service, and what there is around it.
pub(super) struct Situation<'a> {
    pub(super) service: &'a Service,
    /// The Pods that it selects, those that are looked at.
    pub(super) pods: &'a [Arc<Pod>],
    /// Which those are, if not all.
    pub(super) look: Option<&'a Look>,
    pub(super) node: &'a dyn Fn(&str) -> Option<Arc<Node>>,
    pub(super) zones: &'a dyn Fn() -> Zones,
    /// The slices that are this controller's, and that are not being deleted.
    pub(super) slices: &'a [Arc<EndpointSlice>],
    /// Whether it was last given hints by the number of processors.
    pub(super) hinted: bool,
}

/// What happens next.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) changes: Changes,
    /// Pods that are left out since their nodes do not exist, in Kubernetes' words.
    pub(super) skipped: Vec<String>,
    /// What people are told of hints.
    pub(super) told: Vec<Told>,
    /// Whether hints were given by the number of processors.
    pub(super) hinted: bool,
    /// How many endpoints there are of each sort of slices.
    pub(super) endpoints: Vec<usize>,
}

/// Something that people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    HintsEnabled(String),
    HintsDisabled(String),
}

/// One sort of slices: of the same ports.
#[derive(Default)]
struct Sort<'a> {
    ports: Vec<EndpointPort>,
    /// Those that no slice tells of as they are.
    desired: Desired,
    standing: Standing<'a>,
    /// Whether any Pod asks for slices of this sort.
    wanted: bool,
}

/// All sorts, by their ports.
#[derive(Default)]
struct Sorts<'a> {
    all: Vec<Sort<'a>>,
    by_ports: BTreeMap<PortsKey, usize>,
}

impl<'a> Sorts<'a> {
    /// Puts a slice where its ports are. Of a slice that tells of Pods that nobody looks at there are such
    /// Pods.
    fn stand(&mut self, slice: &'a Arc<EndpointSlice>, look: Option<&Look>) {
        let ports = slice.ports.as_deref().unwrap_or_default();
        let place = self.place(ports);
        let sort = &mut self.all[place];
        let Some(look) = look else { return sort.standing.add(slice) };
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        let settled = match look.slices.contains(name) {
            false => sort.standing.add_settled(slice, |_| true),
            true => sort
                .standing
                .add_settled(slice, |pod| pod.is_some_and(|pod| !look.pods.contains(pod))),
        };
        if settled > 0 && !sort.wanted {
            (sort.ports, sort.wanted) = (ports.to_vec(), true);
        }
    }

    /// Where the sort with these ports is.
    fn place(&mut self, ports: &[EndpointPort]) -> usize {
        let new = self.all.len();
        let place = *self.by_ports.entry(ports_key(ports)).or_insert(new);
        if place == new {
            self.all.push(Sort::default());
        }
        place
    }

    /// Where the sort with these ports is, of which there is a Pod.
    fn wanted(&mut self, ports: Vec<EndpointPort>) -> usize {
        let place = self.place(&ports);
        let sort = &mut self.all[place];
        (sort.ports, sort.wanted) = (ports, true);
        place
    }
}

impl Situation<'_> {
    /// What must be written so that the slices tell where the Pods are.
    pub(super) fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        let Some(spec) = &self.service.spec else { return plan };
        let families = families_of(spec);
        for family in &families {
            let mut changes = self.plan_family(spec, *family, &mut plan);
            recycle(&mut changes, self.service);
            if self.service.metadata.deletion_timestamp.is_some() {
                changes.create.clear(); // the garbage collector is about to delete them
            }
            plan.changes.append(changes);
        }
        let is_foreign = |slice: &&Arc<EndpointSlice>| {
            !families.iter().any(|it| it.name() == slice.address_type)
        };
        plan.changes.delete.extend(self.slices.iter().filter(is_foreign).cloned());
        plan
    }

    fn plan_family(&self, spec: &ServiceSpec, family: IpFamily, plan: &mut Plan) -> Changes {
        let mut changes = Changes::default();
        let mut sorts = Sorts::default();
        for slice in self.slices.iter().filter(|slice| slice.address_type == family.name()) {
            if is_owned(slice, self.service) {
                sorts.stand(slice, self.look);
            } else {
                changes.delete.push(Arc::clone(slice));
            }
        }
        self.sort_pods(spec, family, &mut sorts, plan);
        for place in sorts.by_ports.into_values() {
            let Sort { ports, desired, standing, wanted } = std::mem::take(&mut sorts.all[place]);
            if !wanted {
                changes.removed += standing.slices().map(|it| endpoints(it).len()).sum::<usize>();
                changes.delete.extend(standing.slices().cloned());
                continue;
            }
            plan.endpoints.push(standing.same() + desired.len());
            let blank = new_slice(self.service, spec, family, ports);
            changes.append(pack(&standing, desired, &Blank { slice: &blank, max: MAX }));
        }
        self.leave_one(spec, family, &mut changes);
        self.hint(family, &mut changes, plan);
        changes
    }

    /// Sorts Pods by their ports, and finds out of which of them a slice tells already. Of the others,
    /// those that came together stand together, since they are likely to change together.
    fn sort_pods(
        &self,
        spec: &ServiceSpec,
        family: IpFamily,
        sorts: &mut Sorts<'_>,
        plan: &mut Plan,
    ) {
        let common = common_ports(spec);
        let mut common_place = None;
        // Pods are many, and their nodes are few.
        let mut nodes: HashMap<&str, Option<Arc<Node>>> = HashMap::new();
        let mut changed: Vec<(usize, &Pod, Option<Arc<Node>>)> = Vec::new();
        for pod in self.pods.iter().filter(|pod| is_endpoint(pod, true)) {
            let place = match &common {
                Some(ports) => *common_place.get_or_insert_with(|| sorts.wanted(ports.clone())),
                None => sorts.wanted(ports(spec, pod)),
            };
            let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            let node_name = node_name.unwrap_or_default();
            let node = &*nodes.entry(node_name).or_insert_with(|| (self.node)(node_name));
            if node.is_none() && !publishes_not_ready(self.service) {
                let (namespace, service) = names(self.service);
                let pod = pod.metadata.name.as_deref().unwrap_or_default();
                plan.skipped.push(format!(
                    "skipping Pod {pod} for Service {namespace}/{service}: Node {node_name} Not Found"
                ));
                continue;
            }
            let candidate = self.candidate(pod, node.as_deref(), family);
            if !sorts.all[place].standing.tells_of(&candidate) && candidate.has_address() {
                changed.push((place, pod, node.clone()));
            }
        }
        let came = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        changed.sort_by(|(_, a, _), (_, b, _)| {
            came(a).cmp(&came(b)).then_with(|| a.metadata.name.cmp(&b.metadata.name))
        });
        for (place, pod, node) in changed {
            let endpoint = self.candidate(pod, node.as_deref(), family).endpoint();
            sorts.all[place].desired.insert(endpoint);
        }
    }

    fn candidate<'a>(
        &'a self,
        pod: &'a Pod,
        node: Option<&'a Node>,
        family: IpFamily,
    ) -> Candidate<'a> {
        Candidate { pod, node, service: self.service, family }
    }

    /// A Service always has a slice, be it empty: so one knows that somebody has looked.
    fn leave_one(&self, spec: &ServiceSpec, family: IpFamily, changes: &mut Changes) {
        if !changes.create.is_empty() || !changes.update.is_empty() || !changes.keep.is_empty() {
            return;
        }
        let placeholder = new_slice(self.service, spec, family, Vec::new());
        if let [only] = &changes.delete[..]
            && is_owned(only, self.service)
            && is_placeholder(only, &placeholder)
        {
            changes.keep.append(&mut changes.delete);
        } else {
            changes.create.push(placeholder);
        }
    }

    fn hint(&self, family: IpFamily, changes: &mut Changes, plan: &mut Plan) {
        let with_type = |text: &str| format!("{text}, addressType: {}", family.name());
        let traffic = Traffic::of(self.service);
        if traffic != Traffic::Automatic {
            if self.hinted {
                let disabled = with_type("Topology Aware Hints has been disabled");
                plan.told.push(Told::HintsDisabled(disabled));
            }
            if self.look.is_none() {
                traffic.revise_kept(changes);
            }
            traffic.hint(changes);
            return;
        }
        match (self.zones)().hint(changes) {
            Ok(()) => {
                if !self.hinted {
                    let enabled = with_type("Topology Aware Hints has been enabled");
                    plan.told.push(Told::HintsEnabled(enabled));
                }
                plan.hinted = true;
            }
            Err(why) => plan.told.push(Told::HintsDisabled(with_type(&why))),
        }
    }
}

/// Slices that would be deleted become those that would be created: one write instead of two, and
/// nobody has to hear of a slice that is gone.
fn recycle(changes: &mut Changes, service: &Service) {
    let (mut old, foreign): (Vec<_>, Vec<_>) =
        std::mem::take(&mut changes.delete).into_iter().partition(|slice| is_owned(slice, service));
    while !old.is_empty()
        && let Some(new) = changes.create.pop()
    {
        let old = old.remove(0);
        let mut slice = EndpointSlice::clone(&old);
        slice.metadata.labels = new.metadata.labels;
        slice.ports = new.ports;
        slice.endpoints = new.endpoints;
        changes.update.push(slice);
    }
    changes.delete = old;
    changes.delete.extend(foreign);
}

/// A slice without endpoints. Whoever creates it becomes its owner.
fn new_slice(
    service: &Service,
    spec: &ServiceSpec,
    family: IpFamily,
    ports: Vec<EndpointPort>,
) -> EndpointSlice {
    let (namespace, name) = names(service);
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(name_prefix(name)),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels(service, spec)),
            ..ObjectMeta::default()
        },
        address_type: family.name().to_owned(),
        endpoints: Some(Vec::new()),
        ports: Some(ports),
    }
}

/// The labels of a Service's slices: its own, and those that say whose they are.
fn labels(service: &Service, spec: &ServiceSpec) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.retain(|key, _| !RESERVED.contains(&key.as_str()));
    if !has_cluster_ip(spec) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), names(service).1.to_owned());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

/// Whether a slice is of this Service, and not of one that had its name before.
fn is_owned(slice: &EndpointSlice, service: &Service) -> bool {
    let mut owners = slice.metadata.owner_references.iter().flatten();
    owners.any(|owner| {
        owner.kind == "Service"
            && owner.api_version == "v1"
            && Some(&owner.uid) == service.metadata.uid.as_ref()
    })
}

/// Whether a slice says all that a slice without endpoints says.
fn is_placeholder(slice: &EndpointSlice, placeholder: &EndpointSlice) -> bool {
    endpoints(slice).is_empty()
        && slice.ports.as_deref().unwrap_or_default().is_empty()
        && slice.metadata.labels == placeholder.metadata.labels
}
