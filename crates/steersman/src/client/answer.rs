//! What a server answers, and how it becomes an object again.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, ObjectMeta, OwnerReference, Time};
use kube::Error as KubeError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::observer::Observed;
use crate::codec::{self, Codec};
use crate::error::{Error, Result};
use crate::object::{AnyObject, ErasedObject};

/// The answer to a request about one object.
#[must_use = "whoever observes writes is notified when the answer is read"]
pub(crate) struct Answer<'a> {
    json: String,
    /// The write that it answers, if somebody observes that.
    observed: Option<Observed<'a>>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(json: String, observed: Option<Observed<'a>>) -> Self {
        Self { json, observed }
    }

    /// The object.
    #[inline(never)]
    pub(crate) fn object<K: AnyObject>(self) -> Result<K> {
        let object: K = self.decoded()?;
        self.observe(object.meta());
        Ok(object)
    }

    /// The object, of a type that has been forgotten.
    pub(crate) fn erased(self, codec: Codec) -> Result<Arc<dyn ErasedObject>> {
        let object = codec.decode(&self.json).map_err(|error| unreadable(&self.json, error))?;
        self.observe(object.metadata());
        Ok(object)
    }

    /// The object's metadata, if nothing else of it is wanted; without who manages which field,
    /// which is most of it, and nobody's business here.
    pub(crate) fn metadata(self) -> Result<ObjectMeta> {
        let head = match metadata_in(&self.json) {
            // What comes after them, which is most of an object, is not read, so mistakes in it are not
            // found.
            Some(begin) => codec::decode_first(begin),
            None => codec::decode(&self.json).map(|Head { metadata }| metadata),
        };
        let head: HeadMeta = head.map_err(|error| unreadable(&self.json, error))?;
        let metadata = ObjectMeta::from(head);
        self.observe(&metadata);
        Ok(metadata)
    }

    /// The object's status; null if it has none, or cannot be read.
    pub(crate) fn status(&self) -> Value {
        #[derive(Deserialize)]
        struct Reported {
            #[serde(default)]
            status: Value,
        }
        codec::decode(&self.json).map_or(Value::Null, |Reported { status }| status)
    }

    /// What was answered, which is not an object of the kind.
    pub(crate) fn other<T: DeserializeOwned>(self) -> Result<T> {
        self.decoded()
    }

    fn decoded<T: DeserializeOwned>(&self) -> Result<T> {
        codec::decode(&self.json).map_err(|error| unreadable(&self.json, error))
    }

    fn observe(&self, meta: &ObjectMeta) {
        if let Some(observed) = &self.observed {
            observed.answered(meta, &self.json);
        }
    }
}

/// The object that was answered, if there is one.
pub(crate) fn found<K: AnyObject>(answer: Option<Answer<'_>>) -> Result<Option<K>> {
    match answer {
        Some(answer) => answer.object().map(Some),
        None => Ok(None),
    }
}

/// Where the metadata of an object begin, if nothing but its type comes before them, as servers write
/// it.
fn metadata_in(json: &str) -> Option<&str> {
    let mut rest = json.strip_prefix('{')?;
    loop {
        if let Some(metadata) = rest.strip_prefix(r#""metadata":"#) {
            return Some(metadata).filter(|metadata| metadata.starts_with('{'));
        }
        let type_ = [r#""kind":""#, r#""apiVersion":""#];
        let value = type_.iter().find_map(|key| rest.strip_prefix(key))?;
        let (value, more) = value.split_once('"')?;
        rest = more.strip_prefix(',').filter(|_| !value.contains('\\'))?;
    }
}

/// What all objects have.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: HeadMeta,
}

/// Metadata without `managedFields`, which are passed over and not decoded.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMeta {
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    generate_name: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    uid: Option<String>,
}

impl From<HeadMeta> for ObjectMeta {
    fn from(head: HeadMeta) -> Self {
        Self {
            annotations: head.annotations,
            creation_timestamp: head.creation_timestamp,
            deletion_grace_period_seconds: head.deletion_grace_period_seconds,
            deletion_timestamp: head.deletion_timestamp,
            finalizers: head.finalizers,
            generate_name: head.generate_name,
            generation: head.generation,
            labels: head.labels,
            name: head.name,
            namespace: head.namespace,
            owner_references: head.owner_references,
            resource_version: head.resource_version,
            uid: head.uid,
            ..Self::default()
        }
    }
}

