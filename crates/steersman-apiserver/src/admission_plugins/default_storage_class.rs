//! `DefaultStorageClass` gives a claim that names no class the default one.

use futures::future::BoxFuture;
use serde_json::Value;

use super::fields::set;
use super::stored;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

const FOLDER: &str = "/registry/storageclasses/";
const DEFAULT: &[&str] = &[
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// The older way to name a class.
pub(super) const ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Fills in the class of a claim.
pub(super) struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.creates("", "persistentvolumeclaims")
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let is_named = !new["spec"]["storageClassName"].is_null()
                || new["metadata"]["annotations"].get(ANNOTATION).is_some();
            if is_named {
                return Ok(false);
            }
            let class = stored::default_class(write.server, FOLDER, DEFAULT).await?;
            Ok(class.is_some_and(|class| set(&mut new["spec"], "storageClassName", class)))
        })
    }
}
