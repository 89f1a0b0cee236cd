//! An index of what is related to which node.
//!
//! Pods, attachments of volumes and slices of resources are on a node. What a Pod refers to is
//! related to its node, and so is the volume that is bound to a claim of the Pod, and the Secrets
//! that it takes to mount that volume. One count for each object and node, so that neither a change
//! nor a question depends on how many Pods refer to an object.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::object::{Kind, Object, Reference};
use super::references::{self, Placement, Volume};

/// What is related to which node.
#[derive(Debug, Default)]
pub(super) struct Relations {
    /// What is on a node, by its key in the store.
    placed: HashMap<Arc<str>, Placed>,
    /// How many Pods of each node refer to something.
    referred: HashMap<Arc<Reference>, HashMap<Arc<str>, u32>>,
    /// The volumes that are bound to a claim, by their key.
    volumes: HashMap<Arc<str>, Volume>,
    /// The volumes that it takes a Secret to mount, by their key.
    mounted_with: HashMap<Reference, Vec<Arc<str>>>,
}

#[derive(Debug)]
struct Placed {
    placement: Placement,
    refers: Vec<Arc<Reference>>,
}

impl Relations {
    /// Takes in a version of an object of one of the kinds that have a folder, or that it is gone.
    pub(super) fn take_in(&mut self, kind: Kind, key: &Arc<str>, document: Option<&[u8]>) {
        match kind {
            Kind::Pod => self.put_pod(key, document),
            Kind::Volume => {
                let volume = document.and_then(decode);
                self.put_volume(key, volume.as_ref().and_then(references::of_volume));
            }
            _ => {
                let placement = document.and_then(Placement::of);
                self.place(key, placement.map(|placement| (placement, Vec::new())));
            }
        }
    }

    /// Whether an object is related to a node.
    pub(super) fn is_related(&self, node: &str, object: Object<'_>) -> bool {
        let Object { kind, namespace, name } = object;
        let wanted = || Reference { kind, namespace: namespace.to_owned(), name: name.to_owned() };
        let at = |folder: &str| match namespace {
            "" => format!("{folder}{name}"),
            namespace => format!("{folder}{namespace}/{name}"),
        };
        match kind {
            Kind::Pod | Kind::Attachment | Kind::Slice => {
                let placed = self.placed.get(at(kind.folder()).as_str());
                placed.is_some_and(|placed| placed.placement.node == node)
            }
            Kind::Volume => self.is_bound_on(node, &at(kind.folder())),
            Kind::Secret => {
                let secret = wanted();
                let volumes = self.mounted_with.get(&secret).into_iter().flatten();
                self.is_referred_on(node, &secret)
                    || volumes.into_iter().any(|volume| self.is_bound_on(node, volume))
            }
            _ => self.is_referred_on(node, &wanted()),
        }
    }

    fn is_referred_on(&self, node: &str, wanted: &Reference) -> bool {
        self.referred.get(wanted).is_some_and(|nodes| nodes.contains_key(node))
    }

    fn is_bound_on(&self, node: &str, volume: &str) -> bool {
        let volume = self.volumes.get(volume);
        volume.is_some_and(|volume| self.is_referred_on(node, &volume.claim))
    }

    /// Most versions of a Pod differ in nothing that relates it to anything; those are only skimmed.
    fn put_pod(&mut self, key: &Arc<str>, document: Option<&[u8]>) {
        let placement = document.and_then(Placement::of);
        if self.placed.get(key).map(|placed| &placed.placement) == placement.as_ref() {
            return;
        }
        let pod = placement.as_ref().and(document).and_then(decode);
        let refers = pod.as_ref().map(references::of_pod).unwrap_or_default();
        self.place(key, placement.map(|placement| (placement, refers)));
    }

    fn place(&mut self, key: &Arc<str>, placed: Option<(Placement, Vec<Reference>)>) {
        if let Some(Placed { placement, refers }) = self.placed.remove(key) {
            refers.iter().for_each(|reference| self.lose(reference, &placement.node));
        }
        let Some((placement, refers)) = placed else { return };
        let node: Arc<str> = placement.node.as_str().into();
        let refers = refers.into_iter().map(|reference| self.count(reference, &node)).collect();
        self.placed.insert(Arc::clone(key), Placed { placement, refers });
    }

    fn count(&mut self, reference: Reference, node: &Arc<str>) -> Arc<Reference> {
        let known = self.referred.get_key_value(&reference).map(|(known, _)| Arc::clone(known));
        let reference = known.unwrap_or_else(|| Arc::new(reference));
        let nodes = self.referred.entry(Arc::clone(&reference)).or_default();
        *nodes.entry(Arc::clone(node)).or_default() += 1;
        reference
    }

