//! What is served, as clients ask for it: `/api`, `/apis`, `/version` and the list of paths.
//!
//! Old clients walk group by group; new ones ask `/api` and `/apis` once for everything, in the
//! aggregated form, and come back with the ETag.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::negotiate::{Output, Shape, Wishes};
use crate::registry::Table;
use crate::reply::{self, ResponseBody};
use crate::resource::{Resource, Subresource, Verb};
use crate::status::{Result, Status};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a discovery path.
pub(crate) fn answer(
    table: &Table,
    path: &[&str],
    parts: &Parts,
) -> Result<Response<ResponseBody>> {
    let output = Wishes::of(&parts.uri, &parts.headers).choose_document(&[Shape::Discovery])?;
    // What is not an object of the API is for people.
    let output = Output { pretty: output.pretty || matches!(path, [] | ["version"]), ..output };
    let value = match path {
        ["api" | "apis"] if output.shape == Shape::Discovery => {
            return Ok(aggregated(table, path == ["api"], &parts.headers, output));
        }
        [] => root(table),
        ["version"] => version(),
        ["api"] => json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        }),
        ["apis"] => {
            let groups: Vec<Value> = groups(table).iter().map(|g| group_value(g, false)).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["apis", name] => {
            let groups = groups(table);
            let group = groups.iter().find(|group| group.name == *name);
            group_value(group.ok_or_else(Status::no_such_resource)?, true)
        }
        ["api", version] => resource_list(table, "", version)?,
        ["apis", group, version] => resource_list(table, group, version)?,
        _ => return Err(Status::no_such_resource()),
    };
    Ok(reply::document(StatusCode::OK, output, &value))
}

/// A group with its versions, the preferred one first.
struct Group<'a> {
    name: &'a str,
    versions: Vec<(&'a str, Vec<&'a Resource>)>,
}

fn all_groups(table: &Table) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for resource in table.resources() {
        let index = groups.iter().position(|group| group.name == resource.group);
        let index = index.unwrap_or_else(|| {
            groups.push(Group { name: &resource.group, versions: Vec::new() });
            groups.len() - 1
        });
        let versions = &mut groups[index].versions;
        match versions.iter_mut().find(|(version, _)| *version == resource.version) {
            Some((_, resources)) => resources.push(resource),
            None => versions.push((&resource.version, vec![resource])),
        }
    }
    for group in &mut groups {
        group.versions.sort_by_key(|(version, _)| std::cmp::Reverse(version_priority(version)));
    }
    groups
}

/// The groups but core.
fn groups(table: &Table) -> Vec<Group<'_>> {
    all_groups(table).into_iter().filter(|group| !group.name.is_empty()).collect()
}

/// How versions are preferred: stable before beta before alpha, then the higher number; names
/// of another form come last.
pub fn version_priority(version: &str) -> (u8, u32, u32) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at(end);
        let major = major.parse().ok()?;
        if rest.is_empty() {
            return Some((3, major, 0));
        }
        let (rank, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            (Some(minor), _) => (2, minor),
            (_, Some(minor)) => (1, minor),
            _ => return None,
        };
        Some((rank, major, minor.parse().ok()?))
    };
    parse().unwrap_or((0, 0, 0))
}

fn group_value(group: &Group<'_>, alone: bool) -> Value {
    let versions: Vec<Value> = group.versions.iter().map(|(version, _)| {
        json!({"groupVersion": format!("{}/{version}", group.name), "version": version})
    }).collect();
    let mut value = json!({
        "name": group.name, "versions": versions, "preferredVersion": versions.first(),
    });
    if alone {
        value["kind"] = "APIGroup".into();
        value["apiVersion"] = "v1".into();
    }
    value
}

fn resource_list(table: &Table, group: &str, version: &str) -> Result<Value> {
    let known = table.resources().filter(|r| r.group == group && r.version == version);
    let resources: Vec<Value> = known.flat_map(|resource| legacy(table, resource)).collect();
    if resources.is_empty() {
        return Err(Status::no_such_resource());
    }
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": group_version, "resources": resources,
    }))
}

