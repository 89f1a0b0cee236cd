//! What a claim of storage uses: itself and the size that it asks for, altogether and by class.

use serde_json::Value;

use super::amounts::Amounts;
use super::measure::Measure;
use super::scopes::Traits;
use crate::quantity::Quantity;
use crate::rules::document::text;

const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";

/// What stands between the name of a storage class and what is counted of it.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Where old claims name their class.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Whether claims count under this name.
pub(super) fn counts(name: &str) -> bool {
    let of_class = name.rsplit_once(OF_CLASS).map(|(_, counted)| counted);
    let counted = of_class.unwrap_or(name);
    name == "count/persistentvolumeclaims" || [CLAIMS, STORAGE].contains(&counted)
}

pub(super) fn measure(claim: &Value) -> Measure {
    let mut used = Amounts::default();
    used.set("count/persistentvolumeclaims", Quantity::ONE);
    let class = class(claim);
    let mut count = |what: &str, amount: Quantity| {
        used.set(what, amount);
        if !class.is_empty() {
            used.set(format!("{class}{OF_CLASS}{what}"), amount);
        }
    };
    count(CLAIMS, Quantity::ONE);
    if let Some(size) = size(claim) {
        count(STORAGE, size);
    }
    let traits = Traits::VolumeClaim { attributes_classes: attributes_classes(claim) };
    Measure { traits, ..Measure::stored(used) }
}

fn class(claim: &Value) -> &str {
    let annotated = claim["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
    annotated.unwrap_or_else(|| text(&claim["spec"]["storageClassName"]))
}

/// What is asked for, or what was set aside where that is more: a volume that was to grow and
/// failed to may have had more than is asked for now. In whole bytes, as quotas are.
fn size(claim: &Value) -> Option<Quantity> {
    let asked = Quantity::of(&claim["spec"]["resources"]["requests"]["storage"])?;
    let asked = asked.rounded_to_units();
    let allocated = Quantity::of(&claim["status"]["allocatedResources"]["storage"]);
    let more = allocated.filter(|allocated| *allocated > asked);
    Some(more.map_or(asked, Quantity::rounded_to_units))
}

fn attributes_classes(claim: &Value) -> Vec<String> {
    let status = &claim["status"];
    let named = [
        &claim["spec"]["volumeAttributesClassName"],
        &status["currentVolumeAttributesClassName"],
        &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ];
    let mut classes: Vec<String> = named.into_iter().map(|name| text(name).to_owned()).collect();
    classes.retain(|class| !class.is_empty());
    classes.sort();
    classes.dedup();
    classes
}