    fn lose(&mut self, reference: &Arc<Reference>, node: &str) {
        let Some(nodes) = self.referred.get_mut(reference) else { return };
        match nodes.get_mut(node) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(nodes.remove(node)),
        }
        if nodes.is_empty() {
            self.referred.remove(reference);
        }
    }

    fn put_volume(&mut self, key: &Arc<str>, volume: Option<Volume>) {
        if self.volumes.get(key) == volume.as_ref() {
            return;
        }
        if let Some(old) = self.volumes.remove(key) {
            for secret in &old.secrets {
                let Some(volumes) = self.mounted_with.get_mut(secret) else { continue };
                volumes.retain(|volume| volume != key);
                if volumes.is_empty() {
                    self.mounted_with.remove(secret);
                }
            }
        }
        let Some(volume) = volume else { return };
        for secret in &volume.secrets {
            self.mounted_with.entry(secret.clone()).or_default().push(Arc::clone(key));
        }
        self.volumes.insert(Arc::clone(key), volume);
    }

    /// Whether nothing is related to anything.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.placed.is_empty()
            && self.referred.is_empty()
            && self.volumes.is_empty()
            && self.mounted_with.is_empty()
    }
}

/// A stored object; one that cannot be read relates to nothing.
fn decode(document: &[u8]) -> Option<Value> {
    serde_json::from_slice(document).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::{Kind, Object, Relations};

    fn put(relations: &mut Relations, kind: Kind, name: &str, object: &Value) {
        let key: Arc<str> = format!("{}{name}", kind.folder()).into();
        relations.take_in(kind, &key, Some(object.to_string().as_bytes()));
    }

    fn remove(relations: &mut Relations, kind: Kind, name: &str) {
        relations.take_in(kind, &format!("{}{name}", kind.folder()).into(), None);
    }

    fn pod(node: &str, spec: &Value) -> Value {
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "1"}, "spec": spec,
        });
        pod["spec"]["nodeName"] = node.into();
        pod
    }

    fn related(relations: &Relations, node: &str, kind: Kind, name: &str) -> bool {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        relations.is_related(node, Object { kind, namespace, name })
    }

    #[test]
    fn a_relation_lasts_until_the_last_pod_of_the_node_is_gone() {
        let mut relations = Relations::default();
        let spec = json!({"serviceAccountName": "s"});
        for (name, node) in [("a/p", "n"), ("a/q", "n"), ("a/r", "m")] {
            put(&mut relations, Kind::Pod, name, &pod(node, &spec));
        }
        let mut pending = pod("", &spec);
        pending["spec"]["serviceAccountName"] = "t".into();
        put(&mut relations, Kind::Pod, "a/pending", &pending);
        let known = |relations: &Relations, node: &str| {
            related(relations, node, Kind::ServiceAccount, "a/s")
        };
        assert!(known(&relations, "n") && known(&relations, "m") && !known(&relations, "o"));
        assert!(!related(&relations, "", Kind::ServiceAccount, "a/t"));
        remove(&mut relations, Kind::Pod, "a/p");
        assert!(known(&relations, "n"));
        assert!(!related(&relations, "n", Kind::Pod, "a/p"));
        remove(&mut relations, Kind::Pod, "a/q");
        assert!(!known(&relations, "n") && known(&relations, "m"));
        // One of the same name, but on another node.
        let mut other = pod("o", &json!({}));
        other["metadata"]["uid"] = "2".into();
        put(&mut relations, Kind::Pod, "a/r", &other);
        assert!(!known(&relations, "m") && !known(&relations, "o"));
        assert!(related(&relations, "o", Kind::Pod, "a/r"));
        remove(&mut relations, Kind::Pod, "a/r");
        assert!(relations.is_empty(), "{relations:?}");
    }

    #[test]
    fn a_volume_and_its_secrets_are_related_through_the_claim_of_a_pod() {
        let mut relations = Relations::default();
        let volume = json!({
            "metadata": {"name": "v"},
            "spec": {
                "claimRef": {"namespace": "a", "name": "c"},
                "csi": {"nodeStageSecretRef": {"namespace": "b", "name": "s"}},
            },
        });
        put(&mut relations, Kind::Volume, "v", &volume);
        let all = |relations: &Relations| {
            let one = |kind, name| related(relations, "n", kind, name);
            [one(Kind::Claim, "a/c"), one(Kind::Volume, "v"), one(Kind::Secret, "b/s")]
        };
        assert_eq!(all(&relations), [false; 3]);
        let claims = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]});
        put(&mut relations, Kind::Pod, "a/p", &pod("n", &claims));
        assert_eq!(all(&relations), [true; 3]);
        put(&mut relations, Kind::Volume, "v", &json!({"spec": {}}));
        assert_eq!(all(&relations), [true, false, false]);
        put(&mut relations, Kind::Volume, "v", &volume);
        assert_eq!(all(&relations), [true; 3]);
        remove(&mut relations, Kind::Volume, "v");
        remove(&mut relations, Kind::Pod, "a/p");
        assert!(relations.is_empty(), "{relations:?}");
    }

    #[test]
    fn attachments_and_slices_are_on_a_node_or_on_none() {
        let mut relations = Relations::default();
        for kind in [Kind::Attachment, Kind::Slice] {
            put(&mut relations, kind, "x", &json!({"spec": {"nodeName": "n"}}));
            assert!(related(&relations, "n", kind, "x"));
            assert!(!related(&relations, "m", kind, "x"));
            assert!(!related(&relations, "n", kind, "a/x"));
            put(&mut relations, kind, "x", &json!({"spec": {"allNodes": true}}));
            assert!(!related(&relations, "n", kind, "x"));
        }
        assert!(relations.is_empty(), "{relations:?}");
    }
}
