//! What the server serves: every resource once, custom ones included.
//!
//! A group may serve a resource in several versions; the group's preferred version is taken,
//! and another one only for what the preferred version lacks.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use http::header::{ACCEPT, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{Request, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use kube::client::Body;
use kube::core::ApiResource;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery, APIVersionDiscovery};
use serde::Deserialize;
use steersman::{Client, Result};

/// The form of discovery that has a tag.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// What a resource is called in every version: its group and its plural.
pub(crate) type ResourceName = (String, String);

/// A resource that the server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedResource {
    /// Its names.
    pub(crate) api: ApiResource,
    /// Whether its objects live in namespaces.
    pub(crate) namespaced: bool,
    /// What can be done with it.
    verbs: Vec<String>,
    /// All versions in which it is served, this one first.
    versions: Vec<String>,
}

impl ServedResource {
    /// Whether the server offers all of these verbs.
    pub(crate) fn has_verbs(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|v| v == verb))
    }

    /// Whether it is served in this version too.
    pub(crate) fn is_served_as(&self, version: &str) -> bool {
        self.versions.iter().any(|served| served == version)
    }

    /// What it is called, whatever its version.
    pub(crate) fn name(&self) -> ResourceName {
        (self.api.group.clone(), self.api.plural.clone())
    }

    /// Whether another one is the same, whatever its version.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.api.group == other.api.group && self.api.plural == other.api.plural
    }

    /// Where its objects are: in one namespace, or in all of them.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        use kube::Resource;
        kube::core::DynamicObject::url_path(&self.api, namespace.filter(|_| self.namespaced))
    }
}

/// Tells whether what the server serves has changed since the last time it was asked.
///
/// The aggregated form of discovery has a tag, and asking "is it still this one?" costs next to
/// nothing. From a server that gives no tag, everything always counts as changed.
#[derive(Debug, Default)]
pub(crate) struct ChangeCheck {
    tag: Option<HeaderValue>,
}

impl ChangeCheck {
    pub(crate) async fn has_changed(&mut self, client: &Client) -> Result<bool> {
        let mut request = Request::get("/apis").header(ACCEPT, AGGREGATED);
        if let Some(tag) = &self.tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let answer = client.kube().send(request.body(Body::empty())?).await?;
        if answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(false);
        }
        self.tag = answer.headers().get(ETAG).filter(|_| answer.status().is_success()).cloned();
        Ok(true)
    }
}

/// What a server serves, as far as it could tell.
#[derive(Debug)]
pub(crate) struct Discovered {
    /// Every resource once.
    pub(crate) resources: Vec<ServedResource>,
    /// The group versions that could not be read, and why.
    pub(crate) failures: BTreeMap<String, String>,
}

/// Asks the server for every resource it serves. Of a group version that cannot be read, as
/// when an aggregated server is down, the resources are those that were `known` before.
pub(crate) async fn served_resources(
    client: &Client,
    known: &[ServedResource],
) -> Result<Discovered> {
    let mut resources = resources_of("v1", client.kube().list_core_api_resources("v1").await?);
    let mut failures = BTreeMap::new();
    for group in groups(client).await? {
        let mut seen = HashMap::new();
        for Version { name, told } in group {
            let new = match told {
                Told::Resources(resources) => resources,
                Told::Stale => {
                    failures.insert(name.clone(), format!("stale GroupVersion discovery: {name}"));
                    known_of(&name, known)
                }
                Told::Nothing => {
                    let answer = client.kube().list_api_group_resources(&name).await;
                    if let Err(error) = &answer {
                        failures.insert(name.clone(), reason(error));
                    }
                    read_or_known(&name, answer, known)
                }
            };
            for resource in new {
                match seen.entry(resource.api.plural.clone()) {
                    Entry::Vacant(unseen) => {
                        unseen.insert(resources.len());
                        resources.push(resource);
                    }
                    // What was known before knows all its versions already.
                    Entry::Occupied(at) => {
                        let versions = &mut resources[*at.get()].versions;
                        if !versions.contains(&resource.api.version) {
                            versions.push(resource.api.version);
                        }
                    }
                }
            }
        }
    }
    Ok(Discovered { resources, failures })
}

/// A group version, as the list of groups tells of it.
struct Version {
    name: String,
    told: Told,
}

