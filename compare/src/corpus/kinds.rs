//! The kinds, each with objects to send and the place to send them to.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steersman_rules::kinds;
use steersman_rules::patch::merge_patch;
use steersman_rules::resource::{Resource, Verb};

use crate::step::{Role, Scenario, Step, Tidy};

/// A sound object of every kind, and what makes it wrong.
const EXAMPLES: &str = include_str!("../../../crates/steersman-rules/src/kinds/examples.txt");
/// A full object of every kind.
const SAMPLES: &str = include_str!("../../../crates/steersman-apiserver/tests/it/samples.yaml");
/// What to ask the kinds that are answered and never stored.
const REVIEWS: [(&str, &str); 7] = [
    ("bindings", r#"{"target": {"kind": "Node", "name": "n"}}"#),
    ("selfsubjectreviews", "{}"),
    ("tokenreviews", r#"{"spec": {"token": "wrong"}}"#),
    (
        "localsubjectaccessreviews",
        r#"{"spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}}"#,
    ),
    (
        "selfsubjectaccessreviews",
        r#"{"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}"#,
    ),
    ("selfsubjectrulesreviews", r#"{"spec": {"namespace": "default"}}"#),
    (
        "subjectaccessreviews",
        r#"{"spec": {"user": "u", "nonResourceAttributes": {"verb": "get", "path": "/x"}}}"#,
    ),
];

/// A kind and what there is to send of it.
pub(crate) struct Kind {
    pub(crate) resource: Resource,
    /// The start of the ids of its requests, such as `deployments.apps`.
    pub(crate) id: String,
    /// A small sound object.
    pub(crate) example: Value,
    /// A full one.
    pub(crate) sample: Option<Value>,
    /// Merge patches that make the example wrong.
    pub(crate) refuses: Vec<Value>,
    /// Merge patches that the stored example does not take.
    pub(crate) stays: Vec<Value>,
}

/// Where the objects of a scenario are.
pub(crate) struct Place {
    /// The value of the label of all of them.
    pub(crate) mark: String,
    /// The namespace; empty for kinds that have none.
    pub(crate) namespace: String,
    /// The path of the collection.
    pub(crate) collection: String,
    /// The path of the collection over all namespaces.
    pub(crate) everywhere: String,
}

/// Every kind of the API server's table.
pub(crate) fn all() -> Vec<Kind> {
    let mut examples = examples();
    let mut samples = samples();
    let kind = |resource: Resource| {
        let key = (resource.api_version(), resource.kind.to_string());
        let mut kind = examples.remove(&key).unwrap_or_else(|| Kind::without_example(&resource));
        kind.sample = samples.remove(&key);
        if kind.example.is_null() {
            // Another version of a kind that has an example.
            kind.example = kind.sample.clone().unwrap_or_default();
        }
        kind.id = id(&resource);
        kind.resource = resource;
        kind
    };
    kinds::all().into_iter().map(kind).collect()
}

/// `pods`, `deployments.apps`, `horizontalpodautoscalers.autoscaling.v2`.
fn id(resource: &Resource) -> String {
    let mut id = resource.qualified();
    if resource.version != "v1" {
        id.push('.');
        id.push_str(&resource.version);
    }
    id
}

impl Kind {
    fn without_example(resource: &Resource) -> Self {
        let review = REVIEWS.iter().find(|(plural, _)| *plural == resource.plural);
        let example = review.and_then(|(_, text)| serde_json::from_str(text).ok());
        Self {
            resource: resource.clone(),
            id: String::new(),
            example: example.unwrap_or_default(),
            sample: None,
            refuses: Vec::new(),
            stays: Vec::new(),
        }
    }

    pub(crate) fn can(&self, verb: Verb) -> bool {
        self.resource.verbs.contains(&verb)
    }

    /// Whether its objects are stored.
    pub(crate) fn is_stored(&self) -> bool {
        self.can(Verb::Create) && self.can(Verb::Get)
    }

    /// Begins a scenario in a namespace of its own, if the kind has namespaces.
    pub(crate) fn scenario(&self, run: &str, part: &str) -> (Scenario, Place) {
        let place = self.place(run, part);
        let mut tidy = Tidy { namespace: None, collections: vec![place.ours(&place.collection)] };
        if self.resource.namespaced {
            tidy = Tidy {
                namespace: Some(place.namespace.clone()),
                collections: vec![place.collection.clone()],
            };
        }
        if !self.is_stored() {
            tidy.collections.clear();
        }
        let mut scenario = Scenario::new(format!("{}/{part}", self.id), tidy);
        if self.resource.namespaced {
            self.prepare(&place, &mut scenario);
        }
        (scenario, place)
    }

    fn prepare(&self, place: &Place, scenario: &mut Scenario) {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace},
        });
        let namespace = Step::post("namespace", "/api/v1/namespaces", namespace);
        scenario.add(namespace.role(Role::Setup));
        if self.resource.plural == "pods" {
            // Pods are refused without it, and where no controllers run nobody makes it.
            let account = json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
            });
            let path = format!("/api/v1/namespaces/{}/serviceaccounts", place.namespace);
            scenario.add(Step::post("account", &path, account).role(Role::Setup));
        }
    }

    fn place(&self, run: &str, part: &str) -> Place {
        let Resource { group, version, plural, .. } = &self.resource;
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        let everywhere = format!("{root}/{plural}");
        let mark = format!("{run}-{part}");
        if !self.resource.namespaced {
            let namespace = String::new();
            let collection = everywhere.clone();
            return Place { mark, namespace, collection, everywhere };
        }
        let group = group.split('.').next().unwrap_or_default();
        let mut namespace = format!("cmp-{mark}-{plural}-{group}{version}");
        namespace.truncate(63);
        let collection = format!("{root}/namespaces/{namespace}/{plural}");
        Place { mark, namespace, collection, everywhere }
    }

    /// The name of the object that a scenario calls so.
    pub(crate) fn name(&self, place: &Place, tag: &str) -> String {
        match &*self.resource.plural {
            _ if self.resource.namespaced => tag.to_owned(),
            "ipaddresses" => {
                let sum = format!("{}{tag}", place.mark)
                    .bytes()
                    .fold(7_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(u16::from(byte)));
                format!("10.200.{}.{}", sum >> 8, sum & 0xff)
            }
            "apiservices" => format!("v1.{tag}-{}.example.com", place.mark),
            "customresourcedefinitions" => format!("shops.{tag}-{}.example.com", place.mark),
            _ => format!("cmp-{}-{tag}", place.mark),
        }
    }

    /// The path of that object.
    pub(crate) fn path(&self, place: &Place, tag: &str) -> String {
        format!("{}/{}", place.collection, self.name(place, tag))
    }

    /// The example under that name.
    pub(crate) fn object(&self, place: &Place, tag: &str) -> Value {
        self.adapted(&self.example, place, tag)
    }

    /// The example, changed, under that name.
    pub(crate) fn changed(&self, place: &Place, tag: &str, patch: &Value) -> Value {
        let object = self.object(place, tag);
        merge_patch(&object, patch.to_string().as_bytes()).unwrap_or(object)
    }

    /// An object of this kind as it fits its place: named, labelled, and referring to where it is.
    pub(crate) fn adapted(&self, object: &Value, place: &Place, tag: &str) -> Value {
        let mut object = object.clone();
        if object.is_null() {
            object = json!({});
        }
        object["apiVersion"] = self.resource.api_version().into();
        object["kind"] = (&*self.resource.kind).into();
        if !self.is_stored() && self.resource.plural != "bindings" {
            return object;
        }
        let name = self.name(place, tag);
        let group = name.split_once('.').map_or("", |(_, group)| group);
        match &*self.resource.plural {
            "apiservices" => object["spec"]["group"] = group.into(),
            "customresourcedefinitions" => {
                object["spec"]["group"] = group.into();
                object["spec"]["names"]["plural"] = "shops".into();
            }
            "events" => {
                for reference in ["involvedObject", "regarding"] {
                    if object[reference].is_object() {
                        object[reference]["namespace"] = place.namespace.as_str().into();
                    }
                }
            }
            _ => {}
        }
        object["metadata"]["name"] = name.into();
        object["metadata"]["labels"]["compare"] = place.mark.as_str().into();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        object
    }
}

