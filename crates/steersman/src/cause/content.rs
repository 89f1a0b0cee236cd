//! Which fields of an object changed, where its generation does not tell: a Secret, a ConfigMap or
//! a Role has none. Only names are told, never what is in them.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::change::Parts;
use crate::cache::{Item, Untyped};
use crate::codec::EncodeErased;

/// The fields beside the metadata, each as JSON.
type Fields = BTreeMap<String, Box<RawValue>>;

/// The fields in which two versions of an object differ; all of it if one cannot be read.
pub(super) fn difference(
    old: &Item<Untyped>,
    new: &Item<Untyped>,
    encode: Option<EncodeErased>,
) -> Parts {
    let (Some(old), Some(new)) = (fields(old, encode), fields(new, encode)) else {
        return Parts::CONTENT;
    };
    let changed =
        |name: &&String| old.get(*name).map(|it| it.get()) != new.get(*name).map(|it| it.get());
    let names = old.keys().chain(new.keys()).filter(changed);
    names.fold(Parts::default(), |parts, name| parts.and(Parts::of(name)))
}

fn fields(item: &Item<Untyped>, encode: Option<EncodeErased>) -> Option<Fields> {
    let mut fields: Fields = match item.view() {
        Some(fields) => fields,
        None => serde_json::from_slice(&encode?(&*item.erased()?)?).ok()?,
    };
    for elsewhere in ["apiVersion", "kind", "metadata"] {
        fields.remove(elsewhere);
    }
    Some(fields)
}
