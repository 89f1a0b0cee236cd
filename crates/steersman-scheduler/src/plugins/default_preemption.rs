//! Makes room for a Pod by removing others that matter less.
//!
//! On every node where that might help, all Pods of lower priority are taken away and put back one by
//! one, the most important first and those that a disruption budget protects before all others, as long
//! as the Pod still fits. Who cannot be put back is a victim. Of the nodes the one is chosen where the
//! least is lost.

use std::cmp::{self, Reverse};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use steersman::random;

use super::handle::Handle;
use crate::framework::{
    Candidate, Code, Cycle, FitError, Interest, NodeInfo, NodeRefusals, Plugin, PodInfo, Points,
    PostFilter, Refusal, Selector,
};

/// Makes room.
pub(crate) struct DefaultPreemption {
    /// At least so many of every hundred nodes are tried,
    pub(crate) candidates_percentage: usize,
    /// and at least so many.
    pub(crate) candidates_min: usize,
    /// Knows whose victims are just being deleted; they are not to choose others meanwhile.
    handle: Arc<Handle>,
}

impl DefaultPreemption {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { candidates_percentage: 10, candidates_min: 100, handle }
    }

    fn candidates_wanted(&self, nodes: usize) -> usize {
        (nodes * self.candidates_percentage / 100).max(self.candidates_min).min(nodes)
    }

    fn preempt(&self, cycle: &Cycle<'_>, refusals: &NodeRefusals) -> Result<PostFilter, Refusal> {
        check_eligible(cycle, refusals)?;
        let helpful = |place: &usize| {
            refusals.at(*place).is_some_and(|refusal| refusal.code == Code::Unschedulable)
        };
        let potential: Vec<usize> = (0..cycle.snapshot.len()).filter(helpful).collect();
        let mut error = FitError { nodes: cycle.snapshot.len(), ..FitError::default() };
        let candidates = self.candidates(cycle, &potential, &mut error);
        let lists_all = self.handle.lists_candidates.load(Ordering::Relaxed);
        let all = if lists_all { candidates.clone() } else { Vec::new() };
        let Some(best) = best(candidates) else {
            let why = "Preemption is not helpful for scheduling";
            error.refusals.absent = Some(Refusal::unresolvable(why));
            return Err(Refusal::unresolvable(error.message()));
        };
        let Candidate { node, victims, .. } = best;
        Ok(PostFilter { nominated_node: Some(node), victims, candidates: all })
    }

    fn candidates(
        &self,
        cycle: &Cycle<'_>,
        potential: &[usize],
        error: &mut FitError,
    ) -> Vec<Candidate> {
        let budgets = Budget::all(cycle);
        let wanted = self.candidates_wanted(potential.len());
        let offset = match potential.len() {
            0 => 0,
            count => usize::try_from(random::next_u64() % count as u64).unwrap_or_default(),
        };
        let mut found: Vec<Candidate> = Vec::new();
        let mut hopeless = Vec::new();
        let mut has_kind_one = false;
        for step in 0..potential.len() {
            if has_kind_one && found.len() >= wanted {
                break;
            }
            let place = potential[(offset + step) % potential.len()];
            let node = &cycle.snapshot.nodes()[place];
            let lesser = lesser(cycle, node);
            if lesser.is_empty() || cycle.profile.rules_out(cycle, node, &lesser) {
                hopeless.push(place);
                continue;
            }
            match victims(cycle, node, lesser, &budgets) {
                Ok(candidate) => {
                    has_kind_one |= candidate.violations == 0;
                    found.push(candidate);
                }
                Err(refusal) => error.refusals.set(place, refusal),
            }
        }
        if found.is_empty() {
            // Only now somebody wants to know why.
            for place in hopeless {
                let node = &cycle.snapshot.nodes()[place];
                match victims(cycle, node, lesser(cycle, node), &budgets) {
                    Ok(candidate) => found.push(candidate),
                    Err(refusal) => error.refusals.set(place, refusal),
                }
            }
        }
        found.sort_by_key(|it| it.violations > 0);
        found
    }
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> &'static str {
        "DefaultPreemption"
    }

    fn points(&self) -> Points {
        Points::PRE_ENQUEUE | Points::POST_FILTER
    }

    fn interests(&self) -> &[Interest] {
        &[] // who refused the Pod before knows what helps
    }

    fn pre_enqueue(&self, pod: &Pod) -> Result<(), Refusal> {
        match pod.metadata.uid.as_deref() {
            Some(uid) if self.handle.preempting.contains(uid) => {
                Err(Refusal::unresolvable("waiting for the preemption for this pod to be finished"))
            }
            _ => Ok(()),
        }
    }

    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        refusals: &NodeRefusals,
    ) -> Option<Result<PostFilter, Refusal>> {
        Some(self.preempt(cycle, refusals).map_err(|refusal| refusal.prefixed("preemption: ")))
    }
}