impl Place {
    /// A path with a selector of what is ours.
    pub(crate) fn ours(&self, path: &str) -> String {
        format!("{path}?labelSelector=compare%3D{}", self.mark)
    }

    /// The collection as far as it is ours.
    pub(crate) fn list(&self) -> String {
        self.ours(&self.collection)
    }
}

/// The kinds of `examples.txt`, by version and kind.
fn examples() -> BTreeMap<(String, String), Kind> {
    let mut kinds = BTreeMap::new();
    let mut last = None;
    for line in EXAMPLES.lines() {
        match line.split_once(' ') {
            Some(("kind", rest)) => last = example(rest, &mut kinds),
            Some((word @ ("refuses" | "stays"), patch)) => {
                let kind = last.as_ref().and_then(|key| kinds.get_mut(key));
                if let (Some(kind), Ok(patch)) = (kind, serde_json::from_str(patch)) {
                    let kind: &mut Kind = kind;
                    let patches = if word == "stays" { &mut kind.stays } else { &mut kind.refuses };
                    patches.push(patch);
                }
            }
            _ => {}
        }
    }
    kinds
}

/// `SCOPE GROUP/VERSION PLURAL KIND OBJECT`.
fn example(line: &str, kinds: &mut BTreeMap<(String, String), Kind>) -> Option<(String, String)> {
    let mut words = line.splitn(5, ' ');
    let [_, version, plural, kind, object] = std::array::from_fn(|_| words.next());
    let key = (version?.to_owned(), kind?.to_owned());
    let resource = kinds::all()
        .into_iter()
        .find(|r| r.api_version() == key.0 && Some(&*r.plural) == plural)?;
    let mut kind = Kind::without_example(&resource);
    kind.example = serde_json::from_str(object?).ok()?;
    kinds.insert(key.clone(), kind);
    Some(key)
}

/// The objects of `samples.yaml`, by version and kind.
fn samples() -> BTreeMap<(String, String), Value> {
    let mut samples = BTreeMap::new();
    for document in SAMPLES.split("\n---\n") {
        let Ok(object) = serde_saphyr::from_str::<Value>(document) else { continue };
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        samples.insert((text("apiVersion"), text("kind")), object);
    }
    samples
}