/// What the list of groups tells of a version.
#[derive(Debug)]
enum Told {
    /// What it has.
    Resources(Vec<ServedResource>),
    /// That whoever serves it does not answer.
    Stale,
    /// Nothing: it has to be asked for.
    Nothing,
}

/// The groups but core, with their versions, the preferred one first. A server that knows the
/// aggregated form tells in one answer what each version has, unless it does not know that itself;
/// there may be thousands of versions.
async fn groups(client: &Client) -> Result<Vec<Vec<Version>>> {
    let request = Request::get("/apis").header(ACCEPT, AGGREGATED);
    let answer: Groups = client.kube().request(request.body(Vec::new())?).await?;
    Ok(match answer {
        Groups::Aggregated { items } => items.into_iter().map(told_versions).collect(),
        Groups::Plain { groups } => groups.iter().map(asked_versions).collect(),
    })
}

/// Either form of the list of groups.
#[derive(Deserialize)]
#[serde(untagged)]
enum Groups {
    Aggregated { items: Vec<APIGroupDiscovery> },
    Plain { groups: Vec<APIGroup> },
}

fn told_versions(group: APIGroupDiscovery) -> Vec<Version> {
    let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
    let version = |version: APIVersionDiscovery| {
        let group_version = format!("{name}/{}", version.version.unwrap_or_default());
        let resources = version.resources.into_iter();
        let told = match version.freshness.as_deref() {
            Some("Stale") => Told::Stale,
            _ => Told::Resources(resources.map(|r| told_resource(&group_version, r)).collect()),
        };
        Version { name: group_version, told }
    };
    group.versions.into_iter().map(version).collect()
}

fn told_resource(group_version: &str, resource: APIResourceDiscovery) -> ServedResource {
    let resource = APIResource {
        kind: resource.response_kind.and_then(|kind| kind.kind).unwrap_or_default(),
        name: resource.resource.unwrap_or_default(),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        verbs: resource.verbs,
        ..APIResource::default()
    };
    served(group_version, resource)
}

fn asked_versions(group: &APIGroup) -> Vec<Version> {
    let version = |name: &str| Version { name: name.to_owned(), told: Told::Nothing };
    versions(group).into_iter().map(version).collect()
}

/// Asks the server for one resource, whatever its version; `None` if it is not served.
pub(crate) async fn served_resource(
    client: &Client,
    group: &str,
    plural: &str,
) -> Result<Option<ServedResource>> {
    find_served(client, group, |resource| resource.api.plural == plural).await
}

/// The same for the resource of a kind.
pub(crate) async fn served_kind(
    client: &Client,
    group: &str,
    kind: &str,
) -> Result<Option<ServedResource>> {
    find_served(client, group, |resource| resource.api.kind == kind).await
}

async fn find_served(
    client: &Client,
    group: &str,
    is_it: impl Fn(&ServedResource) -> bool,
) -> Result<Option<ServedResource>> {
    if group.is_empty() {
        let core = client.kube().list_core_api_resources("v1").await?;
        return Ok(resources_of("v1", core).into_iter().find(is_it));
    }
    let groups = client.kube().list_api_groups().await?.groups;
    let group = groups.iter().find(|it| it.name == group);
    for version in group.into_iter().flat_map(versions) {
        let list = client.kube().list_api_group_resources(version).await?;
        if let found @ Some(_) = resources_of(version, list).into_iter().find(&is_it) {
            return Ok(found);
        }
    }
    Ok(None)
}

/// What went wrong, in the server's words where it has some.
pub(crate) fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => error.to_string(),
    }
}

/// The resources of a group version, or those known before if it could not be read.
fn read_or_known(
    version: &str,
    answer: Result<APIResourceList, kube::Error>,
    known: &[ServedResource],
) -> Vec<ServedResource> {
    match answer {
        Ok(list) => resources_of(version, list),
        Err(error) => {
            tracing::debug!(version, %error, "discovery of a group version failed");
            known_of(version, known)
        }
    }
}

fn known_of(version: &str, known: &[ServedResource]) -> Vec<ServedResource> {
    known.iter().filter(|known| known.api.api_version == version).cloned().collect()
}

/// The group's versions, the preferred one first.
fn versions(group: &APIGroup) -> Vec<&str> {
    let preferred = group.preferred_version.as_ref().map(|version| version.group_version.as_str());
    let all = group.versions.iter().map(|version| version.group_version.as_str());
    preferred.into_iter().chain(all.filter(|version| Some(*version) != preferred)).collect()
}