fn legacy(table: &Table, resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural, "singularName": resource.singular, "kind": resource.kind,
        "namespaced": resource.namespaced, "verbs": verbs(resource.verbs),
    });
    if !resource.short_names.is_empty() {
        main["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        main["categories"] = json!(resource.categories);
    }
    if resource.verbs.contains(&Verb::Watch) {
        main["storageVersionHash"] = storage_version_hash(table, resource).into();
    }
    let below = resource.subresources.iter().map(|sub| {
        let mut value = json!({
            "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
            "namespaced": resource.namespaced, "kind": sub.kind, "verbs": verbs(sub.verbs),
        });
        if let Some((group, version)) = &sub.group_version {
            value["group"] = json!(group);
            value["version"] = json!(version);
        }
        value
    });
    std::iter::once(main).chain(below).collect()
}

/// A name for how the objects are stored; Kubernetes gives the same.
fn storage_version_hash(table: &Table, resource: &Resource) -> String {
    let custom = table.custom(&resource.qualified()).map(|custom| &custom.storage);
    // Of several built-in versions the first that discovery shows is the one that is stored.
    let shared = || table.resources().find(|r| r.storage_prefix == resource.storage_prefix);
    let stored = custom.or_else(shared).map_or(resource, |stored| stored);
    let name = format!("{}/{}/{}", stored.group, stored.version, stored.kind);
    let hash = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &hash.as_ref()[..8])
}

fn verbs(verbs: &[Verb]) -> Vec<String> {
    verbs.iter().map(|verb| format!("{verb:?}").to_lowercase()).collect()
}

fn aggregated(
    table: &Table,
    core: bool,
    headers: &HeaderMap,
    output: Output,
) -> Response<ResponseBody> {
    let document: &Bytes = table.discovery[usize::from(core)]
        .get_or_init(|| aggregated_document(table, core).to_string().into());
    let mut hasher = DefaultHasher::new();
    document.hash(&mut hasher);
    let etag = format!("\"{:016X}\"", hasher.finish());
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == etag.as_str());
    let mut response = Response::new(match (known, output.pretty) {
        (true, _) => Bytes::new().into(),
        (false, true) => reply::indented(document).into(),
        (false, false) => document.clone().into(),
    });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(AGGREGATED));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

fn aggregated_document(table: &Table, core: bool) -> Value {
    let groups = all_groups(table).into_iter().filter(|group| group.name.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|(version, resources)| {
                    let resources: Vec<Value> =
                        resources.iter().map(|r| aggregated_resource(r)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items,
    })
}

fn aggregated_resource(resource: &Resource) -> Value {
    let mut value = json!({
        "resource": resource.plural, "singularResource": resource.singular,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "verbs": verbs(resource.verbs),
    });
    if !resource.short_names.is_empty() {
        value["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        value["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let below = resource.subresources.iter().map(|sub| aggregated_subresource(resource, sub));
        value["subresources"] = below.collect();
    }
    value
}

fn aggregated_subresource(resource: &Resource, sub: &Subresource) -> Value {
    let (group, version) = match &sub.group_version {
        Some((group, version)) => (group, version),
        None => (&resource.group, &resource.version),
    };
    json!({
        "subresource": sub.name, "verbs": verbs(sub.verbs),
        "responseKind": {"group": group, "version": version, "kind": sub.kind},
    })
}

fn root(table: &Table) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for group in groups(table) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|(v, _)| format!("/apis/{}/{v}", group.name)));
    }
    for path in ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"] {
        paths.push(path.to_owned());
    }
    json!({"paths": paths})
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.0+steersman",
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": format!("linux/{}", architecture()),
        "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
    })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{storage_version_hash, version_priority};
    use crate::registry::Registry;

    #[test]
    fn storage_versions_hash_as_kubernetes_hashes_them() {
        let table = Registry::new().table();
        let hash = |group: &str, version: &str, plural: &str| {
            storage_version_hash(&table, table.get(group, version, plural).unwrap())
        };
        assert_eq!(hash("", "v1", "pods"), "xPOwRZ+Yhw8=");
        assert_eq!(hash("apps", "v1", "deployments"), "8aSe+NMegvE=");
        assert_eq!(hash("", "v1", "events"), "r2yiGXH7wu8=");
        assert_eq!(hash("events.k8s.io", "v1", "events"), "r2yiGXH7wu8=");
        for version in ["v1", "v2"] {
            assert_eq!(hash("autoscaling", version, "horizontalpodautoscalers"), "qwQve8ut294=");
        }
    }

    #[test]
    fn stable_versions_come_before_beta_before_alpha_before_other_names() {
        let mut versions = ["foo", "v1alpha1", "v2", "v1", "v1beta1", "v10", "v1beta2"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
