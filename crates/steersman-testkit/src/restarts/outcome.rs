//! What a scenario comes to: every object of its namespace, without what is made up anew each time
//! (names, uids, versions, times, places), and how many were created.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use serde_json::{Map, Value};
use steersman::Result;

use crate::Cluster;
use crate::wire::Wire;

/// Fields whose value is made up, wherever they stand.
const MADE_UP: [&str; 15] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "generation",
    "nodeName",
    "hostname",
    "podIP",
    "podIPs",
    "hostIP",
    "hostIPs",
    "containerID",
    "observedGeneration",
    "volume.kubernetes.io/selected-node",
];
/// Volumes whose name ends with what is made up.
const TOKENS: &str = "kube-api-access-";
/// How the names of volumes begin that are made for a claim, before its uid.
const PROVISIONED: &str = "pvc-";
/// How certificates begin, which every cluster has anew.
const CERTIFICATE: &str = "-----BEGIN ";
/// What stands for it.
const ANYTHING: &str = "*";
/// Resources that say what happened and not what is, or that change all the time.
const PASSING: [&str; 2] = ["events", "leases"];

/// What a scenario came to.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    /// Objects as they are in the end, by resource, sorted.
    objects: BTreeMap<String, Vec<String>>,
    /// How many the controller created, by resource.
    created: BTreeMap<String, usize>,
    /// How many Pods there ever were, whoever created them.
    pods: usize,
}

/// Reads what is in the namespace of the test.
pub(super) async fn of(cluster: &Cluster, wire: &Wire, pods: usize) -> Result<Outcome> {
    let mut objects = BTreeMap::new();
    let client = cluster.client().kube();
    let mut lists = vec![("/api/v1".to_owned(), client.list_core_api_resources("v1").await?)];
    for group in client.list_api_groups().await?.groups {
        let version = group.preferred_version.or_else(|| group.versions.first().cloned());
        let Some(version) = version.map(|version| version.group_version) else { continue };
        lists.push((format!("/apis/{version}"), client.list_api_group_resources(&version).await?));
    }
    for (root, list) in lists {
        for plural in listed(&list) {
            let path = format!("{root}/namespaces/{}/{plural}", cluster.namespace());
            let request = http::Request::get(path).body(Vec::new());
            let request = request.map_err(steersman::Error::new)?;
            let mut list: Value = client.request(request).await?;
            let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            let mut shown: Vec<String> = items.into_iter().map(shown).collect();
            shown.sort();
            objects.insert(plural.to_owned(), shown);
        }
    }
    Ok(Outcome { objects, created: wire.created(), pods })
}

/// The resources of a namespace whose objects are stored. What is computed, such as metrics, can be
/// listed, but not watched.
fn listed(list: &APIResourceList) -> impl Iterator<Item = &str> {
    let of_namespace = list.resources.iter().filter(|resource| {
        let has = |verb: &str| resource.verbs.iter().any(|known| known == verb);
        resource.namespaced && has("list") && has("watch")
    });
    of_namespace.map(|resource| resource.name.as_str()).filter(|name| !PASSING.contains(name))
}

impl Outcome {
    /// What differs in another outcome, for people to read.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self.pods != other.pods {
            let (undisturbed, disturbed) = (self.pods, other.pods);
            return Some(format!("{disturbed} Pods were created instead of {undisturbed}"));
        }
        if self.created != other.created {
            let (undisturbed, disturbed) = (&self.created, &other.created);
            return Some(format!("it created {disturbed:?} instead of {undisturbed:?}"));
        }
        let resources = self.objects.keys().chain(other.objects.keys());
        let none = Vec::new();
        for resource in resources {
            let expected = self.objects.get(resource).unwrap_or(&none);
            let found = other.objects.get(resource).unwrap_or(&none);
            if expected != found {
                let lacks = without(expected, found);
                let has = without(found, expected);
                return Some(format!("{resource} lack\n{lacks}\nand have instead\n{has}"));
            }
        }
        None
    }
}

