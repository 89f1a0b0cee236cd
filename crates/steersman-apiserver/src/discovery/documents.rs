//! The documents of discovery, their fields in the order in which Kubernetes writes them: some
//! clients match their text.

use serde::Serialize;
use serde_json::Value;

use steersman_rules::resource::{Resource, Subresource, Verb};

/// `/api`
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiVersions {
    pub(super) kind: &'static str,
    pub(super) versions: [&'static str; 1],
    #[serde(rename = "serverAddressByClientCIDRs")]
    pub(super) server_addresses: [ServerAddress; 1],
}

/// Where clients of some addresses reach the server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerAddress {
    #[serde(rename = "clientCIDR")]
    pub(super) client_cidr: &'static str,
    pub(super) server_address: String,
}

/// `/apis`
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroupList {
    pub(super) kind: &'static str,
    pub(super) api_version: &'static str,
    pub(super) groups: Vec<ApiGroup>,
}

/// `/apis/{group}`, or one of `/apis`; there it does not say what it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_version: Option<&'static str>,
    pub(super) name: String,
    pub(super) versions: Vec<GroupVersion>,
    pub(super) preferred_version: Option<GroupVersion>,
}

/// A version of a group.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupVersion {
    pub(super) group_version: String,
    pub(super) version: String,
}

/// `/api/v1` and `/apis/{group}/{version}`; the first has no `apiVersion`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiResourceList {
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_version: Option<&'static str>,
    pub(super) group_version: String,
    pub(super) resources: Vec<ApiResource>,
}

/// A resource, or a subresource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    kind: String,
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    storage_version_hash: String,
}

impl ApiResource {
    /// The resource itself.
    pub(super) fn of(resource: &Resource, storage_version_hash: String) -> Self {
        Self {
            name: resource.plural.to_string(),
            singular_name: resource.singular.to_string(),
            namespaced: resource.namespaced,
            group: String::new(),
            version: String::new(),
            kind: resource.kind.to_string(),
            verbs: verbs(resource.verbs),
            short_names: texts(&resource.short_names),
            categories: texts(&resource.categories),
            storage_version_hash,
        }
    }

    /// One of its subresources.
    pub(super) fn below(resource: &Resource, sub: &Subresource) -> Self {
        let (group, version) = sub.group_version.clone().unwrap_or_default();
        Self {
            name: format!("{}/{}", resource.plural, sub.name),
            singular_name: String::new(),
            namespaced: resource.namespaced,
            group: group.to_string(),
            version: version.to_string(),
            kind: sub.kind.to_string(),
            verbs: verbs(sub.verbs),
            short_names: Vec::new(),
            categories: Vec::new(),
            storage_version_hash: String::new(),
        }
    }
}

/// Everything at once.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupDiscoveryList {
    pub(super) kind: &'static str,
    pub(super) api_version: &'static str,
    pub(super) metadata: Metadata,
    pub(super) items: Vec<GroupDiscovery>,
}

/// A group in it.
#[derive(Debug, Serialize)]
pub(super) struct GroupDiscovery {
    pub(super) metadata: Metadata,
    pub(super) versions: Vec<VersionDiscovery>,
}

/// The name of a group; the core group has none.
#[derive(Debug, Default, Serialize)]
pub(super) struct Metadata {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
}

/// A version of a group in it.
#[derive(Debug, Serialize)]
pub(super) struct VersionDiscovery {
    pub(super) version: String,
    #[serde(skip_serializing_if = "ResourcesDiscovery::is_unknown")]
    pub(super) resources: ResourcesDiscovery,
    pub(super) freshness: &'static str,
}

/// The resources of a version in it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ResourcesDiscovery {
    /// This server's own.
    Here(Vec<ResourceDiscovery>),
    /// As a server elsewhere told them; nothing, if it did not.
    Elsewhere(Value),
}

impl ResourcesDiscovery {
    fn is_unknown(&self) -> bool {
        matches!(self, Self::Elsewhere(Value::Null))
    }
}

/// A resource in it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceDiscovery {
    resource: String,
    response_kind: ResponseKind,
    scope: &'static str,
    singular_resource: String,
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery>,
}

/// A subresource in it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery {
    subresource: String,
    response_kind: ResponseKind,
    verbs: Vec<String>,
}

/// What is answered. An empty group and version are those that it stands in.
#[derive(Debug, Serialize)]
struct ResponseKind {
    group: String,
    version: String,
    kind: String,
}

impl ResourceDiscovery {
    /// A resource with its subresources. Those of definitions always tell group and version.
    pub(super) fn of(resource: &Resource) -> Self {
        let own = if resource.is_custom() {
            (resource.group.to_string(), resource.version.to_string())
        } else {
            Default::default()
        };
        let response_kind = |kind: &str, (group, version): (String, String)| ResponseKind {
            group,
            version,
            kind: kind.to_owned(),
        };
        let below = resource.subresources.iter().map(|sub| {
            let foreign = sub.group_version.as_ref().map(|(g, v)| (g.to_string(), v.to_string()));
            SubresourceDiscovery {
                subresource: sub.name.to_string(),
                response_kind: response_kind(&sub.kind, foreign.unwrap_or_else(|| own.clone())),
                verbs: verbs(sub.verbs),
            }
        });
        Self {
            resource: resource.plural.to_string(),
            response_kind: response_kind(&resource.kind, own.clone()),
            scope: if resource.namespaced { "Namespaced" } else { "Cluster" },
            singular_resource: resource.singular.to_string(),
            verbs: verbs(resource.verbs),
            short_names: texts(&resource.short_names),
            categories: texts(&resource.categories),
            subresources: below.collect(),
        }
    }
}

/// `/version`
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Version {
    pub(super) major: &'static str,
    pub(super) minor: &'static str,
    pub(crate) emulation_major: &'static str,
    pub(crate) emulation_minor: &'static str,
    pub(super) min_compatibility_major: &'static str,
    pub(super) min_compatibility_minor: &'static str,
    pub(crate) git_version: &'static str,
    pub(super) git_commit: &'static str,
    pub(super) git_tree_state: &'static str,
    pub(super) build_date: &'static str,
    pub(crate) go_version: &'static str,
    pub(super) compiler: &'static str,
    pub(super) platform: String,
}

fn verbs(verbs: &[Verb]) -> Vec<String> {
    verbs.iter().map(|verb| format!("{verb:?}").to_lowercase()).collect()
}

fn texts(texts: &[impl ToString]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}
