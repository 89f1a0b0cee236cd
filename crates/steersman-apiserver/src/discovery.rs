//! What is served, as clients ask for it: `/api`, `/apis`, `/version` and the list of paths.
//!
//! Old clients walk group by group; new ones ask `/api` and `/apis` once for everything, in the
//! aggregated form, and come back with the ETag. The [`documents`] are written in upstream's order.
//! Servers elsewhere are told of from what they last said, so that nobody waits for them.

mod documents;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};
use steersman_rules::resource::{Resource, Verb};
use steersman_rules::versions;

use self::documents::{
    ApiGroup, ApiGroupList, ApiResource, ApiResourceList, ApiVersions, GroupDiscovery,
    GroupDiscoveryList, GroupVersion, Metadata, ResourceDiscovery, ResourcesDiscovery,
    ServerAddress, Version, VersionDiscovery,
};
use crate::aggregation::local;
use crate::health;
use crate::negotiate::{Encoding, Output, Route, Shape, Wishes};
use crate::registry::Table;
use crate::reply::{self, ResponseBody};
use crate::state::Server;
use crate::state::remotes::{Discovery, Remote, Table as Remotes};
use crate::status::{Result, Status};

/// What a media type says of the aggregated form.
const AGGREGATED: &str = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a discovery path.
pub(crate) fn answer(
    server: &Server,
    path: &[&str],
    parts: &Parts,
) -> Result<Response<ResponseBody>> {
    let table = &server.registry.table();
    let remotes = &server.remotes.table();
    let wishes = Wishes::of(&parts.uri, &parts.headers);
    match path {
        [] | ["apis"] => {}
        ["api"] => wishes.check_route(Route::Object)?,
        ["version"] => wishes.check_route(Route::Json)?,
        ["apis", group] if table.resources().any(|resource| resource.group == *group) => {}
        ["apis", group] if remotes.values().any(|remote| remote.group == *group) => {}
        ["api", version] if table.serves("", version) => wishes.check_route(Route::Object)?,
        ["apis", group, version]
            if table.serves(group, version) || resident(remotes, group, version).is_some() =>
        {
            wishes.check_route(Route::Object)?;
        }
        _ => return Err(Status::no_such_resource()),
    }
    // The list of paths is of one form, whatever one likes.
    let output = if path.is_empty() {
        Output::default()
    } else {
        wishes.choose_document(&[Shape::Discovery])?
    };
    // What is not an object of the API is for people.
    let output = Output { pretty: output.pretty || matches!(path, [] | ["version"]), ..output };
    Ok(match path {
        ["api" | "apis"] if output.shape == Shape::Discovery => {
            let document = aggregated_document(server, table, remotes, path == ["api"]);
            aggregated(document, &parts.headers, output)
        }
        [] => respond(output, &json!({"paths": paths(table, remotes)})),
        ["version"] => respond(output, &version()),
        ["api"] => respond(output, &api_versions(server)),
        ["apis"] => {
            let groups =
                groups(table, remotes).iter().map(|group| api_group(group, false)).collect();
            let list = ApiGroupList { kind: "APIGroupList", api_version: "v1", groups };
            respond(output, &list)
        }
        ["apis", name] => {
            let groups = groups(table, remotes);
            let group = groups.iter().find(|group| group.name == *name);
            respond(output, &api_group(group.ok_or_else(Status::no_such_resource)?, true))
        }
        ["api", version] => respond(output, &resource_list(table, "", version)?),
        ["apis", group, version] => match resident(remotes, group, version) {
            Some(remote) => respond(output, &resident_list(remote)),
            None => respond(output, &resource_list(table, group, version)?),
        },
        _ => return Err(Status::no_such_resource()),
    })
}

fn respond(output: Output, document: &impl Serialize) -> Response<ResponseBody> {
    reply::document(StatusCode::OK, output, document)
}

/// A group with its versions, the preferred one first.
struct Group<'a> {
    name: &'a str,
    /// Where it stands among others: the highest is first.
    priority: i64,
    versions: Vec<Served<'a>>,
}

/// A version of a group.
struct Served<'a> {
    name: &'a str,
    priority: i64,
    resources: Resources<'a>,
}