/// What is in one list and not in the other.
fn without(one: &[String], other: &[String]) -> String {
    let mut rest = other.to_vec();
    let mut left = Vec::new();
    for item in one {
        match rest.iter().position(|found| found == item) {
            Some(at) => drop(rest.swap_remove(at)),
            None => left.push(item.as_str()),
        }
    }
    left.join("\n")
}

/// An object as text, without what is made up.
fn shown(mut object: Value) -> String {
    let generation = object["metadata"]["generation"].clone();
    let observed = object["status"]["observedGeneration"].clone();
    if let Some(beginning) = object["metadata"]["generateName"].as_str().map(str::to_owned) {
        object["metadata"]["name"] = format!("{beginning}{ANYTHING}").into();
    }
    mask(&mut object);
    if !observed.is_null() {
        object["status"]["upToDate"] = (observed == generation).into();
    }
    object.to_string()
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => mask_fields(fields),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) => {
            let made_up = text.parse::<jiff::Timestamp>().is_ok()
                || text.starts_with(CERTIFICATE)
                || is_uid(text.strip_prefix(PROVISIONED).unwrap_or(text));
            if made_up {
                ANYTHING.clone_into(text);
            } else if text.starts_with(TOKENS) {
                *text = format!("{TOKENS}{ANYTHING}");
            }
        }
        _ => {}
    }
}

/// Whether a text is a uid, such as Jobs have in their selectors.
fn is_uid(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.len() == 36
        && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        && text.split('-').all(digits)
}

fn mask_fields(fields: &mut Map<String, Value>) {
    for name in MADE_UP {
        fields.remove(name);
    }
    if fields.get("clusterIP").is_none_or(|address| address != "None") {
        // Which address a Service is given depends on all that was created before, the cluster's own too.
        fields.remove("clusterIP");
        fields.remove("clusterIPs");
    }
    if let Some(conditions) = fields.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.sort_by_key(|condition| condition["type"].to_string()); // their order says nothing
    }
    fields.values_mut().for_each(mask);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_made_up_does_not_count() {
        let pod = |name: &str, time: &str, observed: i64| {
            shown(json!({
                "metadata": {"name": name, "generateName": "web-", "uid": name, "generation": 2,
                             "creationTimestamp": time},
                "spec": {"nodeName": name, "volumes": [{"name": format!("kube-api-access-{name}")}]},
                "status": {"observedGeneration": observed, "startTime": time},
            }))
        };
        let one = pod("web-a", "2030-01-01T00:00:00Z", 2);
        assert_eq!(one, pod("web-b", "2031-01-01T00:00:00Z", 2));
        assert_ne!(one, pod("web-b", "2031-01-01T00:00:00Z", 1), "it is not up to date");
        let job =
            |uid: &str| shown(json!({"spec": {"selector": {"matchLabels": {"uid-of": uid}}}}));
        let one = job("b9ae6e4f-05c2-4e1c-9c5f-0f6f2f5c8a11");
        assert_eq!(one, job("00000000-0000-0000-0000-000000000000"));
        assert_eq!(one, job("pvc-00000000-0000-0000-0000-000000000000"));
        assert_ne!(one, job("b9ae6e4f-05c2-4e1c-9c5f-0f6f2f5c8a1z"));
        let service = |address: &str| shown(json!({"clusterIP": address, "clusterIPs": [address]}));
        assert_eq!(service("10.96.0.41"), service("10.96.0.42"));
        assert_ne!(service("10.96.0.41"), service("None"));
    }

    #[test]
    fn a_difference_tells_what_is_missing_and_what_is_there_instead() {
        let outcome = |pods: &[&str], created: usize| Outcome {
            objects: [("pods".into(), pods.iter().map(|pod| (*pod).into()).collect())].into(),
            created: [("pods".into(), created)].into(),
            pods: created,
        };
        assert_eq!(outcome(&["a", "b"], 2).difference(&outcome(&["a", "b"], 2)), None);
        let more = outcome(&["a"], 1).difference(&outcome(&["a"], 2));
        assert_eq!(more.as_deref(), Some("2 Pods were created instead of 1"));
        let other = outcome(&["a", "b"], 2).difference(&outcome(&["a", "c"], 2));
        assert_eq!(other.as_deref(), Some("pods lack\nb\nand have instead\nc"));
    }
}
