//! Extended resources that a Pod gets as devices: a claim of the scheduler's own asks for them.
//!
//! What it asks for depends on the node, which may have some of the resources itself. So there is no
//! claim until a node is chosen; until then one that is only in memory stands for it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerExtendedResourceRequest, Pod};
use k8s_openapi::api::resource::v1::{
    DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaim, ResourceClaimSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman::object::is_controlled_by;
use steersman_values::Quantity;

use super::uuid::random_uuid;
use crate::framework::{ClassResources, Lister, NodeInfo, PodInfo, Refusal};

/// What tells the claim from those that people make.
const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";
/// What it is called while it is only in memory: nothing else can be called so.
const IN_MEMORY: &str = "<extended-resources>";

/// What a Pod gets on one node, and which container gets it by which request.
#[derive(Clone)]
pub(super) struct OnNode {
    pub(super) claim: ResourceClaim,
    pub(super) mappings: Vec<ContainerExtendedResourceRequest>,
}

/// The claim of a Pod for extended resources: the one of an earlier attempt, or one in memory.
pub(super) fn claim_of(pod: &Pod, lister: &dyn Lister) -> ResourceClaim {
    let all = lister.resource_claims();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    match all.iter().find(|claim| is_special_of(claim, uid)) {
        Some(claim) => ResourceClaim::clone(claim),
        None => in_memory(pod),
    }
}

/// Whether a claim is for the extended resources of a Pod.
pub(super) fn is_special_of(claim: &ResourceClaim, pod: &str) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(ANNOTATION)).is_some_and(|value| value == "true")
        && is_controlled_by(&claim.metadata, pod)
}

/// Whether a claim has never been written.
pub(super) fn is_in_memory(claim: &ResourceClaim) -> bool {
    claim.metadata.name.as_deref() == Some(IN_MEMORY)
}

fn in_memory(pod: &Pod) -> ResourceClaim {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        namespace: pod.metadata.namespace.clone(),
        name: Some(IN_MEMORY.to_owned()),
        uid: Some(random_uuid()),
        generate_name: Some(format!("{name}-extended-resources-")),
        annotations: Some([(ANNOTATION.to_owned(), "true".to_owned())].into()),
        owner_references: Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name,
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            ..OwnerReference::default()
        }]),
        ..ObjectMeta::default()
    };
    ResourceClaim { metadata, ..ResourceClaim::default() }
}

/// The claim as it is to be created.
pub(super) fn to_create(claim: &ResourceClaim) -> ResourceClaim {
    let mut new = claim.clone();
    (new.metadata.name, new.metadata.uid, new.status) = (None, None, None);
    new
}

/// What of the extended resources of a Pod has to be given out as devices on a node; none if it has all
/// of them itself.
pub(super) fn on_node(
    pod: &Pod,
    info: &PodInfo,
    claim: &ResourceClaim,
    classes: &ClassResources,
    node: &NodeInfo,
) -> Result<Option<OnNode>, Refusal> {
    if !is_in_memory(claim) {
        return Err(Refusal::unresolvable("cannot schedule extended resource claim"));
    }
    let status = node.node.status.as_ref();
    let allocatable = status.and_then(|status| status.allocatable.as_ref());
    let is_known = |name: &str| allocatable.is_some_and(|all| all.contains_key(name));
    let is_extended = |name: &str| name.contains('/') && !name.contains("kubernetes.io/");
    let mut devices = BTreeMap::new();
    for (resource, _) in info.requests.asked.iter() {
        let class = classes.class(resource).filter(|_| node.allocatable.get(resource) == 0);
        if let Some(class) = class {
            devices.insert(resource, class);
        } else if is_extended(resource) && !is_known(resource) {
            return Err(Refusal::unresolvable("cannot fit resource"));
        }
    }
    if devices.is_empty() {
        return Ok(None);
    }
    let (requests, mappings) = requests(pod, &devices);
    let devices = DeviceClaim { requests: Some(requests), ..DeviceClaim::default() };
    let spec = ResourceClaimSpec { devices: Some(devices) };
    let claim = ResourceClaim { metadata: claim.metadata.clone(), spec, status: None };
    Ok(Some(OnNode { claim, mappings }))
}