/// What a version has, and who serves it.
enum Resources<'a> {
    Here(Vec<&'a Resource>),
    Elsewhere(&'a Remote),
}

impl<'a> Group<'a> {
    /// The name under which `/apis` sorts a group: that of the APIService of one of its versions,
    /// the first in the alphabet.
    fn service(&self) -> String {
        let services = self.versions.iter().map(|v| format!("{}.{}", v.name, self.name));
        services.min().unwrap_or_default()
    }
}

/// Groups while they are put together, with the places of what is known already: a group may have
/// thousands of versions.
#[derive(Default)]
struct Gathered<'a> {
    groups: Vec<Group<'a>>,
    places: HashMap<&'a str, usize>,
    versions: HashMap<(usize, &'a str), usize>,
}

impl<'a> Gathered<'a> {
    /// The version of that name, which is new if nobody has told of it, with the priorities of its
    /// group and of itself.
    fn version(
        &mut self,
        group: &'a str,
        name: &'a str,
        (in_groups, in_group): (i64, i64),
    ) -> &mut Served<'a> {
        let place = *self.places.entry(group).or_insert_with(|| {
            self.groups.push(Group { name: group, priority: in_groups, versions: Vec::new() });
            self.groups.len() - 1
        });
        let group = &mut self.groups[place];
        group.priority = group.priority.max(in_groups);
        let place = *self.versions.entry((place, name)).or_insert_with(|| {
            let resources = Resources::Here(Vec::new());
            group.versions.push(Served { name, priority: in_group, resources });
            group.versions.len() - 1
        });
        &mut group.versions[place]
    }
}

/// All groups, by priority and then by name.
fn all_groups<'a>(table: &'a Table, remotes: &'a Remotes) -> Vec<Group<'a>> {
    let mut gathered = Gathered::default();
    for resource in table.resources() {
        let priorities = local::priorities_of(resource);
        let version = gathered.version(&resource.group, &resource.version, priorities);
        if let Resources::Here(resources) = &mut version.resources {
            resources.push(resource);
        }
    }
    for remote in remotes.values() {
        let priorities = remote.priorities();
        let version = gathered.version(&remote.group, &remote.version, priorities);
        version.priority = priorities.1;
        version.resources = Resources::Elsewhere(remote);
    }
    let mut groups = gathered.groups;
    for group in &mut groups {
        group.versions.sort_by(|a, b| {
            b.priority.cmp(&a.priority).then_with(|| versions::order(b.name, a.name))
        });
    }
    groups.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.name.cmp(b.name)));
    groups
}

/// The groups but core, as the plain form has them: those of the same priority by their APIService.
fn groups<'a>(table: &'a Table, remotes: &'a Remotes) -> Vec<Group<'a>> {
    let mut groups = all_groups(table, remotes);
    groups.retain(|group| !group.name.is_empty());
    groups.sort_by_cached_key(|group| (Reverse(group.priority), group.service()));
    groups
}

fn api_versions(server: &Server) -> ApiVersions {
    let endpoint = server.reachable();
    let server_address = endpoint.map(|endpoint| endpoint.to_string()).unwrap_or_default();
    ApiVersions {
        kind: "APIVersions",
        versions: ["v1"],
        server_addresses: [ServerAddress { client_cidr: "0.0.0.0/0", server_address }],
    }
}

fn api_group(group: &Group<'_>, alone: bool) -> ApiGroup {
    let versions = group.versions.iter().map(|version| GroupVersion {
        group_version: format!("{}/{}", group.name, version.name),
        version: version.name.to_owned(),
    });
    let versions: Vec<GroupVersion> = versions.collect();
    ApiGroup {
        kind: alone.then_some("APIGroup"),
        api_version: alone.then_some("v1"),
        name: group.name.to_owned(),
        preferred_version: versions.first().cloned(),
        versions,
    }
}

fn resource_list(table: &Table, group: &str, version: &str) -> Result<ApiResourceList> {
    let known = table.resources().filter(|r| r.group == group && r.version == version);
    let resources: Vec<ApiResource> = known.flat_map(|resource| entries(table, resource)).collect();
    if resources.is_empty() {
        return Err(Status::no_such_resource());
    }
    let core = group.is_empty();
    Ok(ApiResourceList {
        kind: "APIResourceList",
        api_version: (!core).then_some("v1"),
        group_version: if core { version.to_owned() } else { format!("{group}/{version}") },
        resources,
    })
}

