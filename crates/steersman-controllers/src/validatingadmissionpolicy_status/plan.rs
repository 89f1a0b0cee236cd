//! Which kinds a policy is checked for.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    NamedRuleWithOperations, ValidatingAdmissionPolicy,
};
use kube::core::GroupVersionKind;
use kube::core::discovery::v2::APIGroupDiscoveryList;

/// For how many kinds a policy is checked.
const KINDS_MAX: usize = 10;

/// A resource as discovery tells it.
#[derive(Clone, Debug)]
pub(super) struct Served {
    kind: GroupVersionKind,
    /// Its plural, and its singular.
    names: [String; 2],
}

/// Whether nobody has checked a policy since it was written.
pub(super) fn is_unchecked(policy: &ValidatingAdmissionPolicy) -> bool {
    let observed = policy.status.as_ref().and_then(|status| status.observed_generation);
    policy.metadata.generation.unwrap_or_default() > observed.unwrap_or_default()
}

/// Every resource in what discovery answered.
pub(super) fn served(list: APIGroupDiscoveryList) -> Vec<Served> {
    let mut served = Vec::new();
    for group in list.items {
        let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        for version in group.versions {
            let number = version.version.unwrap_or_default();
            for resource in version.resources {
                let kind = resource.response_kind.and_then(|kind| kind.kind).unwrap_or_default();
                served.push(Served {
                    kind: GroupVersionKind::gvk(&name, &number, &kind),
                    names: [resource.resource, resource.singular_resource]
                        .map(Option::unwrap_or_default),
                });
            }
        }
    }
    served
}

/// The kinds that the rules of a policy name, by group, version and kind. Rules with a `*` name
/// none, and of one that names many the first are taken.
pub(super) fn kinds(
    policy: &ValidatingAdmissionPolicy,
    served: &[Served],
) -> Vec<GroupVersionKind> {
    let constraints = policy.spec.as_ref().and_then(|spec| spec.match_constraints.as_ref());
    let rules = constraints.and_then(|constraints| constraints.resource_rules.as_ref());
    let mut found: BTreeSet<(&str, &str, &str)> = BTreeSet::new();
    for rule in rules.into_iter().flatten() {
        let named = named(rule, served);
        let is_full = named.len() >= KINDS_MAX;
        let taken = named.into_iter().take(KINDS_MAX);
        found.extend(taken.map(|kind| (&*kind.group, &*kind.version, &*kind.kind)));
        if is_full {
            break;
        }
    }
    let kinds = found.into_iter();
    kinds.map(|(group, version, kind)| GroupVersionKind::gvk(group, version, kind)).collect()
}

/// The kinds that one rule names, in order. The group without a name stands for every group that
/// has the version, as whoever leaves out the group means.
fn named<'a>(rule: &NamedRuleWithOperations, served: &'a [Served]) -> Vec<&'a GroupVersionKind> {
    let exact = |names: &Option<Vec<String>>| {
        let mut names = names.clone().unwrap_or_default();
        names.sort();
        if names.iter().any(|name| name.contains('*')) { Vec::new() } else { names }
    };
    let mut resources = rule.resources.clone().unwrap_or_default();
    resources.retain(|resource| !resource.contains(['*', '/']));
    resources.sort();
    let mut found = Vec::new();
    for group in exact(&rule.api_groups) {
        for version in exact(&rule.api_versions) {
            for resource in &resources {
                let resource = resource.to_lowercase();
                let is_meant = |it: &&Served| {
                    it.kind.version == version
                        && (group.is_empty() || it.kind.group == group)
                        && it.names.contains(&resource)
                };
                found.extend(served.iter().filter(is_meant).map(|it| &it.kind));
            }
        }
    }
    found
}

/// The kind of a policy's parameters; `None` if it has none.
pub(super) fn param_kind(policy: &ValidatingAdmissionPolicy) -> Option<GroupVersionKind> {
    let kind = policy.spec.as_ref()?.param_kind.as_ref()?;
    let api_version = kind.api_version.as_deref().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let name = kind.kind.as_deref().unwrap_or_default();
    (!version.contains('/')).then(|| GroupVersionKind::gvk(group, version, name))
}
