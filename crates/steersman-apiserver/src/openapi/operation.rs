//! One operation: a verb on a resource or subresource, as both versions describe it.

use serde_json::{Map, Value, json};
use steersman_rules::resource::Verb;

use super::definitions::{GVK, group_version_kind};
use super::{Dialect, names, parameters};

/// Whose operation it is, and what goes in and comes out.
pub(super) struct Operation<'a> {
    pub(super) dialect: Dialect,
    pub(super) verb: Verb,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    /// What follows the verb, group and version in its name, such as `NamespacedPodStatus`.
    pub(super) name: String,
    pub(super) description: String,
    /// `apiVersion` and kind of the extension.
    pub(super) kind: (String, &'a str),
    /// The definition of what it is about.
    pub(super) definition: String,
    /// The definition of the answer.
    pub(super) answer: String,
    pub(super) custom: bool,
    /// Whether it only reports changes, at one of the old paths.
    pub(super) watch_one: bool,
}

/// Group-versions and the like: a GET without parameters.
pub(super) struct Listing<'a> {
    pub(super) dialect: Dialect,
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) description: &'a str,
    pub(super) answer: String,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

impl Operation<'_> {
    pub(super) fn method(&self) -> &'static str {
        match self.verb {
            Verb::Create => "post",
            Verb::Update => "put",
            Verb::Patch => "patch",
            Verb::Delete | Verb::DeleteCollection => "delete",
            Verb::Get | Verb::List | Verb::Watch => "get",
        }
    }

    pub(super) fn render(&self) -> Value {
        let (api_version, kind) = &self.kind;
        let mut operation = json!({
            "description": self.description,
            "operationId": self.id(),
            "tags": [tag(self.group, self.version)],
            "x-kubernetes-action": self.action(),
            GVK: group_version_kind(api_version, kind),
            "responses": responses(self.dialect, self.codes(), &self.answer, &self.produces()),
        });
        // A watch at an old path has its parameters there.
        let mut parameters = match self.verb {
            Verb::Watch => Vec::new(),
            verb => parameters::of(self.dialect, verb, self.custom),
        };
        let body = self.body();
        match self.dialect {
            Dialect::V2 => {
                operation["schemes"] = json!(["https"]);
                operation["consumes"] = json!(self.consumes());
                operation["produces"] = json!(self.produces());
                parameters.extend(body.map(|(name, required)| parameters::body(&name, required)));
            }
            Dialect::V3 => {
                if let Some((name, required)) = body {
                    operation["requestBody"] = self.request_body(&name, required);
                }
            }
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        operation
    }

    /// `createCoreV1NamespacedPod`
    fn id(&self) -> String {
        let (verb, part) = match self.verb {
            Verb::Create => ("create", ""),
            Verb::Update => ("replace", ""),
            Verb::Patch => ("patch", ""),
            Verb::Delete => ("delete", ""),
            Verb::DeleteCollection => ("delete", "Collection"),
            Verb::Get => ("read", ""),
            Verb::List => ("list", ""),
            Verb::Watch => ("watch", ""),
        };
        let group = names::capitalised(&names::group(self.group));
        let version = names::capitalised(self.version);
        format!("{verb}{group}{version}{part}{}", self.name)
    }

    fn action(&self) -> &'static str {
        match self.verb {
            Verb::Create => "post",
            Verb::Update => "put",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch if self.watch_one => "watch",
            Verb::Watch => "watchlist",
        }
    }

    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        match self.verb {
            Verb::Create => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
            // Nobody says that an apply creates custom resources.
            Verb::Patch if self.custom => &[("200", "OK")],
            Verb::Update | Verb::Patch => &[("200", "OK"), ("201", "Created")],
            Verb::Delete => &[("200", "OK"), ("202", "Accepted")],
            _ => &[("200", "OK")],
        }
    }

    fn produces(&self) -> Vec<&'static str> {
        let mut types = vec![JSON, YAML];
        if self.custom {
            return types;
        }
        types.push(PROTOBUF);
        if matches!(self.verb, Verb::List | Verb::Watch) {
            types.extend(STREAMS);
        }
        types
    }

    fn consumes(&self) -> Vec<&'static str> {
        // Custom resources have no strategic merge.
        let known = |patch: &&str| !(self.custom && patch.contains("strategic"));
        match self.verb {
            Verb::Patch => PATCHES.into_iter().filter(known).collect(),
            _ if self.custom => vec![JSON, YAML],
            _ => vec!["*/*"],
        }
    }

    /// The definition of the request's body, and whether there must be one.
    fn body(&self) -> Option<(String, bool)> {
        match self.verb {
            Verb::Create | Verb::Update => Some((self.definition.clone(), true)),
            Verb::Patch => Some((names::meta("Patch"), true)),
            Verb::DeleteCollection if self.custom => None,
            Verb::Delete | Verb::DeleteCollection => Some((names::meta("DeleteOptions"), false)),
            Verb::Get | Verb::List | Verb::Watch => None,
        }
    }

    fn request_body(&self, definition: &str, required: bool) -> Value {
        let mut body = json!({"content": content(&self.consumes(), definition)});
        if required {
            body["required"] = true.into();
        }
        body
    }
}

impl Listing<'_> {
    pub(super) fn render(&self) -> Value {
        let types = [JSON, YAML, PROTOBUF];
        let mut operation = json!({
            "description": self.description,
            "operationId": self.id,
            "tags": [self.tag],
            "responses": responses(self.dialect, &[("200", "OK")], &self.answer, &types),
        });
        if self.dialect == Dialect::V2 {
            operation["schemes"] = json!(["https"]);
            operation["consumes"] = json!(types);
            operation["produces"] = json!(types);
        }
        json!({"get": operation})
    }
}

/// `core_v1`
pub(super) fn tag(group: &str, version: &str) -> String {
    format!("{}_{version}", names::group(group))
}

fn responses(dialect: Dialect, codes: &[(&str, &str)], definition: &str, types: &[&str]) -> Value {
    let schema = json!({"$ref": names::reference(dialect, definition)});
    let mut responses: Map<String, Value> = codes
        .iter()
        .map(|(code, text)| {
            let response = match dialect {
                Dialect::V2 => json!({"description": text, "schema": schema}),
                Dialect::V3 => json!({"description": text, "content": content(types, definition)}),
            };
            ((*code).to_owned(), response)
        })
        .collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    responses.into()
}

/// The same definition in several media types; only version 3 has this.
fn content(types: &[&str], definition: &str) -> Value {
    let schema = json!({"$ref": names::reference(Dialect::V3, definition)});
    types.iter().map(|ty| ((*ty).to_owned(), json!({"schema": schema}))).collect()
}
