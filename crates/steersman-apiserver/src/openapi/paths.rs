//! The paths of a resource, with an operation for every verb.

use serde_json::{Map, Value, json};
use steersman_rules::resource::{Resource, Subresource, Verb};
use steersman_rules::schema::builtin as table;

use super::operation::{Listing, Operation, tag};
use super::{Dialect, names, parameters};
use crate::mutate::delete;

/// A path and what can be done there.
pub(super) type PathItem = (String, Value);

/// Writes the paths of one resource.
pub(super) struct Paths<'a> {
    pub(super) dialect: Dialect,
    pub(super) resource: &'a Resource,
    pub(super) custom: bool,
}

/// `/api/v1` or `/apis/apps/v1`.
pub(super) fn base(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

impl Paths<'_> {
    pub(super) fn all(&self) -> Vec<PathItem> {
        let Resource { group, version, plural, namespaced, .. } = self.resource;
        let base = base(group, version);
        let scope = if *namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{base}{scope}/{plural}");
        let object = format!("{collection}/{{name}}");
        let mut items = Vec::new();
        if *namespaced {
            items.push(self.everywhere(format!("{base}/{plural}")));
        }
        items.push(self.item(
            &collection,
            &[Verb::List, Verb::Create, Verb::DeleteCollection],
            None,
        ));
        let on_one = [Verb::Get, Verb::Update, Verb::Delete, Verb::Patch];
        items.push(self.item(&object, &on_one, None));
        for sub in self.resource.subresources.iter().filter(|sub| !sub.is_connection()) {
            items.push(self.item(&format!("{object}/{}", sub.name), sub.verbs, Some(sub)));
        }
        if !self.custom && self.resource.verbs.contains(&Verb::Watch) {
            items.extend(self.watches(&base, scope));
        }
        items.retain(|(_, item)| item.as_object().is_some_and(|item| item.len() > 1));
        items
    }

    /// The paths for watching that came before the parameter `watch`.
    fn watches(&self, base: &str, scope: &str) -> Vec<PathItem> {
        let plural = &self.resource.plural;
        let scoped = self.scoped("");
        let kind = &self.resource.kind;
        let collection = format!("{base}/watch{scope}/{plural}");
        let one = format!("{collection}/{{name}}");
        let mut paths =
            vec![(one, scoped.clone(), true), (collection, format!("{scoped}List"), false)];
        if self.resource.namespaced {
            let name = format!("{kind}ListForAllNamespaces");
            paths.push((format!("{base}/watch/{plural}"), name, false));
        }
        let watch = |(path, name, one): (String, String, bool)| {
            let mut operation = self.operation(Verb::Watch, None);
            operation.name = name;
            operation.watch_one = one;
            operation.description = format!("watch {kind}; deprecated: use the parameter watch");
            let mut item = self.path_item(&path, vec![operation]);
            if let Some(shared) = item["parameters"].as_array_mut() {
                shared.extend(parameters::of(self.dialect, Verb::List, false));
            }
            (path, item)
        };
        paths.into_iter().map(watch).collect()
    }

    /// The list over all namespaces.
    fn everywhere(&self, path: String) -> PathItem {
        let mut operations = Vec::new();
        if self.resource.verbs.contains(&Verb::List) {
            let mut operation = self.operation(Verb::List, None);
            operation.name = format!("{}ForAllNamespaces", self.resource.kind);
            operations.push(operation);
        }
        let item = self.path_item(&path, operations);
        (path, item)
    }

    fn item(&self, path: &str, verbs: &[Verb], sub: Option<&Subresource>) -> PathItem {
        let known = verbs.iter().filter(|v| sub.is_some() || self.resource.verbs.contains(v));
        let operations = known.map(|verb| self.operation(*verb, sub)).collect();
        (path.to_owned(), self.path_item(path, operations))
    }

    fn path_item(&self, path: &str, operations: Vec<Operation<'_>>) -> Value {
        let mut item: Map<String, Value> = operations
            .into_iter()
            .map(|operation| (operation.method().to_owned(), operation.render()))
            .collect();
        let parameters = parameters::of_path(self.dialect, path, &self.resource.kind);
        item.insert("parameters".to_owned(), parameters.into());
        item.into()
    }

    /// `NamespacedPodStatus`
    fn scoped(&self, sub: &str) -> String {
        let scope = if self.resource.namespaced { "Namespaced" } else { "" };
        format!("{scope}{}{}", self.resource.kind, names::capitalised(sub))
    }

    fn operation<'b>(&'b self, verb: Verb, sub: Option<&'b Subresource>) -> Operation<'b> {
        let resource = self.resource;
        let (api_version, kind) = self.kind(sub);
        let definition = self.definition(&api_version, kind);
        let answer = match verb {
            Verb::List => self.definition(&resource.api_version(), &resource.list_kind),
            Verb::Watch => names::meta("WatchEvent"),
            Verb::Delete if tells_what_is_deleted(resource) => definition.clone(),
            Verb::Delete | Verb::DeleteCollection => names::meta("Status"),
            _ => definition.clone(),
        };
        // Upstream, operations on a custom resource's scale are operations on the resource.
        let shown = if self.custom {
            (resource.api_version(), &*resource.kind)
        } else {
            (api_version, kind)
        };
        Operation {
            dialect: self.dialect,
            verb,
            group: &resource.group,
            version: &resource.version,
            name: self.scoped(sub.map_or("", |sub| &sub.name)),
            description: self.description(verb, sub.map(|sub| &*sub.name)),
            kind: shown,
            definition,
            answer,
            custom: self.custom,
            watch_one: false,
        }
    }

    fn description(&self, verb: Verb, sub: Option<&str>) -> String {
        let kind = &self.resource.kind;
        let of = sub.map(|sub| format!("{sub} of ")).unwrap_or_default();
        match verb {
            Verb::List if self.custom => format!("list objects of kind {kind}"),
            Verb::List => format!("list or watch objects of kind {kind}"),
            Verb::Create => format!("create {of}{}{kind}", article(kind)),
            Verb::Delete => format!("delete {of}{}{kind}", article(kind)),
            Verb::DeleteCollection => format!("delete collection of {kind}"),
            Verb::Get => format!("read {of}the specified {kind}"),
            Verb::Update => format!("replace {of}the specified {kind}"),
            Verb::Patch => format!("partially update {of}the specified {kind}"),
            Verb::Watch => format!("watch {kind}"),
        }
    }

    /// The `apiVersion` and kind that a subresource speaks, or the resource itself.
    fn kind<'b>(&'b self, sub: Option<&'b Subresource>) -> (String, &'b str) {
        let of_parent = || self.resource.api_version();
        match sub {
            None => (of_parent(), &self.resource.kind),
            Some(sub) => match &sub.group_version {
                Some((group, version)) => (format!("{group}/{version}"), &sub.kind),
                None => (of_parent(), &sub.kind),
            },
        }
    }

    fn definition(&self, api_version: &str, kind: &str) -> String {
        let resource = self.resource;
        if self.custom && api_version == resource.api_version() {
            return names::custom(&resource.group, &resource.version, kind);
        }
        let list_of = (kind == resource.list_kind).then_some(&resource.kind);
        match (table::type_of(api_version, kind), list_of) {
            (Some(name), _) => names::builtin(name),
            (None, Some(item)) => {
                let name = table::type_of(api_version, item).unwrap_or_default();
                names::builtin(name) + "List"
            }
            (None, None) => names::meta("Status"),
        }
    }
}

