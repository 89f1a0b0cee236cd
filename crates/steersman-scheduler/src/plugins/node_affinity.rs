//! A Pod goes only to nodes that match its node selector and its required node affinity, and rather to
//! those that it prefers.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Node, NodeAffinity as Wanted, NodeSelector, NodeSelectorTerm, Pod, PreferredSchedulingTerm,
};
use steersman::placement::{matches, selects};

use super::normalize::by_largest;
use crate::framework::{
    Action, ClusterEvent, Cycle, Hint, Interest, NodeInfo, Object, Plugin, Points, PreFilter,
    PreScore, Refusal, Resource,
};

/// Compares a Pod's node affinity, and one that holds for all Pods, with nodes.
#[derive(Default)]
pub(crate) struct NodeAffinity {
    /// What holds for all Pods of the profile.
    pub(crate) added: Option<Wanted>,
}

impl Plugin for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::FILTER | Points::PRE_SCORE | Points::SCORE
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_LABEL),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        let Object::Node(change) = &event.object else { return Hint::Queue };
        let fits = |node: &Node| {
            self.enforced().is_none_or(|enforced| matches(enforced, node))
                && pod.spec.as_ref().is_none_or(|spec| selects(spec, node))
        };
        let did_not = change.old.as_deref().is_none_or(|node| !fits(node));
        (did_not && change.new.as_deref().is_some_and(fits)).into()
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        let spec = cycle.spec();
        let required = required(of_pod(cycle.pod));
        let selects_nothing = spec.node_selector.is_none();
        if required.is_none() && self.enforced().is_none() && selects_nothing {
            return Ok(PreFilter::Skip);
        }
        let terms = required.map_or(&[][..], |required| &required.node_selector_terms);
        match named(terms) {
            Some(names) if names.is_empty() => {
                Err(Refusal::unresolvable("pod affinity terms conflict"))
            }
            Some(names) => Ok(PreFilter::Only(names)),
            None => Ok(PreFilter::All),
        }
    }

    fn is_local(&self) -> bool {
        true
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        if self.enforced().is_some_and(|enforced| !matches(enforced, &node.node)) {
            return Err(Refusal::unresolvable(
                "node(s) didn't match scheduler-enforced node affinity",
            ));
        }
        match selects(cycle.spec(), &node.node) {
            true => Ok(()),
            false => {
                Err(Refusal::unresolvable("node(s) didn't match Pod's node affinity/selector"))
            }
        }
    }

    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Arc<NodeInfo>]) -> Result<PreScore, Refusal> {
        let mut terms = self.preferred(cycle.pod);
        Ok(if terms.next().is_some() { PreScore::Score } else { PreScore::Skip })
    }

    fn scores_locally(&self, _: &Cycle<'_>) -> bool {
        true
    }

    fn score(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let terms = self.preferred(cycle.pod).filter(|term| prefers(term, &node.node));
        terms.map(|term| i64::from(term.weight)).sum()
    }

    fn normalize(&self, _: &Cycle<'_>, _: &[Arc<NodeInfo>], scores: &mut [i64]) {
        by_largest(scores, false);
    }
}

impl NodeAffinity {
    fn enforced(&self) -> Option<&NodeSelector> {
        required(self.added.as_ref())
    }

    fn preferred<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a PreferredSchedulingTerm> {
        let both = self.added.iter().chain(of_pod(pod));
        both.filter_map(|wanted| {
            wanted.preferred_during_scheduling_ignored_during_execution.as_ref()
        })
        .flatten()
    }
}

fn of_pod(pod: &Pod) -> Option<&Wanted> {
    pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()
}

fn required(wanted: Option<&Wanted>) -> Option<&NodeSelector> {
    wanted?.required_during_scheduling_ignored_during_execution.as_ref()
}

/// Whether a term speaks for a node. Unlike a required one, one that asks for nothing speaks for none.
fn prefers(term: &PreferredSchedulingTerm, node: &Node) -> bool {
    let selector = NodeSelector { node_selector_terms: vec![term.preference.clone()] };
    term.weight != 0 && matches(&selector, node)
}

/// The nodes that terms name, if every one of them does.
fn named(terms: &[NodeSelectorTerm]) -> Option<BTreeSet<String>> {
    let mut all: Option<BTreeSet<String>> = None;
    for term in terms {
        let mut of_term: Option<BTreeSet<String>> = None;
        for field in term.match_fields.iter().flatten() {
            if field.key == "metadata.name" && field.operator == "In" {
                let names: BTreeSet<String> = field.values.iter().flatten().cloned().collect();
                of_term = Some(match of_term {
                    Some(others) => others.intersection(&names).cloned().collect(),
                    None => names,
                });
            }
        }
        all.get_or_insert_default().extend(of_term?);
    }
    all
}
