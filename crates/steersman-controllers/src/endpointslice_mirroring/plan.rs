//! The slices that mirror Endpoints: objects in, changes out.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort as SubsetPort, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman_values::IpFamily;

use super::MANAGER;
use crate::service::{
    Desired, MANAGED_BY, PortsKey, SERVICE_NAME, TRIGGER_TIME, canonical, name_prefix, order_ports,
    ports_key, repack, same_beyond_identity,
};

/// The most addresses of a subset that are mirrored.
pub(super) const MAX: usize = 1000;
/// Says that Endpoints are not to be mirrored.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Endpoints that are only there so that somebody can be elected.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// What kubectl leaves on objects, which says nothing of slices.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What happens next.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
    /// How many addresses are none.
    pub(super) invalid: usize,
    /// How many were left out, those among them.
    pub(super) skipped: usize,
    /// What changes.
    pub(super) totals: Totals,
    /// What there is then.
    pub(super) size: Size,
}

/// How many endpoints come, change and go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) added: usize,
    pub(super) updated: usize,
    pub(super) removed: usize,
}

/// How many endpoints are mirrored, in how many slices, and how few could hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) endpoints: usize,
    pub(super) slices: usize,
    pub(super) desired_slices: usize,
}

/// The slices of one subset and family.
#[derive(Default)]
struct Sort {
    /// There is such a subset. Others are not counted.
    is_told: bool,
    ports: Vec<EndpointPort>,
    desired: Desired,
    existing: Vec<Arc<EndpointSlice>>,
}

type Sorts = BTreeMap<(IpFamily, PortsKey), Sort>;

/// Whether Endpoints are to be mirrored: nobody says otherwise, and no selector of their Service does
/// it better.
pub(super) fn is_mirrored(endpoints: &Endpoints, service: Option<&Service>) -> bool {
    let meta = &endpoints.metadata;
    let skips = |labels: &BTreeMap<String, String>| {
        labels.get(SKIP_MIRROR).is_some_and(|skip| skip == "true")
    };
    let elects = |annotations: &BTreeMap<String, String>| annotations.contains_key(LEADER);
    let selects = |service: &Service| {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.is_some_and(|selector| !selector.is_empty())
    };
    !meta.labels.as_ref().is_some_and(skips)
        && !meta.annotations.as_ref().is_some_and(elects)
        && service.is_some_and(|service| !selects(service))
}

/// What must be written so that slices tell what these Endpoints do.
pub(super) fn plan(endpoints: &Endpoints, slices: &[Arc<EndpointSlice>]) -> Plan {
    let mut plan = Plan::default();
    let mut sorts = desired(endpoints, &mut plan);
    for slice in slices {
        let ports = slice.ports.as_deref().unwrap_or_default();
        let mut families = IpFamily::ALL.into_iter();
        match families.find(|family| family.name() == slice.address_type) {
            Some(family) => {
                let sort = sorts.entry((family, ports_key(ports))).or_default();
                sort.existing.push(Arc::clone(slice));
            }
            None => plan.delete.push(Arc::clone(slice)),
        }
    }
    for ((family, _), sort) in sorts {
        plan_sort(endpoints, family, sort, &mut plan);
    }
    recycle(&mut plan);
    if endpoints.metadata.deletion_timestamp.is_some() {
        plan.create.clear();
    }
    plan
}

fn desired(endpoints: &Endpoints, plan: &mut Plan) -> Sorts {
    let mut sorts = Sorts::new();
    for subset in repack(endpoints.subsets.as_deref().unwrap_or_default()) {
        let ports: Vec<EndpointPort> = subset.ports.iter().flatten().map(slice_port).collect();
        let key = ports_key(&ports);
        for family in IpFamily::ALL {
            sorts.entry((family, key.clone())).or_default().is_told = true;
        }
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        let mut added = 0;
        for (address, is_ready) in ready.chain(not_ready) {
            if added >= MAX {
                plan.skipped += 1;
                continue;
            }
            let Some((family, endpoint)) = endpoint(address, is_ready) else {
                plan.invalid += 1;
                plan.skipped += 1;
                continue;
            };
            let sort = sorts.entry((family, key.clone())).or_default();
            sort.ports.clone_from(&ports);
            sort.desired.insert(endpoint);
            added += 1;
        }
    }
    sorts
}

