//! A provisioner that needs nothing: it makes volumes that are directories of a node, as the ones of
//! kind and k3s do, and on simulated nodes nobody looks into them.
//!
//! It stands outside of Kubernetes' controllers as any other provisioner does: the binder asks it by
//! an annotation of the claim, and binds what it makes. It takes away the volumes that it made when
//! they are released, and lets them grow.

mod delete;
mod plan;
mod provision;
mod resize;
mod resize_plan;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::json;
use steersman::{Client, Controller, ObjectKey, Result};

use crate::claims::claim_keys;

/// The name under which classes ask for volumes.
pub const PROVISIONER: &str = "steersman.dev/local-path";
/// The controller that provisions, under whose name the other two are chosen.
pub(crate) const NAME: &str = "local-path-provisioner";
/// Takes volumes away.
pub(crate) const DELETER: &str = "local-path-deleter";
/// Lets volumes grow.
pub(crate) const RESIZER: &str = "local-path-resizer";

/// The class `standard`, the default one: as in kind, its volumes are chosen when a Pod is scheduled
/// that uses them, and go with their claims. They can grow, which those of kind cannot.
pub fn standard_class() -> StorageClass {
    let class = json!({
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    });
    serde_json::from_value(class).expect("it is a class")
}

/// Makes the class `standard`, so that claims that name none get it. To be called before somebody can
/// create one. A class that is there already stays as it is.
///
/// # Errors
///
/// If it cannot be read or created.
pub async fn provide_standard_class(client: &Client) -> Result<()> {
    let class = standard_class();
    if client.get::<StorageClass>(ObjectKey::of(&class)).await?.is_some() {
        return Ok(());
    }
    match client.create(&class).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}

/// The provisioner, all parts of it.
pub(crate) fn controllers() -> [Controller; 3] {
    [provisioner(), deleter(), resizer()]
}

fn provisioner() -> Controller {
    Controller::of::<PersistentVolumeClaim>()
        .named(NAME)
        .only(plan::asks)
        .reads::<Node>()
        .reads::<StorageClass>()
        .reconcile(provision::reconcile)
}

fn deleter() -> Controller {
    Controller::of::<PersistentVolume>()
        .named(DELETER)
        .only(plan::is_over)
        .reconcile(delete::reconcile)
}

fn resizer() -> Controller {
    Controller::of::<PersistentVolumeClaim>()
        .named(RESIZER)
        .only(resize_plan::wants_more)
        .watches_referenced::<PersistentVolume, _>(|claim: &PersistentVolumeClaim| {
            claim.spec.as_ref()?.volume_name.clone()
        })
        .watches(|pod: &Pod| if resize_plan::runs(pod) { claim_keys(pod) } else { Vec::new() })
        .reconcile(resize::reconcile)
}
