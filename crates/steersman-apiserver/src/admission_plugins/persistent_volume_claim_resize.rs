//! `PersistentVolumeClaimResize` lets claims grow only where somebody can let their volume grow.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use steersman_rules::quantity::Quantity;

use super::default_storage_class::ANNOTATION;
use super::fields::text;
use super::stored;
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

/// Refuses larger claims whose class does not let volumes grow.
pub(super) struct PersistentVolumeClaimResize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StorageClass {
    #[serde(default)]
    allow_volume_expansion: Option<bool>,
}

impl Plugin for PersistentVolumeClaimResize {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.operation == Operation::Update && write.is_of("", "persistentvolumeclaims")
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some((new, old)) = new.zip(old) else { return Ok(()) };
            if size(new) <= size(old) {
                return Ok(());
            }
            if old["status"]["phase"] != "Bound" {
                let why = "Only bound persistent volume claims can be expanded";
                return Err(write.forbidden(new, why));
            }
            if may_grow(&write, new, old).await? {
                return Ok(());
            }
            let why = "only dynamically provisioned pvc can be resized and the storageclass that \
                       provisions the pvc must support resize";
            Err(write.forbidden(new, why))
        })
    }
}

fn size(claim: &Value) -> Quantity {
    Quantity::of(&claim["spec"]["resources"]["requests"]["storage"]).unwrap_or(Quantity::ZERO)
}

async fn may_grow(write: &Attributes<'_>, new: &Value, old: &Value) -> Result<bool> {
    let class = class(new);
    if class.is_empty() || class != self::class(old) {
        return Ok(false);
    }
    let key = format!("/registry/storageclasses/{class}");
    let class: Option<StorageClass> = stored::known(write.server, &key).await?;
    Ok(class.is_some_and(|class| class.allow_volume_expansion == Some(true)))
}

/// The class of a claim; empty where it has none.
fn class(claim: &Value) -> &str {
    let annotated = claim["metadata"]["annotations"].get(ANNOTATION);
    text(annotated.unwrap_or(&claim["spec"]["storageClassName"]))
}