/// The server of a version that belongs to this one.
fn resident<'a>(remotes: &'a Remotes, group: &str, version: &str) -> Option<&'a Remote> {
    let mut residents = remotes.values().filter(|remote| remote.is_resident);
    residents
        .find(|remote| remote.group == group && remote.version == version)
        .map(|found| &**found)
}

/// What such a server has, as it would tell it itself.
fn resident_list(remote: &Remote) -> Value {
    let told = remote.told();
    let resources = told.resources.as_ref().and_then(Value::as_array).into_iter().flatten();
    let entry = |resource: &Value| {
        json!({
            "name": resource["resource"], "singularName": resource["singularResource"],
            "namespaced": resource["scope"] == "Namespaced",
            "kind": resource["responseKind"]["kind"], "verbs": resource["verbs"],
        })
    };
    json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": format!("{}/{}", remote.group, remote.version),
        "resources": resources.map(entry).collect::<Vec<_>>(),
    })
}

fn entries(table: &Table, resource: &Resource) -> Vec<ApiResource> {
    let stored = resource.verbs.contains(&Verb::Watch);
    let hash = if stored { storage_version_hash(table, resource) } else { String::new() };
    let below = resource.subresources.iter().map(|sub| ApiResource::below(resource, sub));
    std::iter::once(ApiResource::of(&shown(table, resource), hash)).chain(below).collect()
}

/// A resource as it is told of: what is defined by a definition that goes is not to be written.
fn shown<'a>(table: &Table, resource: &'a Resource) -> Cow<'a, Resource> {
    const ENDING: &[Verb] =
        &[Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List, Verb::Watch];
    let definition = resource.is_custom().then(|| resource.qualified());
    let custom = definition.and_then(|definition| table.custom(&definition));
    if custom.is_some_and(|custom| custom.terminating) {
        Cow::Owned(Resource { verbs: ENDING, ..resource.clone() })
    } else {
        Cow::Borrowed(resource)
    }
}

/// A name for how the objects are stored; Kubernetes gives the same. It has none for those of a
/// definition that are stored in a version that is not served.
fn storage_version_hash(table: &Table, resource: &Resource) -> String {
    let custom = table.custom(&resource.qualified()).map(|custom| &custom.storage);
    if custom.is_some_and(|it| table.get(&it.group, &it.version, &it.plural).is_none()) {
        return String::new();
    }
    // Of several built-in versions the first that discovery shows is the one that is stored.
    let shared = || table.resources().find(|r| r.storage_prefix == resource.storage_prefix);
    let stored = custom.or_else(shared).map_or(resource, |stored| stored);
    let version = match (stored.group.as_ref(), stored.plural.as_ref()) {
        // Kubernetes stores these in the version that it had before the stable one.
        ("apiextensions.k8s.io", "customresourcedefinitions")
        | (
            "admissionregistration.k8s.io",
            "mutatingadmissionpolicies" | "mutatingadmissionpolicybindings",
        ) => "v1beta1",
        _ => &stored.version,
    };
    let name = format!("{}/{version}/{}", stored.group, stored.kind);
    let hash = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &hash.as_ref()[..8])
}

/// Everything that is served in one document, which is written when something of it has changed.
fn aggregated_document(
    server: &Server,
    table: &Arc<Table>,
    remotes: &Arc<Remotes>,
    core: bool,
) -> Bytes {
    let written = || {
        let list = group_discovery_list(table, remotes, core);
        serde_json::to_vec(&list).expect("writing to memory cannot fail").into()
    };
    // What servers elsewhere tell changes without the table.
    let place = usize::from(core);
    match remotes.is_empty() {
        true => table.discovery[place].get_or_init(written).clone(),
        false => {
            let kept = &server.remotes.discovery[place];
            Discovery::get_or_write(kept, table, remotes, written)
        }
    }
}

