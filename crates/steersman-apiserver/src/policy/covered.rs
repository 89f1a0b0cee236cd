//! What of a rule an existing role does not permit yet, as Kubernetes compares rules: broken down
//! to single permissions, each of which one existing rule must cover.

use serde_json::Value;

use super::rules::Rule;
use crate::authz::{escalation, rule};

/// What to add to `existing` rules so that they permit all that these do. A rule that is there as
/// it stands is not looked into.
pub(super) fn missing(rules: &[Rule], existing: &[Value]) -> Vec<Value> {
    let unknown = rules.iter().filter(|rule| !existing.iter().any(|other| is(rule, other)));
    let wanted: Vec<rule::Rule> = unknown.map(|rule| rule::Rule::of(&rule.document())).collect();
    let existing: Vec<rule::Rule> = existing.iter().map(rule::Rule::of).collect();
    let missing = escalation::missing(&existing, &wanted);
    missing.iter().filter_map(|rule| rule.resource_rule().or_else(|| rule.path_rule())).collect()
}

/// Whether a rule stands in a document as it is.
fn is(rule: &Rule, document: &Value) -> bool {
    let known = document.as_object().map_or(0, serde_json::Map::len);
    let same = |(field, words): (&str, &str)| {
        let list = document[field].as_array();
        list.is_some_and(|list| list.iter().map(Value::as_str).eq(words.split(' ').map(Some)))
    };
    known == rule.lists().count() && rule.lists().all(same)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::rules::{Rule, rule, urls};
    use super::missing;

    #[test]
    fn only_what_is_not_permitted_yet_is_added() {
        const PODS: Rule = rule("get list", "", "pods pods/log");
        const NAMED: Rule = rule("get", "", "configmaps").named("a b");
        const PATHS: Rule = urls("get", "/livez /livez/etcd");
        let full = |verb: &str, resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": [verb]});
        let of_name = |name: &str| {
            json!({
                "apiGroups": [""], "resourceNames": [name], "resources": ["configmaps"],
                "verbs": ["get"],
            })
        };
        let path = |path: &str| json!({"nonResourceURLs": [path], "verbs": ["get"]});
        let table: [(&str, Rule, Value, Value); 12] = [
            ("the same", PODS, json!([PODS.document()]), json!([])),
            (
                "in other words",
                PODS,
                json!([
                    {"apiGroups": ["", "x"], "resources": ["pods/log", "pods"], "verbs": ["get", "list"]},
                ]),
                json!([]),
            ),
            (
                "everything",
                PODS,
                json!([
                    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                ]),
                json!([]),
            ),
            (
                "a verb less",
                PODS,
                json!([
                    {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"]},
                ]),
                json!([full("list", "pods"), full("list", "pods/log")]),
            ),
            (
                "all logs",
                PODS,
                json!([
                    {"apiGroups": [""], "resources": ["*/log"], "verbs": ["*"]},
                ]),
                json!([full("get", "pods"), full("list", "pods")]),
            ),
            (
                "another group",
                PODS,
                json!([
                    {"apiGroups": ["x"], "resources": ["pods/log"], "verbs": ["*"]},
                    full("*", "pods"),
                ]),
                json!([full("get", "pods/log"), full("list", "pods/log")]),
            ),
            (
                "some names do not make all",
                rule("get", "", "configmaps"),
                json!([of_name("a")]),
                json!([full("get", "configmaps")]),
            ),
            ("all names make some", NAMED, json!([full("get", "configmaps")]), json!([])),
            ("one name", NAMED, json!([of_name("b")]), json!([of_name("a")])),
            ("paths below", PATHS, json!([path("/livez*")]), json!([])),
            ("another path", PATHS, json!([path("/livez/*")]), json!([path("/livez")])),
            ("nothing", PATHS, json!([]), json!([path("/livez"), path("/livez/etcd")])),
        ];
        for (what, wanted, existing, added) in table {
            let existing = existing.as_array().unwrap();
            assert_eq!(json!(missing(&[wanted], existing)), added, "{what}");
        }
    }
}
