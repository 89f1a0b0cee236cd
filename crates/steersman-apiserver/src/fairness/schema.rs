//! A `FlowSchema`, read: which requests are its own, and which of these belong together.

use serde_json::Value;
use steersman_rules::metadata;

use crate::authz::{Attributes, Target};
use crate::user::User;

/// What stands for everything in the lists of a rule.
const ANY: &str = "*";

/// The beginning of the name of a service account.
const ACCOUNT: &str = "system:serviceaccount:";

/// Which requests have which priority level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FlowSchema {
    pub(super) name: String,
    pub(super) uid: String,
    /// The smaller one is asked first.
    pub(super) precedence: i64,
    /// The name of the priority level.
    pub(super) level: String,
    distinguisher: Distinguisher,
    rules: Vec<PolicyRule>,
}

/// What makes two requests of a schema different flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distinguisher {
    Nothing,
    User,
    Namespace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PolicyRule {
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ResourceRule {
    verbs: Vec<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    namespaces: Vec<String>,
    cluster_scope: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PathRule {
    verbs: Vec<String>,
    paths: Vec<String>,
}

impl FlowSchema {
    /// Reads an object.
    pub(super) fn of(object: &Value) -> Self {
        let spec = &object["spec"];
        Self {
            name: metadata::text(object, "name").to_owned(),
            uid: metadata::text(object, "uid").to_owned(),
            precedence: spec["matchingPrecedence"].as_i64().unwrap_or(1000),
            level: text(&spec["priorityLevelConfiguration"]["name"]),
            distinguisher: match spec["distinguisherMethod"]["type"].as_str() {
                Some("ByUser") => Distinguisher::User,
                Some("ByNamespace") => Distinguisher::Namespace,
                _ => Distinguisher::Nothing,
            },
            rules: list(&spec["rules"]).map(PolicyRule::of).collect(),
        }
    }

    /// Whether a request is one of its own.
    pub(super) fn matches(&self, asked: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| rule.matches(asked))
    }

    /// What makes the flow of a request different from others of this schema.
    pub(super) fn distinguisher<'a>(&self, asked: &Attributes<'a>) -> &'a str {
        match (self.distinguisher, asked.target) {
            (Distinguisher::User, _) => &asked.user.name,
            (Distinguisher::Namespace, Target::Resource { namespace, .. }) => namespace,
            _ => "",
        }
    }
}

impl PolicyRule {
    fn of(rule: &Value) -> Self {
        Self {
            subjects: list(&rule["subjects"]).filter_map(Subject::of).collect(),
            resources: list(&rule["resourceRules"]).map(ResourceRule::of).collect(),
            paths: list(&rule["nonResourceRules"]).map(PathRule::of).collect(),
        }
    }

    fn matches(&self, asked: &Attributes<'_>) -> bool {
        if !self.subjects.iter().any(|subject| subject.is(asked.user)) {
            return false;
        }
        match asked.target {
            Target::Resource { group, resource, subresource, namespace, .. } => {
                let wanted = Wanted { verb: asked.verb, group, resource, subresource, namespace };
                self.resources.iter().any(|rule| rule.matches(&wanted))
            }
            Target::Path(path) => self.paths.iter().any(|rule| rule.matches(asked.verb, path)),
        }
    }
}

impl Subject {
    fn of(subject: &Value) -> Option<Self> {
        Some(match subject["kind"].as_str()? {
            "User" => Self::User(text(&subject["user"]["name"])),
            "Group" => Self::Group(text(&subject["group"]["name"])),
            "ServiceAccount" => Self::ServiceAccount {
                namespace: text(&subject["serviceAccount"]["namespace"]),
                name: text(&subject["serviceAccount"]["name"]),
            },
            _ => return None,
        })
    }

    fn is(&self, user: &User) -> bool {
        match self {
            Self::User(name) => name == ANY || *name == user.name,
            Self::Group(name) => name == ANY || user.groups.contains(name),
            Self::ServiceAccount { namespace, name } => {
                let account = user.name.strip_prefix(ACCOUNT).and_then(|name| name.split_once(':'));
                account.is_some_and(|(in_, called)| {
                    in_ == namespace && (name == ANY || called == name)
                })
            }
        }
    }
}

/// What of a request a rule about resources looks at.
struct Wanted<'a> {
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
}

impl ResourceRule {
    fn of(rule: &Value) -> Self {
        Self {
            verbs: texts(&rule["verbs"]),
            groups: texts(&rule["apiGroups"]),
            resources: texts(&rule["resources"]),
            namespaces: texts(&rule["namespaces"]),
            cluster_scope: rule["clusterScope"].as_bool().unwrap_or(false),
        }
    }