fn plan_sort(endpoints: &Endpoints, family: IpFamily, sort: Sort, plan: &mut Plan) {
    if sort.is_told {
        count(&sort, plan);
    }
    let Sort { mut ports, desired, existing, .. } = sort;
    let mut existing = existing.into_iter();
    if desired.len() == 0 {
        plan.delete.extend(existing);
        return;
    }
    let first = existing.next();
    plan.delete.extend(existing); // one is enough
    order_ports(&mut ports);
    let mut slice = new_slice(endpoints, family, ports);
    if let Some(first) = first {
        if is_same(&first, &slice, &desired) {
            return;
        }
        slice = revised(&first, slice);
        slice.endpoints = Some(desired.rest().collect());
        plan.update.push(slice);
    } else {
        slice.endpoints = Some(desired.rest().collect());
        plan.create.push(slice);
    }
}

/// Counts what one subset and family come to.
fn count(sort: &Sort, plan: &mut Plan) {
    let Plan { totals, size, .. } = plan;
    let wanted = sort.desired.len();
    size.endpoints += wanted;
    size.slices += usize::from(wanted > 0);
    size.desired_slices += wanted.div_ceil(MAX);
    if wanted == 0 {
        totals.removed += sort.existing.iter().map(|it| endpoints_of(it).len()).sum::<usize>();
        return;
    }
    let (mut matching, mut changed) = (0, 0);
    let found = sort.existing.first().map_or(&[] as &[Endpoint], |first| endpoints_of(first));
    for endpoint in found {
        if let Some(desired) = sort.desired.get(endpoint) {
            matching += 1;
            changed += usize::from(!same_beyond_identity(desired, endpoint));
        }
    }
    totals.added += wanted.saturating_sub(matching);
    totals.updated += changed;
    totals.removed += found.len() - matching;
}

fn endpoints_of(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

/// Whether a slice tells already what it should.
fn is_same(slice: &EndpointSlice, wanted: &EndpointSlice, desired: &Desired) -> bool {
    let found = endpoints_of(slice);
    let owners = |slice: &EndpointSlice| slice.metadata.owner_references.clone();
    let annotations =
        |slice: &EndpointSlice| slice.metadata.annotations.clone().unwrap_or_default();
    let is_wanted =
        |it: &Endpoint| desired.get(it).is_some_and(|wanted| same_beyond_identity(wanted, it));
    found.len() == desired.len()
        && found.iter().all(is_wanted)
        && slice.metadata.labels == wanted.metadata.labels
        && annotations(slice) == annotations(wanted)
        && owners(slice) == owners(wanted)
}

/// A present slice that becomes another.
fn revised(slice: &EndpointSlice, wanted: EndpointSlice) -> EndpointSlice {
    let metadata = ObjectMeta {
        labels: wanted.metadata.labels,
        annotations: wanted.metadata.annotations,
        owner_references: wanted.metadata.owner_references,
        ..slice.metadata.clone()
    };
    EndpointSlice { metadata, ..wanted }
}

/// Slices that would be deleted become those that would be created.
fn recycle(plan: &mut Plan) {
    let mut create = Vec::new();
    for wanted in std::mem::take(&mut plan.create) {
        let same = |slice: &Arc<EndpointSlice>| slice.address_type == wanted.address_type;
        match plan.delete.iter().position(same) {
            Some(place) => {
                let old = plan.delete.remove(place);
                plan.update.push(revised(&old, wanted));
            }
            None => create.push(wanted),
        }
    }
    plan.create = create;
}

/// A slice that mirrors Endpoints, without any yet.
fn new_slice(endpoints: &Endpoints, family: IpFamily, ports: Vec<EndpointPort>) -> EndpointSlice {
    let meta = &endpoints.metadata;
    let name = meta.name.clone().unwrap_or_default();
    let mut labels = meta.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.clone());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let mut annotations = meta.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| key != TRIGGER_TIME && key != LAST_APPLIED);
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Endpoints".into(),
        name: name.clone(),
        uid: meta.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let metadata = ObjectMeta {
        generate_name: Some(name_prefix(&name)),
        namespace: meta.namespace.clone(),
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    EndpointSlice {
        metadata,
        address_type: family.name().to_owned(),
        endpoints: Some(Vec::new()),
        ports: Some(ports),
    }
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Option<(IpFamily, Endpoint)> {
    let ip = canonical(&address.ip)?;
    let conditions = EndpointConditions { ready: Some(ready), ..EndpointConditions::default() };
    let endpoint = Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(conditions),
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        hostname: address.hostname.clone().filter(|name| !name.is_empty()),
        ..Endpoint::default()
    };
    Some((IpFamily::of(ip), endpoint))
}

fn slice_port(port: &SubsetPort) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(port.port),
        protocol: port.protocol.clone(),
        app_protocol: port.app_protocol.clone(),
    }
}