fn aggregated(document: Bytes, headers: &HeaderMap, output: Output) -> Response<ResponseBody> {
    let mut hasher = DefaultHasher::new();
    document.hash(&mut hasher);
    let etag = format!("\"{:016X}\"", hasher.finish());
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == etag.as_str());
    let mut response = if known {
        let mut response = Response::new(ResponseBody::from(Bytes::new()));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        aggregated_in(document, output)
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// The aggregated form as it is liked.
fn aggregated_in(document: Bytes, output: Output) -> Response<ResponseBody> {
    let mut response = match output.encoding {
        Encoding::Yaml => {
            let document: Value = serde_json::from_slice(&document).unwrap_or_default();
            respond(output, &document)
        }
        _ if output.pretty => Response::new(reply::indented(&document).into()),
        _ => Response::new(document.into()),
    };
    let media_type = format!("{};{AGGREGATED}", output.encoding.media_type());
    if let Ok(media_type) = HeaderValue::from_str(&media_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    }
    response
}

fn group_discovery_list(table: &Table, remotes: &Remotes, core: bool) -> GroupDiscoveryList {
    let groups = all_groups(table, remotes);
    let groups = groups.into_iter().filter(|group| group.name.is_empty() == core);
    let items = groups.map(|group| GroupDiscovery {
        metadata: Metadata { name: group.name.to_owned() },
        versions: group.versions.iter().map(|served| version_discovery(table, served)).collect(),
    });
    GroupDiscoveryList {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: Metadata::default(),
        items: items.collect(),
    }
}

fn version_discovery(table: &Table, served: &Served<'_>) -> VersionDiscovery {
    let (resources, freshness) = match &served.resources {
        Resources::Here(resources) => {
            let shown = resources.iter().map(|resource| shown(table, resource));
            let resources = shown.map(|resource| ResourceDiscovery::of(&resource));
            (ResourcesDiscovery::Here(resources.collect()), "Current")
        }
        Resources::Elsewhere(remote) => {
            let told = remote.told();
            let resources = told.resources.clone().unwrap_or_default();
            let freshness = if told.current { "Current" } else { "Stale" };
            (ResourcesDiscovery::Elsewhere(resources), freshness)
        }
    };
    VersionDiscovery { version: served.name.to_owned(), resources, freshness }
}

/// Every path that says something by itself, in the order of the alphabet.
pub(crate) fn paths(table: &Table, remotes: &Remotes) -> Vec<String> {
    let fixed = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/flagz",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/statusz",
        "/version",
    ];
    let mut paths: Vec<String> = fixed.iter().map(|path| (*path).to_owned()).collect();
    for group in groups(table, remotes) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|v| format!("/apis/{}/{}", group.name, v.name)));
    }
    paths.extend(health::paths());
    paths.sort();
    paths
}

pub(crate) fn version() -> Version {
    Version {
        major: "1",
        minor: "36",
        emulation_major: "1",
        emulation_minor: "36",
        min_compatibility_major: "1",
        min_compatibility_minor: "35",
        git_version: "v1.36.0+steersman",
        git_commit: "",
        git_tree_state: "clean",
        build_date: "1970-01-01T00:00:00Z",
        go_version: "",
        compiler: "rustc",
        platform: format!("linux/{}", architecture()),
    }
}

/// The same as labels of a metric, in the order of the alphabet.
pub(crate) fn build_labels() -> [(&'static str, String); 9] {
    let version = version();
    [
        ("build_date", version.build_date.to_owned()),
        ("compiler", version.compiler.to_owned()),
        ("git_commit", version.git_commit.to_owned()),
        ("git_tree_state", version.git_tree_state.to_owned()),
        ("git_version", version.git_version.to_owned()),
        ("go_version", version.go_version.to_owned()),
        ("major", version.major.to_owned()),
        ("minor", version.minor.to_owned()),
        ("platform", version.platform),
    ]
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
    use super::storage_version_hash;
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
        let definitions = "customresourcedefinitions";
        assert_eq!(hash("apiextensions.k8s.io", "v1", definitions), "jfWCUB31mvA=");
        let admission = |plural: &str| hash("admissionregistration.k8s.io", "v1", plural);
        assert_eq!(admission("mutatingadmissionpolicies"), "LYmCf+UMVdg=");
        assert_eq!(admission("mutatingadmissionpolicybindings"), "90V5FRZZ3Zg=");
        assert_eq!(admission("validatingadmissionpolicies"), "6OxvlMmQ6is=");
        for version in ["v1", "v2"] {
            assert_eq!(hash("autoscaling", version, "horizontalpodautoscalers"), "qwQve8ut294=");
        }
    }
}
