//! Brings the claims of one Pod to where they should be.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Error, Next, ObjectKey, Reconciler, Result};

use super::metrics::ClaimMetrics;
use super::template::{Around, Step, reserved, step, to_reserve};
use super::{COMPONENT, wants_admin_access};
use crate::namespace::namespace_terminating;
use crate::pod_resource_claims::{ClaimName, entries};

/// The name under which the status of Pods is written.
const FIELD_MANAGER: &str = "ResourceClaimController";

/// Makes the claims of Pods.
pub(super) struct Pods {
    pub(super) metrics: ClaimMetrics,
}

impl Reconciler<Pod> for Pods {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let claims = ctx.cache::<ResourceClaim>()?;
        let templates = ctx.cache::<ResourceClaimTemplate>()?;
        let owned = claims.by_owner(pod.metadata.uid.as_deref().unwrap_or_default());
        let around = Around {
            claim: &|name: &str| claims.get(&ObjectKey::namespaced(namespace.as_str(), name)),
            template: &|name: &str| templates.get(&ObjectKey::namespaced(namespace.as_str(), name)),
            owned: &owned,
        };
        let mut new = BTreeMap::new();
        for entry in entries(&pod) {
            match self.provide(&pod, entry, &around, &ctx).await {
                Ok(Some(claim)) => drop(new.insert(entry.name.clone(), claim)),
                Ok(None) => {}
                Err(error) if namespace_terminating(&error) => return Ok(Next::Settled),
                Err(error) => {
                    let note = format!("PodResourceClaim {}: {error}", entry.name);
                    let event = NewEvent::warning("FailedResourceClaimCreation").note(note);
                    ctx.recorder().reporting(COMPONENT).event(Reference::of(&*pod), event);
                    return Err(error);
                }
            }
        }
        if !new.is_empty() {
            tell(&pod, &new, &ctx).await?;
            return Ok(Next::Settled); // the Pod, once it says so, comes by again
        }
        for claim in to_reserve(&pod, &around).map_err(Error::message)? {
            ctx.live().update_status(&reserved(&claim, &pod)).await?;
        }
        Ok(Next::Settled)
    }
}

impl Pods {
    /// Sees to the claim of one entry. Gives its name if the Pod's status does not have it.
    async fn provide(
        &self,
        pod: &Pod,
        entry: &PodResourceClaim,
        around: &Around<'_>,
        ctx: &Context<Pod>,
    ) -> Result<Option<String>> {
        let step = step(pod, entry, around).map_err(|error| Error::message(error.to_string()))?;
        let claim = match step {
            Step::Settled => return Ok(None),
            Step::Tell(name) => return Ok(Some(name)),
            Step::Create(claim) => claim,
        };
        let created = ctx.live().create(&*claim).await;
        self.metrics.created(wants_admin_access(&claim), created.is_ok());
        match created {
            Ok(created) => Ok(created.metadata.name),
            Err(error) if namespace_terminating(&error) => Err(error),
            // The name is not known yet, and Kubernetes shows it all the same.
            Err(error) => Err(Error::message(format!("create ResourceClaim : {error}"))),
        }
    }
}

/// Says in a Pod's status what its claims are called: those that it knows, and the new ones.
async fn tell(pod: &Pod, new: &BTreeMap<String, String>, ctx: &Context<Pod>) -> Result<()> {
    let known = |entry: &PodResourceClaim| match ClaimName::of(pod, entry) {
        ClaimName::Generated(name) => Some(name.to_owned()),
        _ => None,
    };
    let status = |entry: &PodResourceClaim| -> Option<Value> {
        let claim = new.get(&entry.name).cloned().or_else(|| known(entry))?;
        Some(json!({"name": entry.name, "resourceClaimName": claim}))
    };
    let statuses: Vec<Value> = entries(pod).iter().filter_map(status).collect();
    let patch = Patch::Apply(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace,
                     "uid": pod.metadata.uid},
        "status": {"resourceClaimStatuses": statuses},
    }));
    let client = ctx.live().with_field_manager(FIELD_MANAGER);
    client.patch_status::<Pod, _>(ctx.key().clone(), &patch).await.map(drop)
}