/// Whether a deletion is said to answer with what it deletes. Of namespaces, which end later, that
/// is not said.
fn tells_what_is_deleted(resource: &Resource) -> bool {
    delete::answers_with_object(resource) && !resource.is("", "namespaces")
}

/// What stands before a kind; a plural has none.
fn article(noun: &str) -> &'static str {
    if noun.ends_with('s') && !noun.ends_with("ss") {
        ""
    } else if noun.starts_with(|c: char| "AEIOUaeiou".contains(c)) {
        "an "
    } else {
        "a "
    }
}

/// What a group-version has: the path above its resources.
pub(super) fn group_version(dialect: Dialect, group: &str, version: &str) -> PathItem {
    let name = names::capitalised(&names::group(group));
    let listing = Listing {
        dialect,
        id: format!("get{name}{}APIResources", names::capitalised(version)),
        tag: tag(group, version),
        description: "get available resources",
        answer: names::meta("APIResourceList"),
    };
    (base(group, version) + "/", listing.render())
}

/// What a group has.
pub(super) fn group(dialect: Dialect, group: &str) -> PathItem {
    let name = names::group(group);
    let listing = Listing {
        dialect,
        id: format!("get{}APIGroup", names::capitalised(&name)),
        tag: name,
        description: "get information of a group",
        answer: names::meta("APIGroup"),
    };
    (format!("/apis/{group}/"), listing.render())
}

/// What others check tokens with, which is text as far as these documents know.
fn openid(dialect: Dialect) -> [PathItem; 2] {
    let get = |id: &str, tag: &str, description: &str, media_type: &str| {
        let schema = json!({"type": "string"});
        let mut operation = json!({
            "description": description,
            "operationId": id,
            "tags": [tag],
            "responses": {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}},
        });
        match dialect {
            Dialect::V2 => {
                operation["schemes"] = json!(["https"]);
                operation["produces"] = json!([media_type]);
                operation["responses"]["200"]["schema"] = schema;
            }
            Dialect::V3 => {
                operation["responses"]["200"]["content"] = json!({media_type: {"schema": schema}});
            }
        }
        json!({"get": operation})
    };
    let configuration = get(
        "getServiceAccountIssuerOpenIDConfiguration",
        "WellKnown",
        "get the OpenID configuration of the issuer of service accounts' tokens",
        "application/json",
    );
    let keys = get(
        "getServiceAccountIssuerOpenIDKeyset",
        "openid",
        "get the public keys that service accounts' tokens are checked with",
        "application/jwk-set+json",
    );
    [
        ("/.well-known/openid-configuration/".to_owned(), configuration),
        ("/openid/v1/jwks/".to_owned(), keys),
    ]
}

/// The paths that belong to no group, with the name of the document that has them.
pub(super) fn roots(dialect: Dialect) -> [(&'static str, PathItem); 5] {
    let listing = |id: &str, tag: &str, description, answer| {
        let id = id.to_owned();
        let tag = tag.to_owned();
        Listing { dialect, id, tag, description, answer }.render()
    };
    let core = listing(
        "getCoreAPIVersions",
        "core",
        "get available API versions",
        names::meta("APIVersions"),
    );
    let groups = listing(
        "getAPIVersions",
        "apis",
        "get available API versions",
        names::meta("APIGroupList"),
    );
    let info = "io.k8s.apimachinery.pkg.version.Info".to_owned();
    let mut version = listing("getCodeVersion", "version", "get the version of the server", info);
    if dialect == Dialect::V2 {
        version["get"]["consumes"] = json!(["application/json"]);
        version["get"]["produces"] = json!(["application/json"]);
    }
    let [configuration, keys] = openid(dialect);
    [
        (".well-known/openid-configuration", configuration),
        ("openid/v1/jwks", keys),
        ("api", ("/api/".to_owned(), core)),
        ("apis", ("/apis/".to_owned(), groups)),
        ("version", ("/version/".to_owned(), version)),
    ]
}
