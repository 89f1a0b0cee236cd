//! A plain evaluator of roles: it looks at every rule of every binding, each time.

use serde_json::{Value, json};

use super::RBAC;
use crate::api::Api;

/// Roles and bindings, as they were written, by their paths.
#[derive(Default)]
pub(super) struct World {
    pub(super) roles: Vec<(String, Value)>,
    pub(super) bindings: Vec<(String, Value)>,
}

impl World {
    /// What a server has.
    pub(super) async fn of(api: &Api) -> Self {
        let mut world = Self::default();
        for (plural, is_role) in [
            ("clusterroles", true),
            ("roles", true),
            ("clusterrolebindings", false),
            ("rolebindings", false),
        ] {
            let list = api.get(&format!("{RBAC}/{plural}")).await.ok();
            let known = if is_role { &mut world.roles } else { &mut world.bindings };
            for item in list["items"].as_array().unwrap() {
                let mut item = item.clone();
                let metadata = item["metadata"].as_object_mut().unwrap();
                metadata.entry("namespace").or_insert(json!(""));
                known.push((plural.to_owned(), item));
            }
        }
        world
    }

    /// Whether somebody may, by looking at everything.
    pub(super) fn allows(&self, asked: &Value) -> bool {
        let namespace = asked["namespace"].as_str().unwrap();
        self.bindings.iter().any(|(_, binding)| {
            let at = binding["metadata"]["namespace"].as_str().unwrap();
            let concerns = |subject: &Value| match subject["kind"].as_str().unwrap() {
                "User" => subject["name"] == asked["user"],
                "Group" => asked["groups"].as_array().unwrap().contains(&subject["name"]),
                _ => {
                    let name = format!(
                        "system:serviceaccount:{}:{}",
                        subject["namespace"].as_str().unwrap(),
                        subject["name"].as_str().unwrap()
                    );
                    asked["user"] == *name
                }
            };
            let role = &binding["roleRef"];
            let home = if role["kind"] == "Role" { at } else { "" };
            let is_role = |role_object: &&(String, Value)| {
                let metadata = &role_object.1["metadata"];
                metadata["name"] == role["name"] && metadata["namespace"] == home
            };
            (at.is_empty() || at == namespace)
                && binding["subjects"].as_array().into_iter().flatten().any(concerns)
                && self.roles.iter().filter(is_role).any(|(_, role)| {
                    role["rules"].as_array().into_iter().flatten().any(|rule| allows(rule, asked))
                })
        })
    }
}

fn allows(rule: &Value, asked: &Value) -> bool {
    let texts = |field: &str| -> Vec<&str> {
        rule[field]
            .as_array()
            .map(|all| all.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    };
    let text = |field: &str| asked[field].as_str().unwrap();
    let matches =
        |field: &str, wanted: &str| texts(field).iter().any(|t| *t == "*" || *t == wanted);
    if !matches("verbs", text("verb")) {
        return false;
    }
    if !text("path").is_empty() {
        return texts("nonResourceURLs").iter().any(|url| {
            *url == text("path")
                || url.strip_suffix('*').is_some_and(|start| text("path").starts_with(start))
        });
    }
    let subresource = text("subresource");
    let whole = match subresource {
        "" => text("resource").to_owned(),
        subresource => format!("{}/{subresource}", text("resource")),
    };
    let any = format!("*/{subresource}");
    matches("apiGroups", text("group"))
        && (matches("resources", &whole) || (!subresource.is_empty() && matches("resources", &any)))
        && (texts("resourceNames").is_empty() || texts("resourceNames").contains(&text("name")))
}
