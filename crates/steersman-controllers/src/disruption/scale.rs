//! How many Pods there should be, by what the controllers of Pods ask for.
//!
//! Deployments, ReplicaSets, StatefulSets and ReplicationControllers are known; of any other kind
//! the `scale` subresource is asked.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use steersman::object::controller_of;
use steersman::{Context, Error, Object, Result};

use crate::discovery;
use crate::pod_control::name_of;

/// What the controllers of some Pods ask for together.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) replicas: i32,
    /// Pods that nobody controls.
    pub(super) unmanaged: usize,
}

/// Asks the controllers of these Pods, each once.
pub(super) async fn asked(pods: &[Arc<Pod>], ctx: &Context<PodDisruptionBudget>) -> Result<Asked> {
    let mut scales: HashMap<String, i32> = HashMap::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut unmanaged = 0;
    for pod in pods {
        let Some(controller) = controller_of(&pod.metadata) else {
            unmanaged += 1;
            continue;
        };
        if seen.contains(&controller.uid.as_str()) {
            continue;
        }
        seen.push(&controller.uid);
        let known = match known(controller, ctx)? {
            None => scale_of(controller, ctx).await?,
            known => known,
        };
        let (uid, replicas) = known.ok_or_else(|| {
            Error::message(format!("found no controllers for pod {:?}", name_of(pod)))
        })?;
        scales.insert(uid, replicas);
    }
    let replicas = scales.into_values().fold(0, i32::saturating_add);
    Ok(Asked { replicas, unmanaged })
}

/// The uid and size of a controller of a kind that is known here.
fn known(
    controller: &OwnerReference,
    ctx: &Context<PodDisruptionBudget>,
) -> Result<Option<(String, i32)>> {
    let group = controller.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let of_apps = matches!(group, "apps" | "extensions");
    let size = |uid: &str, replicas: Option<i32>| Some((uid.to_owned(), replicas.unwrap_or(1)));
    Ok(match controller.kind.as_str() {
        "ReplicationController" if group.is_empty() => {
            let found = find::<ReplicationController>(controller, ctx)?;
            found.and_then(|rc| size(&controller.uid, rc.spec.as_ref()?.replicas))
        }
        "ReplicaSet" if of_apps => {
            let Some(set) = find::<ReplicaSet>(controller, ctx)? else { return Ok(None) };
            let owner = controller_of(&set.metadata).filter(|owner| owner.kind == "Deployment");
            match owner {
                Some(owner) => find::<Deployment>(owner, ctx)?
                    .and_then(|deployment| size(&owner.uid, deployment.spec.as_ref()?.replicas)),
                None => size(&controller.uid, set.spec.as_ref().and_then(|spec| spec.replicas)),
            }
        }
        "StatefulSet" if of_apps => {
            let found = find::<StatefulSet>(controller, ctx)?;
            found.and_then(|set| size(&controller.uid, set.spec.as_ref()?.replicas))
        }
        _ => None,
    })
}

/// Exactly the object that is referred to.
fn find<K: Object>(
    owner: &OwnerReference,
    ctx: &Context<PodDisruptionBudget>,
) -> Result<Option<Arc<K>>> {
    let same = |meta: &ObjectMeta| meta.uid.as_ref() == Some(&owner.uid);
    Ok(ctx.get::<K>(&owner.name)?.filter(|object| same(object.meta())))
}

/// The uid and size of a controller of any kind, by its `scale` subresource.
async fn scale_of(
    controller: &OwnerReference,
    ctx: &Context<PodDisruptionBudget>,
) -> Result<Option<(String, i32)>> {
    let client = ctx.live().kube();
    let list = match controller.api_version.contains('/') {
        true => client.list_api_group_resources(&controller.api_version).await,
        false => client.list_core_api_resources(&controller.api_version).await,
    };
    let resources = list.map_err(|error| Error::message(discovery::reason(&error)))?.resources;
    let plural = resources.iter().find(|r| r.kind == controller.kind && !r.name.contains('/'));
    let Some(plural) = plural.map(|resource| resource.name.as_str()) else {
        return Err(no_match(controller));
    };
    let group = controller.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    if !resources.iter().any(|resource| resource.name == format!("{plural}/scale")) {
        let what = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let why = format!("{what} does not implement the scale subresource");
        return Err(Error::message(why));
    }
    let root = if group.is_empty() { "api" } else { "apis" };
    let namespace = ctx.key().namespace.as_deref().unwrap_or_default();
    let (version, name) = (&controller.api_version, &controller.name);
    let path = format!("/{root}/{version}/namespaces/{namespace}/{plural}/{name}/scale");
    let request = http::Request::get(path).body(Vec::new()).map_err(Error::new)?;
    let scale: Scale = match client.request(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        scale => scale.map_err(Error::new)?,
    };
    let same = scale.metadata.uid.as_ref() == Some(&controller.uid);
    let replicas = scale.spec.and_then(|spec| spec.replicas).unwrap_or(0);
    Ok(same.then(|| (controller.uid.clone(), replicas)))
}

fn no_match(controller: &OwnerReference) -> Error {
    let OwnerReference { api_version, kind, .. } = controller;
    Error::message(format!("no matches for kind {kind:?} in version {api_version:?}"))
}