/// The resources in a list, without subresources.
fn resources_of(group_version: &str, list: APIResourceList) -> Vec<ServedResource> {
    let whole = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    whole.map(|resource| served(group_version, resource)).collect()
}

fn served(group_version: &str, resource: APIResource) -> ServedResource {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let api = ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: group_version.into(),
        kind: resource.kind,
        plural: resource.name,
    };
    let (namespaced, versions) = (resource.namespaced, vec![version.to_owned()]);
    ServedResource { api, namespaced, verbs: resource.verbs, versions }
}

/// A namespaced resource with every verb, for tests.
#[cfg(test)]
pub(crate) fn test_resource(group_version: &str, kind: &str, plural: &str) -> ServedResource {
    let verbs = ["get", "list", "watch", "delete", "deletecollection", "patch"];
    let resource = APIResource {
        kind: kind.into(),
        name: plural.into(),
        namespaced: true,
        verbs: verbs.map(str::to_owned).into(),
        ..APIResource::default()
    };
    served(group_version, resource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn subresources_are_left_out_and_names_are_complete() {
        let list = json!({"groupVersion": "apps/v1", "resources": [
            {"name": "deployments", "singularName": "deployment", "namespaced": true,
             "kind": "Deployment", "verbs": ["list", "watch", "delete"]},
            {"name": "deployments/scale", "singularName": "", "namespaced": true,
             "kind": "Scale", "verbs": ["get"]},
        ]});
        let served = resources_of("apps/v1", serde_json::from_value(list).unwrap());
        assert_eq!(served.len(), 1);
        assert_eq!(served[0].path(Some("default")), "/apis/apps/v1/namespaces/default/deployments");
        assert!(served[0].has_verbs(&["list", "delete"]));
        assert!(!served[0].has_verbs(&["deletecollection"]));
    }

    #[test]
    fn an_aggregated_list_tells_what_versions_have_unless_it_is_stale() {
        let list = json!({"kind": "APIGroupDiscoveryList", "items": [{
            "metadata": {"name": "example.com"},
            "versions": [
                {"version": "v2", "freshness": "Current", "resources": [{
                    "resource": "boats", "scope": "Namespaced", "verbs": ["list"],
                    "responseKind": {"group": "example.com", "version": "v2", "kind": "Boat"},
                }]},
                {"version": "v1", "freshness": "Stale"},
            ],
        }]});
        let Groups::Aggregated { items } = serde_json::from_value(list).unwrap() else {
            panic!("not the aggregated form")
        };
        let versions: Vec<Version> = items.into_iter().flat_map(told_versions).collect();
        let names: Vec<&str> = versions.iter().map(|version| &*version.name).collect();
        assert_eq!(names, ["example.com/v2", "example.com/v1"]);
        let Told::Resources(told) = &versions[0].told else { panic!("{:?}", versions[0].told) };
        assert_eq!(told[0].path(Some("bay")), "/apis/example.com/v2/namespaces/bay/boats");
        assert_eq!(told[0].api.kind, "Boat");
        assert!(matches!(versions[1].told, Told::Stale));
    }

    #[test]
    fn a_group_version_that_cannot_be_read_keeps_what_was_known_of_it() {
        let boats = test_resource("example.com/v1", "Boat", "boats");
        let known = [test_resource("apps/v1", "Deployment", "deployments"), boats.clone()];
        let failed = || Err(kube::Error::LinesCodecMaxLineLengthExceeded);
        assert_eq!(read_or_known("example.com/v1", failed(), &known), [boats]);
        assert_eq!(read_or_known("example.com/v2", failed(), &known), []);
        assert_eq!(read_or_known("apps/v1", Ok(APIResourceList::default()), &known), []);
    }

    #[test]
    fn the_preferred_version_comes_first() {
        let group: APIGroup = serde_json::from_value(json!({
            "name": "autoscaling",
            "versions": [
                {"groupVersion": "autoscaling/v1", "version": "v1"},
                {"groupVersion": "autoscaling/v2", "version": "v2"},
            ],
            "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
        }))
        .unwrap();
        assert_eq!(versions(&group), ["autoscaling/v2", "autoscaling/v1"]);
    }
}
