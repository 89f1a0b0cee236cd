//! From what the server sent to what the cache holds.
//!
//! In the compact form only the metadata is read; the object is decoded when somebody wants it.
//! Each object gets its own memory, so that none keeps the page of its list alive.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::compact::{Compact, Identity, Packed};
use super::form::Form;
use super::item::{Item, Untyped};
use crate::codec::{self, Codec};
use crate::object::{Cacheable, ErasedObject, ObjectKey};
use crate::reflector::{Decode, DecodeError, Keyed};

/// Changes an object before it is stored.
#[derive(Clone)]
pub(crate) struct Transform(Arc<Changed>);

/// The object that this JSON is, changed; also as JSON if that is wanted.
type Changed =
    dyn Fn(&str, bool) -> serde_json::Result<(Arc<dyn ErasedObject>, Option<String>)> + Send + Sync;

impl Transform {
    /// Calls `change` with every object on its way into the cache, to drop what nobody reads.
    pub(crate) fn new<K: Cacheable + Serialize>(
        change: impl Fn(&mut K) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |json, encoded| {
            let mut object: K = codec::decode(json)?;
            change(&mut object);
            let json = encoded.then(|| codec::encode_text(&object)).transpose()?;
            Ok((Arc::new(object), json))
        }))
    }
}

/// What stays decoded of the compact objects of a cache.
#[derive(Clone)]
pub(crate) struct Warmth(Arc<Compact>);

impl Warmth {
    /// How many objects there are to look at.
    pub(crate) fn len(&self) -> usize {
        self.0.recent().len()
    }

    /// Looks at so many of them and lets those go that were not used since the last time.
    pub(crate) fn cool(&self, count: usize) {
        self.0.recent().cool(count);
    }
}

/// Turns what the server sent into items of one cache.
pub(crate) struct Decoder {
    codec: Codec,
    /// `None` if objects are held typed.
    pub(super) compact: Option<Arc<Compact>>,
    pub(crate) transform: Option<Transform>,
    pub(crate) strip_managed_fields: bool,
    shared: Shared,
}

impl Decoder {
    pub(crate) fn new(codec: Codec, form: Form) -> Self {
        let compact = match form {
            Form::Typed => None,
            Form::Compact { recent } => Some(Arc::new(Compact::new(codec, recent))),
        };
        Self {
            codec,
            compact,
            transform: None,
            strip_managed_fields: false,
            shared: Shared::default(),
        }
    }

    /// Says where objects are asked for again that turn out to be undecodable when they are read.
    pub(crate) fn reread_by(&self, requests: mpsc::Sender<ObjectKey>) {
        if let Some(compact) = &self.compact {
            compact.reread_by(requests);
        }
    }

    /// What stays decoded of compact objects, for whoever lets go of it after a while.
    pub(crate) fn warmth(&self) -> Option<Warmth> {
        self.compact.clone().map(Warmth)
    }

    /// How many compact objects could not be decoded when they were read.
    pub(crate) fn undecodable(&self) -> impl Fn() -> u64 + Send + Sync + use<> {
        let compact = self.compact.clone();
        move || compact.as_ref().map_or(0, |compact| compact.undecodable())
    }

    /// The item that this JSON is.
    pub(crate) fn decode(&mut self, json: &str) -> serde_json::Result<Item<Untyped>> {
        self.read(json, false)
    }

    /// The same. `whole` also decodes what is held compactly, and keeps it decoded.
    fn read(&mut self, json: &str, whole: bool) -> serde_json::Result<Item<Untyped>> {
        let mut json = match self.strip_managed_fields {
            true => without_managed_fields(json)?,
            false => Cow::Borrowed(json),
        };
        let Some(compact) = self.compact.clone() else {
            let object = match &self.transform {
                Some(Transform(changed)) => changed(&json, false)?.0,
                None => self.codec.decode(&json)?,
            };
            return Ok(Item::held_typed(object, json.len()));
        };
        let mut object = None;
        if let Some(Transform(changed)) = &self.transform {
            let (changed, text) = changed(&json, true)?;
            object = Some(changed);
            json = Cow::Owned(text.unwrap_or_default());
        } else if whole {
            object = Some(self.codec.decode(&json)?);
        }
        let (key, identity) = match &object {
            Some(object) => self.shared.identity(&HeadMeta::of(object.metadata())),
            None => self.shared.identity(&serde_json::from_str::<Head<'_>>(&json)?.metadata),
        };
        let packed = Packed::new(&key, identity, json.as_bytes(), compact);
        let item = Item::held_compact(key, packed);
        if let Some(object) = object.filter(|_| whole) {
            item.keep_decoded(object);
        }
        Ok(item)
    }
}

impl Decode for Decoder {
    type Output = Item<Untyped>;

