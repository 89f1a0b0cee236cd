//! Everything that a cluster holds at a moment, told apart by the scenarios.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use serde_json::Value;

use crate::api::Api;

/// What can be listed.
pub(super) struct Resource {
    api_version: String,
    kind: String,
    path: String,
}

/// The kinds whose objects are read: all that can be listed, each in the version that its group
/// prefers. Events are read once, and Leases and metrics change by themselves.
pub(super) async fn resources(api: &Api) -> Result<Vec<Resource>, String> {
    let mut versions = vec![("v1".to_owned(), "/api/v1".to_owned())];
    let groups = api.get("/apis").await?.unwrap_or_default();
    for group in groups["groups"].as_array().into_iter().flatten() {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap_or_default();
        versions.push((version.to_owned(), format!("/apis/{version}")));
    }
    let mut found = Vec::new();
    for (version, root) in versions {
        if ["events.k8s.io", "metrics.k8s.io"].iter().any(|group| version.starts_with(group)) {
            continue;
        }
        let list = api.get(&root).await?.unwrap_or_default();
        for resource in list["resources"].as_array().into_iter().flatten() {
            let name = resource["name"].as_str().unwrap_or_default();
            let verbs = resource["verbs"].as_array();
            let listed = verbs.is_some_and(|verbs| verbs.iter().any(|verb| verb == "list"));
            if !listed || name.contains('/') || ["leases", "componentstatuses"].contains(&name) {
                continue;
            }
            found.push(Resource {
                api_version: version.clone(),
                kind: resource["kind"].as_str().unwrap_or_default().to_owned(),
                path: format!("{root}/{name}"),
            });
        }
    }
    Ok(found)
}

/// The kind by which a step is told that was refused.
pub(super) const REFUSED: &str = "Refused";

/// What one scenario has come to after a round.
pub(super) struct Snapshot {
    pub(super) scenario: String,
    pub(super) round: usize,
    pub(super) objects: Vec<Value>,
}

/// Everything, by namespace; what is in none under the empty name.
pub(super) struct World(BTreeMap<String, Vec<Value>>);

impl World {
    pub(super) async fn read(api: &Api, resources: &[Resource]) -> Result<Self, String> {
        let lists = try_join_all(resources.iter().map(|resource| api.list(&resource.path))).await?;
        let mut world: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (resource, list) in resources.iter().zip(lists) {
            for mut object in list {
                object["apiVersion"] = resource.api_version.as_str().into();
                object["kind"] = resource.kind.as_str().into();
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
                world.entry(namespace.to_owned()).or_default().push(object);
            }
        }
        Ok(Self(world))
    }

    /// The objects of a scenario: those in its namespace, and those of the cluster that have its name in
    /// theirs.
    pub(super) fn of(&self, scenario: &str, round: usize) -> Snapshot {
        let own = self.0.get(scenario).into_iter().flatten();
        let of_cluster = self.0.get("").into_iter().flatten().filter(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            name == scenario || name.ends_with(&format!("-{scenario}"))
        });
        let objects = own.chain(of_cluster).cloned().collect();
        Snapshot { scenario: scenario.to_owned(), round, objects }
    }
}
