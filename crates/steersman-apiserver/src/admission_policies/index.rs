//! Which policies may be about a resource, without looking at the others.

use std::collections::HashMap;
use std::sync::Arc;

use steersman_rules::resource::Resource;

use super::hook::Hook;

/// Any group, or any resource.
const ANY: &str = "*";

/// The places of policies by the resources, then by the groups that their rules name.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_resource: HashMap<String, HashMap<String, Vec<usize>>>,
}

impl Index {
    pub(super) fn of(hooks: &[Hook]) -> Self {
        let mut index = Self::default();
        for (place, hook) in hooks.iter().enumerate() {
            for named in &hook.policy.constraints.rules {
                for plural in named.rule.resources() {
                    let by_group = index.by_resource.entry(plural.to_owned()).or_default();
                    for group in named.rule.groups() {
                        by_group.entry(group.clone()).or_default().push(place);
                    }
                }
            }
        }
        index
    }

    /// The policies that may be about a resource, in order. Under which other groups the same
    /// objects are served is only asked if any policy names the resource in another group.
    pub(super) fn candidates(
        &self,
        resource: &Resource,
        equivalents: &impl Fn() -> Vec<Arc<Resource>>,
    ) -> Vec<usize> {
        let mut found = Vec::new();
        for plural in [resource.plural.as_ref(), ANY] {
            let Some(by_group) = self.by_resource.get(plural) else { continue };
            let own = [resource.group.as_ref(), ANY];
            let mut groups: Vec<&Vec<usize>> =
                own.iter().filter_map(|group| by_group.get(*group)).collect();
            if groups.len() < by_group.len() {
                let others = equivalents();
                let others = others.iter().map(|other| other.group.as_ref());
                groups.extend(others.filter(|g| !own.contains(g)).filter_map(|g| by_group.get(g)));
            }
            groups.into_iter().for_each(|places| found.extend_from_slice(places));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