    fn decode(&mut self, json: &str) -> Result<Item<Untyped>, DecodeError> {
        Ok(Self::decode(self, json)?)
    }

    /// Decodes the object at once: if that fails, the last state that could be read stays. It is
    /// kept decoded, since whoever gets the change wants to see it.
    fn decode_change(&mut self, json: &str) -> Result<Item<Untyped>, DecodeError> {
        Ok(self.read(json, true)?)
    }
}

impl Keyed for Item<Untyped> {
    fn key(&self) -> ObjectKey {
        Item::key(self).clone()
    }

    fn resource_version(&self) -> Option<&str> {
        Item::resource_version(self)
    }
}

/// Strings that many objects have in common, each kept once.
#[derive(Default)]
struct Shared {
    strings: HashSet<Arc<str>>,
    /// Strings asked for since those that no object has any more were dropped.
    asked: usize,
}

/// At least so many strings are asked for between two sweeps.
const SWEEP_MIN: usize = 4096;

impl Shared {
    fn string(&mut self, text: &str) -> Arc<str> {
        self.asked += 1;
        if self.asked > SWEEP_MIN.max(2 * self.strings.len()) {
            self.strings.retain(|string| Arc::strong_count(string) > 1);
            self.strings.shrink_to_fit();
            self.asked = 0;
        }
        if let Some(known) = self.strings.get(text) {
            return Arc::clone(known);
        }
        let string: Arc<str> = text.into();
        self.strings.insert(Arc::clone(&string));
        string
    }

    fn identity(&mut self, meta: &HeadMeta<'_>) -> (ObjectKey, Identity) {
        let namespace = meta.namespace.as_ref().filter(|namespace| !namespace.0.is_empty());
        let key = ObjectKey {
            namespace: namespace.map(|namespace| self.string(&namespace.0)),
            name: meta.name.as_ref().map_or("", |name| &name.0).into(),
        };
        let labels = meta.labels.iter().flatten();
        let labels = labels.map(|(name, value)| (self.string(&name.0), self.string(&value.0)));
        let labels = labels.collect();
        let owners = meta.owner_references.iter().flatten();
        let owner_uids = owners.map(|owner| self.string(&owner.uid.0)).collect();
        let uid = meta.uid.as_ref().map(|uid| uid.0.as_ref().into());
        let resource_version =
            meta.resource_version.as_ref().map(|version| version.0.as_ref().into());
        (key, Identity { uid, resource_version, labels, owner_uids })
    }
}

/// As much of an object as is kept at hand.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    metadata: HeadMeta<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct HeadMeta<'a> {
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    name: Option<Text<'a>>,
    uid: Option<Text<'a>>,
    resource_version: Option<Text<'a>>,
    labels: Option<BTreeMap<Text<'a>, Text<'a>>>,
    owner_references: Option<Vec<Owner<'a>>>,
}

impl<'a> HeadMeta<'a> {
    /// Of an object that is decoded already.
    fn of(meta: &'a ObjectMeta) -> Self {
        let text = |text: &'a Option<String>| text.as_deref().map(Text::from);
        let labels = |labels: &'a BTreeMap<String, String>| {
            labels.iter().map(|(name, value)| (Text::from(&**name), Text::from(&**value))).collect()
        };
        let owners = |owners: &'a Vec<OwnerReference>| {
            owners.iter().map(|owner| Owner { uid: Text::from(&*owner.uid) }).collect()
        };
        Self {
            namespace: text(&meta.namespace),
            name: text(&meta.name),
            uid: text(&meta.uid),
            resource_version: text(&meta.resource_version),
            labels: meta.labels.as_ref().map(labels),
            owner_references: meta.owner_references.as_ref().map(owners),
        }
    }
}

#[derive(Deserialize)]
struct Owner<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
}

