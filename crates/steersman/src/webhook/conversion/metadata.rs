//! Metadata on its way through a conversion.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

/// What a converter may change.
const CHANGEABLE: [&str; 2] = ["labels", "annotations"];

/// Gives `made` the metadata of the object that it was made of. A converter that copied them
/// decides about labels and annotations; of one that made new ones, as `new(name, spec)` does,
/// labels and annotations are added.
pub(super) fn carry(source: &ObjectMeta, made: &mut ObjectMeta) {
    let labels = made.labels.take();
    let annotations = made.annotations.take();
    let bare = ObjectMeta { labels: None, annotations: None, ..source.clone() };
    if *made == bare {
        (made.labels, made.annotations) = (labels, annotations);
        return;
    }
    *made = source.clone();
    extend(&mut made.labels, labels);
    extend(&mut made.annotations, annotations);
}

type Pairs = Option<BTreeMap<String, String>>;

fn extend(present: &mut Pairs, added: Pairs) {
    if let Some(added) = added {
        present.get_or_insert_default().extend(added);
    }
}

/// `converted` with the metadata that were sent, to the letter, but for what may change.
pub(super) fn restored(sent: &Value, mut converted: Value) -> Value {
    let made = converted.get_mut("metadata").map(Value::take).unwrap_or_default();
    let mut metadata = sent.get("metadata").cloned().unwrap_or_else(|| Map::new().into());
    if let Some(fields) = metadata.as_object_mut() {
        for key in CHANGEABLE {
            match made.get(key) {
                Some(value) => fields.insert(key.to_owned(), value.clone()),
                None => fields.remove(key),
            };
        }
    }
    converted["metadata"] = metadata;
    converted
}
