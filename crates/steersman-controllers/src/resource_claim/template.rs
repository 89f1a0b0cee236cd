//! What is to be done about one entry of a Pod's `spec.resourceClaims`.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::{
    ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{POD_CLAIM_NAME, is_allocated};
use crate::pod::node_name;
use crate::pod_resource_claims::{ClaimName, entries, is_reserved_for};

/// How much of a generated name is chosen; the server appends a hyphen and five characters to it.
const BASE_MAX: usize = 57;

/// What there is around a Pod.
pub(super) struct Around<'a> {
    /// The claim of this name.
    pub(super) claim: &'a (dyn Fn(&str) -> Option<Arc<ResourceClaim>> + Sync),
    /// The template of this name.
    pub(super) template: &'a (dyn Fn(&str) -> Option<Arc<ResourceClaimTemplate>> + Sync),
    /// The claims that belong to the Pod.
    pub(super) owned: &'a [Arc<ResourceClaim>],
}

/// What is to be done about one entry.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing.
    Settled,
    /// Its claim is there, and the Pod's status does not say how it is called.
    Tell(String),
    /// Its claim is to be made.
    Create(Box<ResourceClaim>),
}

/// A template that a Pod names is not there.
#[derive(Debug, PartialEq)]
pub(super) struct NoTemplate {
    name: String,
}

impl fmt::Display for NoTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name } = self;
        let missing = format!("resourceclaimtemplate.resource.k8s.io {name:?} not found");
        write!(f, "resource claim template {name:?}: {missing}")
    }
}

/// What is to be done about an entry of a Pod.
pub(super) fn step(
    pod: &Pod,
    entry: &PodResourceClaim,
    around: &Around<'_>,
) -> Result<Step, NoTemplate> {
    let known = ClaimName::of(pod, entry);
    if known == ClaimName::NotNeeded {
        return Ok(Step::Settled);
    }
    if let Some(claim) = known.name().and_then(around.claim)
        && known.is(&claim, pod)
    {
        return Ok(Step::Settled);
    }
    let Some(name) = &entry.resource_claim_template_name else { return Ok(Step::Settled) };
    // Whoever made it may have been stopped before the status told of it.
    let made = around.owned.iter().find(|claim| {
        let annotations = claim.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(POD_CLAIM_NAME)) == Some(&entry.name)
    });
    if let Some(made) = made {
        return Ok(Step::Tell(made.metadata.name.clone().unwrap_or_default()));
    }
    match (around.template)(name) {
        Some(template) => Ok(Step::Create(Box::new(claim_of(pod, entry, &template)))),
        None => Err(NoTemplate { name: name.clone() }),
    }
}

/// A claim of a Pod, from a template.
fn claim_of(
    pod: &Pod,
    entry: &PodResourceClaim,
    template: &ResourceClaimTemplate,
) -> ResourceClaim {
    let of_pod = pod.metadata.name.clone().unwrap_or_default();
    let given = template.spec.metadata.clone().unwrap_or_default();
    let mut annotations = given.annotations.unwrap_or_default();
    annotations.insert(POD_CLAIM_NAME.to_owned(), entry.name.clone());
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: of_pod.clone(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    ResourceClaim {
        metadata: ObjectMeta {
            generate_name: Some(generate_name(&of_pod, &entry.name)),
            namespace: pod.metadata.namespace.clone(),
            annotations: Some(annotations),
            labels: given.labels,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.spec.clone(),
        status: None,
    }
}

/// How the name of a claim begins. Of names that are too long both lose a part, each by its length, so
/// that something is left of the second.
pub(super) fn generate_name(pod: &str, entry: &str) -> String {
    let whole = format!("{pod}-{entry}-");
    if whole.len() <= BASE_MAX {
        return whole;
    }
    let share = |name: &str, of: usize| name[..name.len() * BASE_MAX / of].to_owned();
    format!("{}-{}", share(pod, whole.len()), share(entry, whole.len()))
}

/// The claims that are allocated and not reserved for a Pod that runs on a node all the same. One that
/// is not there yet ends the search, and one that is another's is an error, in Kubernetes' words.
pub(super) fn to_reserve(
    pod: &Pod,
    around: &Around<'_>,
) -> Result<Vec<Arc<ResourceClaim>>, String> {
    let mut unreserved = Vec::new();
    if node_name(pod).is_none() {
        return Ok(unreserved); // the scheduler reserves them
    }
    for entry in entries(pod) {
        let known = ClaimName::of(pod, entry);
        let Some(name) = known.name() else { continue };
        let Some(claim) = (around.claim)(name) else { break };
        if !known.is(&claim, pod) {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let pod = pod.metadata.name.as_deref().unwrap_or_default();
            return Err(format!(
                "ResourceClaim {namespace}/{name} was not created for Pod {namespace}/{pod} (Pod is \
                 not owner)"
            ));
        }
        if is_allocated(&claim) && !is_reserved_for(&claim, pod) {
            unreserved.push(claim);
        }
    }
    Ok(unreserved)
}

/// A claim that is reserved for a Pod as well.
pub(super) fn reserved(claim: &ResourceClaim, pod: &Pod) -> ResourceClaim {
    let mut reserved = claim.clone();
    let status = reserved.status.get_or_insert_default();
    status.reserved_for.get_or_insert_default().push(ResourceClaimConsumerReference {
        api_group: None,
        resource: "pods".into(),
        name: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
    });
    reserved
}