/// A string that is borrowed where it has no escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// The same object without its managedFields.
fn without_managed_fields(json: &str) -> serde_json::Result<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Option<Managed<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Managed<'a> {
        #[serde(borrow)]
        managed_fields: Option<&'a RawValue>,
    }
    let object: Object<'_> = serde_json::from_str(json)?;
    let Some(fields) = object.metadata.and_then(|metadata| metadata.managed_fields) else {
        return Ok(Cow::Borrowed(json));
    };
    // The value lies inside the text that it was borrowed from.
    let start = fields.get().as_ptr() as usize - json.as_ptr() as usize;
    let before = &json[..start];
    let after = &json[start + fields.get().len()..];
    Ok(Cow::Owned([before, "null", after].concat()))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    fn pod() -> String {
        json!({
            "metadata": {
                "namespace": "default", "name": "web-1", "uid": "u1", "resourceVersion": "7",
                "labels": {"tier": "front", "app": "we\"b"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                                     "name": "web", "uid": "o1"}],
                "managedFields": [{"manager": "kubectl", "operation": "Update"}],
            },
            "spec": {"containers": [{"name": "main"}], "nodeName": "n1"},
        })
        .to_string()
    }

    fn decoder(form: Form) -> Decoder {
        Decoder::new(Codec::of::<Pod>(), form)
    }

    fn both_forms(test: impl Fn(&mut Decoder)) {
        for form in [Form::Typed, Form::Compact { recent: 1 }] {
            test(&mut decoder(form));
        }
    }

    #[test]
    fn an_item_says_the_same_of_its_object_in_both_forms() {
        both_forms(|decoder| {
            let item = decoder.decode(&pod()).unwrap();
            assert_eq!(item.key().to_string(), "default/web-1");
            assert_eq!((item.uid(), item.resource_version()), (Some("u1"), Some("7")));
            assert_eq!(item.labels(), [("app", "we\"b"), ("tier", "front")]);
            assert_eq!((item.label("tier"), item.label("none")), (Some("front"), None));
            assert_eq!(item.held().owner_uids(), ["o1"]);
            assert_eq!(item.meta().unwrap().owner_references.as_ref().unwrap()[0].name, "web");
            let spec = item.cast::<Pod>().object().unwrap().spec.clone().unwrap();
            assert_eq!(spec.node_name.as_deref(), Some("n1"));
        });
    }

    #[test]
    fn a_cache_knows_how_many_bytes_it_holds() {
        both_forms(|decoder| {
            let (mut writer, cache) = super::super::channel::<Pod>();
            let old = pod();
            let new = pod().replace("\"7\"", "\"8\"").replace("n1", "node-1");
            for json in [old, new] {
                let item = decoder.decode(&json).unwrap();
                assert!((1..=json.len() as u64).contains(&item.bytes()));
                writer.apply(vec![item.clone()]);
                assert_eq!((cache.len(), cache.bytes()), (1, item.bytes()));
            }
            writer.delete_key(&ObjectKey::from("default/web-1"), None);
            assert_eq!(cache.bytes(), 0);
        });
    }

    #[test]
    fn managed_fields_can_be_left_out() {
        both_forms(|decoder| {
            let kept = decoder.decode(&pod()).unwrap();
            assert!(kept.meta().unwrap().managed_fields.is_some());
            decoder.strip_managed_fields = true;
            let item = decoder.decode(&pod()).unwrap();
            assert_eq!(item.meta().unwrap().managed_fields, None);
            assert_eq!(
                item.clone().cast::<Pod>().object().unwrap().metadata.uid.as_deref(),
                Some("u1")
            );
        });
    }

    #[test]
    fn a_transform_changes_objects_before_they_are_stored() {
        both_forms(|decoder| {
            decoder.transform = Some(Transform::new(|pod: &mut Pod| pod.spec = None));
            let item = decoder.decode(&pod()).unwrap();
            assert_eq!(item.clone().cast::<Pod>().object().unwrap().spec, None);
            assert_eq!(item.key().to_string(), "default/web-1");
        });
    }

    #[test]
    fn an_object_of_another_shape_is_refused_or_found_out_when_it_is_read() {
        let odd = r#"{"metadata":{"name":"odd"},"spec":{"containers":"none"}}"#;
        assert!(decoder(Form::Typed).decode(odd).is_err());
        let mut compact = decoder(Form::COMPACT);
        let undecodable = compact.undecodable();
        let item = compact.decode(odd).unwrap().cast::<Pod>();
        assert_eq!((item.object(), item.object()), (None, None));
        assert_eq!(undecodable(), 1);
    }

    #[test]
    fn a_change_that_cannot_be_decoded_is_refused_in_both_forms() {
        let odd = r#"{"metadata":{"name":"odd"},"spec":{"containers":"none"}}"#;
        both_forms(|decoder| assert!(decoder.decode_change(odd).is_err()));
        let good = pod();
        both_forms(|decoder| {
            assert!(decoder.decode_change(&good).unwrap().held().decoded().is_some());
        });
    }

    #[test]
    fn a_slim_view_reads_only_what_it_names() {
        #[derive(Deserialize)]
        struct View {
            spec: Placement,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Placement {
            node_name: String,
        }
        let item = decoder(Form::COMPACT).decode(&pod()).unwrap();
        assert_eq!(item.view::<View>().unwrap().spec.node_name, "n1");
    }

    #[test]
    fn strings_that_no_object_has_any_more_are_forgotten() {
        let mut shared = Shared::default();
        let kept = shared.string("kept");
        (0..20_000).for_each(|n| _ = shared.string(&n.to_string()));
        (0..40_000).for_each(|_| _ = shared.string("kept"));
        assert!(shared.strings.len() < 5000, "{}", shared.strings.len());
        assert!(Arc::ptr_eq(&kept, &shared.string("kept")));
    }
}
