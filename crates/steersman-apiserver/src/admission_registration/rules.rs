//! Which requests a webhook wants to be asked about: groups, versions, resources, operations and
//! scope, any of which may be `*`.

use serde_json::Value;

use steersman_rules::resource::Resource;

/// What is done to an object, as rules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// Being led through the server to a node.
    Connect,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// One rule of a webhook or policy; all of its parts hold.
#[derive(Debug)]
pub(crate) struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    operations: Vec<String>,
    /// Whether objects must live in a namespace, or must not.
    namespaced: Option<bool>,
}

/// What a rule looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) operation: Operation,
    pub(crate) resource: &'a Resource,
    pub(crate) subresource: &'a str,
}

impl Rule {
    pub(crate) fn of(rule: &Value) -> Self {
        let split = |text: String| match text.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (text, String::new()),
        };
        Self {
            groups: texts(&rule["apiGroups"]),
            versions: texts(&rule["apiVersions"]),
            resources: texts(&rule["resources"]).into_iter().map(split).collect(),
            operations: texts(&rule["operations"]),
            namespaced: match rule["scope"].as_str() {
                Some("Namespaced") => Some(true),
                Some("Cluster") => Some(false),
                _ => None,
            },
        }
    }

    /// The groups that it names.
    pub(crate) fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The resources that it names, without subresources.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &str> {
        self.resources.iter().map(|(resource, _)| resource.as_str())
    }

    pub(crate) fn matches(&self, subject: Subject<'_>) -> bool {
        let Subject { operation, resource, subresource } = subject;
        self.namespaced.is_none_or(|namespaced| namespaced == resource.namespaced)
            && names(&self.operations, operation.as_str())
            && names(&self.groups, &resource.group)
            && names(&self.versions, &resource.version)
            && self
                .resources
                .iter()
                .any(|(name, part)| is(name, &resource.plural) && is(part, subresource))
    }
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn names(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| is(pattern, name))
}

fn is(pattern: &str, name: &str) -> bool {
    pattern == "*" || pattern == name
}

#[cfg(test)]
mod tests {
    use super::{Operation, Rule, Subject};
    use crate::registry::Registry;
    use serde_json::{Value, json};

    fn rule(resources: &Value) -> Value {
        json!({
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": resources,
        })
    }

    #[test]
    fn a_rule_names_resources_and_subresources_or_any_of_them() {
        let table = Registry::new().table();
        let pods = table.get("", "v1", "pods").unwrap();
        for (resources, pod, status) in [
            (json!(["pods"]), true, false),
            (json!(["pods/status"]), false, true),
            (json!(["pods/*"]), true, true),
            (json!(["*"]), true, false),
            (json!(["*/*"]), true, true),
            (json!(["*/status"]), false, true),
            (json!(["services", "services/status"]), false, false),
            (json!(["pods", "pods/status"]), true, true),
        ] {
            let compiled = Rule::of(&rule(&resources));
            let matches = |subresource: &str| {
                let operation = Operation::Create;
                compiled.matches(Subject { operation, resource: pods, subresource })
            };
            assert_eq!((matches(""), matches("status")), (pod, status), "{resources}");
        }
    }

    #[test]
    fn all_parts_of_a_rule_hold() {
        let table = Registry::new().table();
        let pods = table.get("", "v1", "pods").unwrap();
        let namespaces = table.get("", "v1", "namespaces").unwrap();
        for (field, value, pod, namespace) in [
            ("apiGroups", json!(["*"]), true, true),
            ("apiGroups", json!(["apps"]), false, false),
            ("apiVersions", json!(["v1beta1", "v1"]), true, true),
            ("apiVersions", json!(["v2"]), false, false),
            ("operations", json!(["UPDATE"]), false, false),
            ("operations", json!(["*"]), true, true),
            ("scope", json!("Namespaced"), true, false),
            ("scope", json!("Cluster"), false, true),
            ("scope", json!("*"), true, true),
        ] {
            let mut rule = rule(&json!(["*"]));
            rule[field] = value;
            let rule = Rule::of(&rule);
            let matches = |resource| {
                rule.matches(Subject { operation: Operation::Create, resource, subresource: "" })
            };
            assert_eq!((matches(pods), matches(namespaces)), (pod, namespace), "{field}");
        }
    }
}
