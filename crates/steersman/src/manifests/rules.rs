//! Rules of access: collected resource by resource, given out as few rules as say the same.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

/// A rule that allows these verbs on a resource, which is named as kubectl names it, with its group
/// and its subresource: `secrets`, `deployments.apps`, `deployments.apps/scale`, `pods/log`.
///
/// ```
/// use steersman::manifests::rule;
///
/// let rule = rule(["get", "patch"], "deployments.apps/scale");
/// assert_eq!(rule.api_groups.as_deref(), Some(&["apps".to_owned()][..]));
/// assert_eq!(rule.resources.as_deref(), Some(&["deployments/scale".to_owned()][..]));
/// assert_eq!(rule.verbs, ["get", "patch"]);
/// ```
pub fn rule(verbs: impl IntoIterator<Item = impl Into<String>>, resource: &str) -> PolicyRule {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (resource, None),
    };
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let resource = match subresource {
        Some(subresource) => format!("{resource}/{subresource}"),
        None => resource.to_owned(),
    };
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource]),
        verbs: verbs.into_iter().map(Into::into).collect(),
        ..PolicyRule::default()
    }
}

/// To follow a kind.
pub(super) const READ: &[&str] = &["get", "list", "watch"];
/// To follow a kind and to write its objects.
pub(super) const WRITE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

/// A resource of a group, `deployments` or `deployments/status`, and which objects of it if not all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    group: String,
    resource: String,
    names: Vec<String>,
}

/// Which verbs are needed on which resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    verbs: BTreeMap<Place, BTreeSet<String>>,
}

impl Rules {
    /// Adds verbs on one resource.
    pub(super) fn allow(&mut self, group: &str, resource: &str, verbs: &[&str]) {
        self.allow_named(group, resource, &[], verbs);
    }

    /// The same on some objects of the resource only; on all if none is named.
    pub(super) fn allow_named(
        &mut self,
        group: &str,
        resource: &str,
        names: &[String],
        verbs: &[&str],
    ) {
        let (group, resource, names) = (group.to_owned(), resource.to_owned(), names.to_owned());
        let known = self.verbs.entry(Place { group, resource, names }).or_default();
        known.extend(verbs.iter().map(|&verb| verb.to_owned()));
    }

    /// Adds all that others allow.
    pub(super) fn merge(&mut self, others: &Self) {
        for (place, verbs) in &others.verbs {
            self.verbs.entry(place.clone()).or_default().extend(verbs.iter().cloned());
        }
    }

    /// Whether nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.verbs.is_empty()
    }

    /// One rule for all resources of a group that need the same verbs.
    pub(super) fn policy_rules(&self) -> Vec<PolicyRule> {
        let mut rules: BTreeMap<Alike<'_>, Vec<String>> = BTreeMap::new();
        for (Place { group, resource, names }, verbs) in &self.verbs {
            rules.entry(Alike { group, names, verbs }).or_default().push(resource.clone());
        }
        let mut rules: Vec<PolicyRule> =
            rules.into_iter().map(|(alike, resources)| alike.rule(resources)).collect();
        rules.sort_by(|a, b| (&a.api_groups, &a.resources).cmp(&(&b.api_groups, &b.resources)));
        rules
    }
}

/// What resources must have in common to be in one rule.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike<'a> {
    group: &'a str,
    names: &'a [String],
    verbs: &'a BTreeSet<String>,
}

impl Alike<'_> {
    fn rule(self, resources: Vec<String>) -> PolicyRule {
        PolicyRule {
            api_groups: Some(vec![self.group.to_owned()]),
            resources: Some(resources),
            resource_names: Some(self.names.to_owned()).filter(|names| !names.is_empty()),
            verbs: self.verbs.iter().cloned().collect(),
            ..PolicyRule::default()
        }
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
