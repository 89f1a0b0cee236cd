//! Rules of access: collected resource by resource, given out as few rules as say the same.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

/// To follow a kind.
pub(super) const READ: &[&str] = &["get", "list", "watch"];
/// To follow a kind and to write its objects.
pub(super) const WRITE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

/// Which verbs are needed on which resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// By group and resource, `deployments` or `deployments/status`.
    verbs: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Rules {
    /// Adds verbs on one resource.
    pub(super) fn allow(&mut self, group: &str, resource: &str, verbs: &[&str]) {
        let known = self.verbs.entry((group.to_owned(), resource.to_owned())).or_default();
        known.extend(verbs.iter().map(|&verb| verb.to_owned()));
    }

    /// Whether nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.verbs.is_empty()
    }

    /// One rule for all resources of a group that need the same verbs.
    pub(super) fn policy_rules(&self) -> Vec<PolicyRule> {
        let mut rules: BTreeMap<(&str, Vec<&str>), Vec<String>> = BTreeMap::new();
        for ((group, resource), verbs) in &self.verbs {
            let verbs = verbs.iter().map(String::as_str).collect();
            rules.entry((group, verbs)).or_default().push(resource.clone());
        }
        let mut rules: Vec<PolicyRule> = rules.into_iter().map(rule).collect();
        rules.sort_by(|a, b| (&a.api_groups, &a.resources).cmp(&(&b.api_groups, &b.resources)));
        rules
    }
}

fn rule(((group, verbs), resources): ((&str, Vec<&str>), Vec<String>)) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources),
        verbs: verbs.into_iter().map(str::to_owned).collect(),
        ..PolicyRule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rules: &Rules) -> Vec<String> {
        let text = |rule: PolicyRule| {
            let group = rule.api_groups.unwrap_or_default().join(",");
            let resources = rule.resources.unwrap_or_default().join(",");
            format!("{group}:{resources}:{}", rule.verbs.join(","))
        };
        rules.policy_rules().into_iter().map(text).collect()
    }

    #[test]
    fn verbs_of_one_resource_add_up() {
        let mut rules = Rules::default();
        rules.allow("", "pods", READ);
        rules.allow("", "pods", &["patch", "get"]);
        assert_eq!(shown(&rules), [":pods:get,list,patch,watch"]);
    }

    #[test]
    fn resources_of_one_group_with_the_same_verbs_share_a_rule() {
        let mut rules = Rules::default();
        rules.allow("apps", "deployments", READ);
        rules.allow("", "services", READ);
        rules.allow("", "pods", READ);
        rules.allow("", "configmaps", WRITE);
        let all = "create,delete,get,list,patch,update,watch";
        let expected = [
            &*format!(":configmaps:{all}"),
            ":pods,services:get,list,watch",
            "apps:deployments:get,list,watch",
        ];
        assert_eq!(shown(&rules), expected);
    }
}