/// The requests for devices by which containers get resources, with the classes of those.
///
/// Containers that run together each have a request of their own. Of init containers that run one after
/// the other all have the same one, for as much as that needs most which needs most; and before that
/// what later containers will have.
fn requests(
    pod: &Pod,
    resources: &BTreeMap<&str, &str>,
) -> (Vec<DeviceRequest>, Vec<ContainerExtendedResourceRequest>) {
    let spec = pod.spec.clone().unwrap_or_default();
    let starting = spec.init_containers.unwrap_or_default();
    let is_short = |at: usize, container: &Container| {
        at < starting.len() && container.restart_policy.as_deref() != Some("Always")
    };
    let containers: Vec<&Container> = starting.iter().chain(&spec.containers).collect();
    let (mut all, mut mappings) = (Vec::new(), Vec::new());
    for (resource, class) in resources {
        let (mut long, mut of_long) = (Vec::new(), Vec::new());
        for (at, container) in containers.iter().enumerate() {
            let wants = Wants { at, container, resource, class };
            long.push((!is_short(at, container)).then(|| wants.get(&[], &mut of_long)).flatten());
        }
        let (mut longest, mut short_names) = (None::<DeviceRequest>, Vec::new());
        let mut of_short = Vec::new();
        for (at, container) in containers.iter().enumerate().filter(|(at, it)| is_short(*at, it)) {
            let wants = Wants { at, container, resource, class };
            let Some(more) = wants.get(&long[at..], &mut of_short) else { continue };
            short_names.push(more.name.clone());
            if longest.as_ref().is_none_or(|longest| count(longest) < count(&more)) {
                longest = Some(more);
            }
        }
        if let Some(longest) = &longest {
            for mapping in of_short.iter_mut().filter(|it| short_names.contains(&it.request_name)) {
                mapping.request_name.clone_from(&longest.name);
            }
        }
        all.extend(longest.into_iter().chain(long.into_iter().flatten()));
        mappings.extend(of_long.into_iter().chain(of_short));
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    (all, mappings)
}

/// A container, and a resource that it may want.
struct Wants<'a> {
    /// Its place among all containers.
    at: usize,
    container: &'a Container,
    resource: &'a str,
    class: &'a str,
}

impl Wants<'_> {
    /// What the container needs beside what it can take from others, which it takes at first.
    fn get(
        &self,
        others: &[Option<DeviceRequest>],
        mappings: &mut Vec<ContainerExtendedResourceRequest>,
    ) -> Option<DeviceRequest> {
        let asked = self.container.resources.as_ref()?.requests.as_ref()?;
        let wanted = Quantity::parse(&asked.get(self.resource)?.0).ok()?;
        let wanted =
            Some(wanted.value()).filter(|_| wanted.is_positive() && wanted.is_integer())?;
        let mut given = 0;
        for other in others.iter().flatten() {
            given += count(other);
            mappings.push(self.mapping(&other.name));
            if given >= wanted {
                return None;
            }
        }
        // Names are sorted in the map.
        let place = asked.keys().position(|name| name == self.resource)?;
        let name = format!("container-{}-request-{place}", self.at);
        mappings.push(self.mapping(&name));
        let exactly = ExactDeviceRequest {
            device_class_name: self.class.to_owned(),
            allocation_mode: Some("ExactCount".to_owned()),
            count: Some(wanted - given),
            ..ExactDeviceRequest::default()
        };
        Some(DeviceRequest { name, exactly: Some(exactly), ..DeviceRequest::default() })
    }

    fn mapping(&self, request: &str) -> ContainerExtendedResourceRequest {
        ContainerExtendedResourceRequest {
            container_name: self.container.name.clone(),
            resource_name: self.resource.to_owned(),
            request_name: request.to_owned(),
        }
    }
}

fn count(request: &DeviceRequest) -> i64 {
    request.exactly.as_ref().and_then(|exactly| exactly.count).unwrap_or_default()
}
