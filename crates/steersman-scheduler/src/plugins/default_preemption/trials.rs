//! Tries out who has to go from a node.

use std::cmp;
use std::sync::Arc;

use super::budget::{Budget, protected};
use crate::framework::{Candidate, Cycle, NodeInfo, PodInfo, Refusal, Remembered, Trial};

/// Tries out who has to go from nodes, unless that is known of a Pod that asks for the same.
pub(super) struct Trials<'a> {
    cycle: &'a Cycle<'a>,
    budgets: Vec<Budget>,
    /// What is known, if it follows from nodes and budgets alone.
    known: Option<Remembered<'a>>,
}

impl<'a> Trials<'a> {
    pub(super) fn new(cycle: &'a Cycle<'a>) -> Self {
        let budgets = cycle.lister.budgets();
        let mut known = cycle.profile.trials(cycle);
        if let Some(known) = &mut known {
            let versions = budgets.iter().map(|budget| budget.metadata.resource_version.clone());
            known.with_budgets(versions.map(Option::unwrap_or_default).collect());
        }
        let budgets = budgets.iter().map(|budget| Budget::of(budget)).collect();
        Self { cycle, budgets, known }
    }

    /// Who has to go from the node at a place; hopeless if a quick look shows that it is of no use.
    pub(super) fn quickly(&mut self, place: usize) -> Trial {
        if let Some(trial) = self.known.as_ref().and_then(|known| known.trial(place)) {
            return trial.clone();
        }
        let (cycle, node) = (self.cycle, &self.cycle.snapshot.nodes()[place]);
        let lesser = lesser(cycle, node);
        let trial = match lesser.is_empty() || cycle.profile.rules_out(cycle, node, &lesser) {
            true => Trial::Hopeless,
            false => tried(victims(cycle, node, lesser, &self.budgets)),
        };
        self.note(place, &trial);
        trial
    }

    /// The same, which is never hopeless without a reason.
    pub(super) fn in_full(&mut self, place: usize) -> Trial {
        let (cycle, node) = (self.cycle, &self.cycle.snapshot.nodes()[place]);
        let trial = tried(victims(cycle, node, lesser(cycle, node), &self.budgets));
        self.note(place, &trial);
        trial
    }

    fn note(&mut self, place: usize, trial: &Trial) {
        if let Some(known) = &mut self.known {
            known.tried(place, trial);
        }
    }
}

fn tried(victims: Result<Candidate, Refusal>) -> Trial {
    match victims {
        Ok(candidate) => Trial::Candidate(Arc::new(candidate)),
        Err(refusal) => Trial::Refused(Arc::new(refusal)),
    }
}

/// The Pods on a node that matter less than the Pod.
fn lesser(cycle: &Cycle<'_>, node: &NodeInfo) -> Vec<Arc<PodInfo>> {
    let lesser = node.pods.iter().filter(|pod| pod.priority < cycle.info.priority);
    lesser.cloned().collect()
}

/// Who of those that matter less has to go from a node so that the Pod fits there.
fn victims(
    cycle: &Cycle<'_>,
    node: &NodeInfo,
    mut lesser: Vec<Arc<PodInfo>>,
    budgets: &[Budget],
) -> Result<Candidate, Refusal> {
    if lesser.is_empty() {
        return Err(Refusal::unresolvable("No preemption victims found for incoming pod"));
    }
    let profile = cycle.profile;
    let mut trial = cycle.trial();
    let mut left = NodeInfo::clone(node);
    for pod in &lesser {
        left.remove_pod(&pod.uid);
        profile.remove_pod(&mut trial, pod, &left);
    }
    profile.filter_with_nominated(&trial, &left).map_err(|(_, refusal)| refusal)?;
    lesser.sort_by(|a, b| by_importance(a, b));
    let (violating, others) = protected(lesser, budgets);
    let mut victims = Vec::new();
    let mut violations = 0;
    let count = violating.len();
    for (number, pod) in violating.into_iter().chain(others).enumerate() {
        left.add_pod(Arc::clone(&pod));
        profile.add_pod(&mut trial, &pod, &left);
        if profile.filter_with_nominated(&trial, &left).is_err() {
            left.remove_pod(&pod.uid);
            profile.remove_pod(&mut trial, &pod, &left);
            violations += usize::from(number < count);
            victims.push(pod);
        }
    }
    victims.sort_by(|a, b| by_importance(a, b));
    match victims.is_empty() {
        // Room has come up meanwhile, as far as those count that it is being made for.
        true => Err(Refusal::error(format!(
            "expected at least one victim pod on node {:?}",
            node.name()
        ))),
        false => Ok(Candidate { node: node.name().into(), victims, violations }),
    }
}

/// The more important one first: by priority, then by who has run for longer.
fn by_importance(a: &PodInfo, b: &PodInfo) -> cmp::Ordering {
    let started = |pod: &PodInfo| pod.start_time.as_ref().map(|time| time.0);
    let by_start = match (started(a), started(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()), // who has not started yet is new
    };
    b.priority.cmp(&a.priority).then(by_start)
}
