//! Custom resource definitions: objects that change what is served.
//!
//! A definition is an object like any other. When it is written its status says whether its
//! names are accepted, and when the write is done, before the client hears of it, the registry
//! serves what it says. When it is deleted, its instances go first, then the definition, then
//! the resource.
//!
//! Other servers over the same store write definitions, too: [`crate::follow`] tells of them, and
//! whoever is about to write one looks at them all first.

mod effects;
mod ending;
mod names;
mod resting;
mod serving;
mod status;

use serde_json::Value;
use steersman_rules::metadata;

pub(crate) use effects::{Definitions, Instances};
pub(crate) use ending::{needs_care, tend};
pub(crate) use resting::used;
pub(crate) use serving::{folder, followed, is_news, refresh};

/// Holds a definition until its instances are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// Whether a definition is being deleted and held for its instances.
fn is_held(definition: &Value) -> bool {
    metadata::is_deleting(definition)
        && metadata::finalizers(definition).iter().any(|finalizer| finalizer == CLEANUP)
}
