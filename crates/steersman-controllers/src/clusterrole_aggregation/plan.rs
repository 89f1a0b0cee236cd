//! Which rules a ClusterRole gathers.

use std::sync::Arc;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::core::{ParseExpressionError, Selector, SelectorExt};

/// The rules that a role should have, if it has others: those of all roles that its selectors
/// match, in the order of the selectors and then of `all`, each once. Its own do not count.
pub(super) fn gathered(
    role: &ClusterRole,
    all: &[Arc<ClusterRole>],
) -> Result<Option<Vec<PolicyRule>>, ParseExpressionError> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    let aggregation = role.aggregation_rule.as_ref();
    for selector in
        aggregation.and_then(|rule| rule.cluster_role_selectors.as_ref()).into_iter().flatten()
    {
        let selector = Selector::try_from(selector.clone())?;
        for part in all.iter().filter(|part| part.metadata.name != role.metadata.name) {
            let labels = part.metadata.labels.clone().unwrap_or_default();
            if selector.matches(&labels) {
                part.rules.iter().flatten().for_each(|rule| add(&mut rules, rule));
            }
        }
    }
    let has: Vec<PolicyRule> = role.rules.iter().flatten().map(plain).collect();
    Ok((rules != has).then_some(rules))
}

/// Adds a rule that is not there yet.
fn add(rules: &mut Vec<PolicyRule>, rule: &PolicyRule) {
    let rule = plain(rule);
    if !rules.contains(&rule) {
        rules.push(rule);
    }
}

/// The rule without empty lists, which say as much as none.
fn plain(rule: &PolicyRule) -> PolicyRule {
    let filled = |list: &Option<Vec<String>>| list.clone().filter(|list| !list.is_empty());
    PolicyRule {
        api_groups: filled(&rule.api_groups),
        non_resource_urls: filled(&rule.non_resource_urls),
        resource_names: filled(&rule.resource_names),
        resources: filled(&rule.resources),
        verbs: rule.verbs.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn role(name: &str, labels: Value, rules: &[&str]) -> ClusterRole {
        let rules: Vec<Value> = rules.iter().map(|verb| rule(verb)).collect();
        let role = json!({"metadata": {"name": name, "labels": labels}, "rules": rules});
        serde_json::from_value(role).unwrap()
    }

    /// A rule that is told from others by its verb.
    fn rule(verb: &str) -> Value {
        json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]})
    }

    fn gathering(selectors: &Value, rules: &[&str]) -> ClusterRole {
        let mut role = role("all", json!({"part": "all"}), rules);
        let aggregation = json!({"clusterRoleSelectors": selectors});
        role.aggregation_rule = serde_json::from_value(aggregation).unwrap();
        role
    }

    #[test]
    fn rules_come_in_the_order_of_selectors_and_names_and_once() {
        let roles = [
            role("a", json!({"part": "one"}), &["get", "list"]),
            role("b", json!({"part": "two"}), &["watch", "get"]),
            role("c", json!({"part": "one"}), &["list", "create"]),
            role("d", json!({}), &["delete"]),
        ];
        let one = json!({"matchLabels": {"part": "one"}});
        let two = json!({"matchLabels": {"part": "two"}});
        let either = json!({"matchExpressions": [
            {"key": "part", "operator": "In", "values": ["one", "two", "all"]},
        ]});
        let table: [(&str, Value, &[&str], Option<&[&str]>); 8] = [
            ("one", json!([one]), &[], Some(&["get", "list", "create"])),
            ("another", json!([two]), &["get"], Some(&["watch", "get"])),
            ("two selectors", json!([two, one]), &[], Some(&["watch", "get", "list", "create"])),
            (
                "an expression",
                json!([either]),
                &["patch"],
                Some(&["get", "list", "watch", "create"]),
            ),
            ("everything", json!([{}]), &[], Some(&["get", "list", "watch", "create", "delete"])),
            ("what it has", json!([one]), &["get", "list", "create"], None),
            (
                "another order",
                json!([one]),
                &["list", "get", "create"],
                Some(&["get", "list", "create"]),
            ),
            ("nobody", json!([{"matchLabels": {"part": "none"}}]), &["get"], Some(&[])),
        ];
        for (what, selectors, has, wanted) in table {
            let role = gathering(&selectors, has);
            let mut all: Vec<Arc<ClusterRole>> = roles.iter().cloned().map(Arc::new).collect();
            all.insert(1, Arc::new(role.clone()));
            let found = gathered(&role, &all).unwrap();
            let verbs = |rules: Vec<PolicyRule>| rules.into_iter().flat_map(|rule| rule.verbs);
            let found = found.map(|rules| verbs(rules).collect::<Vec<_>>());
            let wanted =
                wanted.map(|wanted| wanted.iter().map(|verb| (*verb).to_owned()).collect());
            assert_eq!(found, wanted, "{what}");
        }
    }

    #[test]
    fn an_empty_list_in_a_rule_is_none() {
        let mut part = role("a", json!({"part": "one"}), &["get"]);
        part.rules.as_mut().unwrap()[0].resource_names = Some(Vec::new());
        let role = gathering(&json!([{"matchLabels": {"part": "one"}}]), &["get"]);
        assert_eq!(gathered(&role, &[Arc::new(part)]).unwrap(), None);
    }

    #[test]
    fn a_role_without_selectors_gathers_nothing_and_a_wrong_one_is_an_error() {
        assert_eq!(gathered(&gathering(&Value::Null, &[]), &[]).unwrap(), None);
        let wrong = json!([{"matchExpressions": [{"key": "a", "operator": "Near"}]}]);
        assert!(gathered(&gathering(&wrong, &[]), &[]).is_err());
    }
}