/// Whether a Pod may make others go.
fn check_eligible(cycle: &Cycle<'_>, refusals: &NodeRefusals) -> Result<(), Refusal> {
    if cycle.spec().preemption_policy.as_deref() == Some("Never") {
        return Err(Refusal::unschedulable("not eligible due to preemptionPolicy=Never."));
    }
    let nominated = cycle.info.nominated_node.as_deref();
    let Some(place) = nominated.and_then(|name| cycle.snapshot.place(name)) else {
        return Ok(());
    };
    let refusal = refusals.at(place);
    if refusal.is_some_and(|it| it.code == Code::UnschedulableAndUnresolvable) {
        return Ok(()); // it cannot go there any more, whoever leaves
    }
    let mut pods = cycle.snapshot.nodes()[place].pods.iter();
    match pods.any(|pod| pod.priority < cycle.info.priority && pod.is_preempted) {
        true => Err(Refusal::unschedulable(
            "not eligible due to a terminating pod on the nominated node.",
        )),
        false => Ok(()),
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

/// How many Pods of a kind may still go.
struct Budget {
    namespace: String,
    selector: Selector,
    allowed: i32,
    /// Pods that are about to go, and counted already.
    disrupted: HashSet<String>,
}

impl Budget {
    fn all(cycle: &Cycle<'_>) -> Vec<Self> {
        cycle.lister.budgets().iter().map(|budget| Self::of(budget)).collect()
    }

    fn of(budget: &PodDisruptionBudget) -> Self {
        let status = budget.status.as_ref();
        let disrupted = status.and_then(|status| status.disrupted_pods.as_ref());
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        Self {
            namespace: budget.metadata.namespace.clone().unwrap_or_default(),
            selector: Selector::of(selector),
            allowed: status.and_then(|status| status.disruptions_allowed).unwrap_or(0),
            disrupted: disrupted.into_iter().flatten().map(|(name, _)| name.clone()).collect(),
        }
    }

    fn protects(&self, pod: &PodInfo) -> bool {
        self.namespace == pod.namespace()
            && !self.selector.is_empty()
            && self.selector.matches(&pod.labels)
            && !self.disrupted.contains(&*pod.key.name)
    }
}

/// Which Pods no budget lets go if all go, and the others; in the same order.
fn protected(
    pods: Vec<Arc<PodInfo>>,
    budgets: &[Budget],
) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
    let mut allowed: Vec<i32> = budgets.iter().map(|budget| budget.allowed).collect();
    pods.into_iter().partition(|pod| {
        let mut is_violating = false;
        if !pod.labels.is_empty() {
            for (budget, allowed) in budgets.iter().zip(&mut allowed) {
                if budget.protects(pod) {
                    *allowed -= 1;
                    is_violating |= *allowed < 0;
                }
            }
        }
        is_violating
    })
}

/// The node where the least is lost: the fewest that a budget protects, the least important of the most
/// important ones, the least sum of priorities, the fewest Pods, and the one whose most important ones
/// have started last. Of equal ones the first.
pub(crate) fn best(candidates: Vec<Candidate>) -> Option<Candidate> {
    candidates.into_iter().min_by_key(|candidate| {
        let victims = &candidate.victims;
        let top = victims.first().map_or(0, |pod| pod.priority);
        let weight = |pod: &Arc<PodInfo>| i64::from(pod.priority) + i64::from(i32::MAX) + 1;
        let of_top = victims.iter().filter(|pod| pod.priority == top);
        let earliest = of_top.filter_map(|pod| pod.start_time.as_ref()).map(|it| it.0).min();
        (
            candidate.violations,
            top,
            victims.iter().map(weight).sum::<i64>(),
            victims.len(),
            Reverse((earliest.is_none(), earliest)), // who has not started yet is new
        )
    })
}