    fn matches(&self, wanted: &Wanted<'_>) -> bool {
        let is_resource = |named: &String| match wanted.subresource {
            "" => named == wanted.resource,
            subresource => named.split_once('/') == Some((wanted.resource, subresource)),
        };
        contains(&self.verbs, wanted.verb)
            && (is_any(&self.resources) || self.resources.iter().any(is_resource))
            && contains(&self.groups, wanted.group)
            && match wanted.namespace {
                "" => self.cluster_scope,
                namespace => contains(&self.namespaces, namespace),
            }
    }
}

impl PathRule {
    fn of(rule: &Value) -> Self {
        Self { verbs: texts(&rule["verbs"]), paths: texts(&rule["nonResourceURLs"]) }
    }

    fn matches(&self, verb: &str, path: &str) -> bool {
        let is_below = |pattern: &String| {
            let folder = pattern.strip_suffix('*').unwrap_or(pattern);
            let folder = folder.strip_suffix('/').unwrap_or(folder);
            path.strip_prefix(folder).is_some_and(|below| below.starts_with('/'))
        };
        let fits = |pattern: &String| pattern == ANY || pattern == path || is_below(pattern);
        contains(&self.verbs, verb) && self.paths.iter().any(fits)
    }
}

fn is_any(list: &[String]) -> bool {
    matches!(list, [one] if one == ANY)
}

fn contains(list: &[String], text: &str) -> bool {
    is_any(list) || list.iter().any(|item| item == text)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    list(value).map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::FlowSchema;
    use crate::authz::{Attributes, Target};
    use crate::user::User;

    fn schema(subject: &Value, rule: &Value) -> FlowSchema {
        FlowSchema::of(&json!({"metadata": {"name": "s"}, "spec": {
            "distinguisherMethod": {"type": "ByNamespace"},
            "rules": [{
                "subjects": [subject],
                "resourceRules": [rule],
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/a/*"]}],
            }],
        }}))
    }

    fn pods() -> Value {
        json!({
            "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/status"],
            "namespaces": ["a"],
        })
    }

    #[test]
    fn a_request_is_matched_by_verb_group_resource_and_namespace() {
        let jane = User::known("jane", &["team"]);
        let everybody = json!({"kind": "Group", "group": {"name": "system:authenticated"}});
        let anything = json!({
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
        });
        let everywhere = json!({
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true,
        });
        for (rule, verb, resource, subresource, namespace, expected) in [
            (pods(), "get", "pods", "", "a", true),
            (pods(), "get", "pods", "status", "a", true),
            (pods(), "get", "pods", "log", "a", false),
            (pods(), "watch", "pods", "", "a", false),
            (pods(), "get", "nodes", "", "a", false),
            (pods(), "get", "pods", "", "b", false),
            (pods(), "list", "pods", "", "", false),
            (anything.clone(), "list", "pods", "", "", false),
            (anything, "list", "pods", "log", "b", true),
            (everywhere.clone(), "list", "pods", "", "", true),
            (everywhere, "list", "pods", "", "a", false),
        ] {
            let target = Target::Resource { group: "", resource, subresource, namespace, name: "" };
            let asked = Attributes::new(&jane, verb, target);
            let schema = schema(&everybody, &rule);
            assert_eq!(schema.matches(&asked), expected, "{rule} {verb} {resource} {namespace}");
            assert_eq!(schema.distinguisher(&asked), namespace);
        }
    }

    #[test]
    fn paths_are_matched_whole_or_by_what_they_are_below() {
        let jane = User::known("jane", &[]);
        let schema = schema(&json!({"kind": "User", "user": {"name": "*"}}), &pods());
        for (verb, path, expected) in [
            ("get", "/healthz", true),
            ("get", "/healthz/ping", true),
            ("get", "/healthzy", false),
            ("head", "/healthz", false),
            ("get", "/a/b", true),
            ("get", "/a", false),
        ] {
            let asked = Attributes::new(&jane, verb, Target::Path(path));
            assert_eq!(schema.matches(&asked), expected, "{verb} {path}");
        }
    }

    #[test]
    fn subjects_are_users_groups_and_service_accounts() {
        let account = User::service_account("kube-system", "dns");
        let jane = User::known("jane", &["team"]);
        let of = |namespace: &str, name: &str| json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}});
        for (subject, user, expected) in [
            (json!({"kind": "User", "user": {"name": "jane"}}), &jane, true),
            (json!({"kind": "User", "user": {"name": "joe"}}), &jane, false),
            (json!({"kind": "Group", "group": {"name": "team"}}), &jane, true),
            (json!({"kind": "Group", "group": {"name": "*"}}), &jane, true),
            (json!({"kind": "Group", "group": {"name": "other"}}), &jane, false),
            (of("kube-system", "*"), &account, true),
            (of("kube-system", "dns"), &account, true),
            (of("kube-system", "proxy"), &account, false),
            (of("kube", "*"), &account, false),
            (of("kube-system", "*"), &jane, false),
        ] {
            let asked = Attributes::new(user, "get", Target::Path("/healthz"));
            assert_eq!(schema(&subject, &pods()).matches(&asked), expected, "{subject}");
        }
    }
}