/// The answer to a list.
pub(super) struct ListAnswer {
    json: String,
}

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, deserialize_with = "none_if_null")]
    items: Vec<&'a RawValue>,
}

impl ListAnswer {
    pub(super) fn new(json: String) -> Self {
        Self { json }
    }

    /// The objects, and where the next page begins.
    #[inline(never)]
    pub(super) fn objects<K: AnyObject>(self) -> Result<(Vec<K>, Option<String>)> {
        let list = self.raw()?;
        let mut objects = Vec::with_capacity(list.items.len());
        for item in list.items {
            let item = item.get();
            objects.push(codec::decode(item).map_err(|error| unreadable(item, error))?);
        }
        Ok((objects, list.metadata.continue_.filter(|token| !token.is_empty())))
    }

    fn raw(&self) -> Result<RawList<'_>> {
        serde_json::from_str(&self.json).map_err(|error| unreadable(&self.json, error))
    }
}

fn none_if_null<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<&'de RawValue>, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// The error of an answer that is not what it should be.
#[cold]
pub(super) fn unreadable(json: &str, error: serde_json::Error) -> Error {
    tracing::warn!(%error, json, "answer of the server cannot be decoded");
    KubeError::SerdeError(error).into()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn names(json: &str) -> Result<(Vec<String>, Option<String>)> {
        let (maps, token) = ListAnswer::new(json.to_owned()).objects::<ConfigMap>()?;
        Ok((maps.into_iter().filter_map(|map| map.metadata.name).collect(), token))
    }

    #[test]
    fn a_list_gives_its_objects_and_where_the_next_page_begins() {
        let page = r#"{"kind": "ConfigMapList", "apiVersion": "v1",
            "metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}]}"#;
        assert_eq!(names(page).unwrap(), (vec!["a".to_owned()], Some("more".to_owned())));
        let last = r#"{"metadata": {"continue": ""}, "items": []}"#;
        assert_eq!(names(last).unwrap(), (Vec::new(), None));
        assert_eq!(names(r#"{"items": null}"#).unwrap(), (Vec::new(), None));
    }

    #[test]
    fn metadata_is_all_but_who_manages_it() {
        let mut metadata = serde_json::json!({
            "annotations": {"a": "1"}, "creationTimestamp": "2030-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 30, "deletionTimestamp": "2030-01-01T00:00:30Z",
            "finalizers": ["f"], "generateName": "a-", "generation": 2, "labels": {"l": "1"},
            "name": "a-1", "namespace": "default", "resourceVersion": "7", "uid": "u",
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "w"}],
        });
        let expected: ObjectMeta = serde_json::from_value(metadata.clone()).unwrap();
        metadata["managedFields"] = serde_json::json!([{"manager": "m", "fieldsV1": {"f:a": {}}}]);
        let object = serde_json::json!({"metadata": metadata, "spec": {}}).to_string();
        assert_eq!(Answer::new(object, None).metadata().unwrap(), expected);
    }

    #[test]
    fn metadata_are_found_wherever_they_stand() {
        let name = |json: &str| Answer::new(json.to_owned(), None).metadata().unwrap().name;
        let inner = r#"{"name":"outer","annotations":{"a":"\"metadata\":{\"name\":\"inner\"}"}}"#;
        for json in [
            format!(r#"{{"kind":"A","apiVersion":"v1","metadata":{inner},"spec":{{}}}}"#),
            format!(r#"{{"apiVersion":"v1","kind":"A","metadata":{inner}}}"#),
            format!(r#"{{"metadata":{inner}}}"#),
            format!(r#"{{"spec":{{"metadata":{{"name":"inner"}}}},"metadata":{inner}}}"#),
            format!(r#"{{ "kind": "A", "metadata": {inner} }}"#),
            format!(r#"{{"kind":"\"metadata\":{{","metadata":{inner}}}"#),
        ] {
            assert_eq!(name(&json).as_deref(), Some("outer"), "{json}");
        }
        assert_eq!(name(r#"{"kind":"A","metadata":{}}"#), None);
        // What comes after them is not looked at.
        assert_eq!(name(r#"{"kind":"A","metadata":{"name":"a"},"spec":{"#).as_deref(), Some("a"));
        assert!(Answer::new(r#"{"kind":"A","metadata":{"#.to_owned(), None).metadata().is_err());
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        assert!(names(r#"{"metadata": {"name": "a"}}"#).is_err());
        assert!(names(r#"{"items": [{"metadata": {"name": 1}}]}"#).is_err());
    }
}
