//! Makes room for a Pod by removing others that matter less.
//!
//! On every node where that might help, all Pods of lower priority are taken away and put back one by
//! one, the most important first and those that a disruption budget protects before all others, as long
//! as the Pod still fits. Who cannot be put back is a victim. Of the nodes the one is chosen where the
//! least is lost.

mod budget;
mod trials;

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use k8s_openapi::api::core::v1::Pod;
use steersman::random;

use self::trials::Trials;
use super::handle::Handle;
use crate::framework::{
    Candidate, Code, Cycle, FitError, Interest, NodeRefusals, Plugin, PodInfo, Points, PostFilter,
    Refusal, Trial,
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
        let all = match lists_all {
            true => candidates.iter().map(|it| Candidate::clone(it)).collect(),
            false => Vec::new(),
        };
        let Some(best) = best(candidates) else {
            let why = "Preemption is not helpful for scheduling";
            error.refusals.absent = Some(Refusal::unresolvable(why));
            return Err(Refusal::unresolvable(error.message()));
        };
        let (node, victims) = (Arc::clone(&best.node), best.victims.clone());
        Ok(PostFilter { nominated_node: Some(node), victims, candidates: all })
    }

    fn candidates(
        &self,
        cycle: &Cycle<'_>,
        potential: &[usize],
        error: &mut FitError,
    ) -> Vec<Arc<Candidate>> {
        let mut trials = Trials::new(cycle);
        let wanted = self.candidates_wanted(potential.len());
        let offset = match potential.len() {
            0 => 0,
            count => usize::try_from(random::next_u64() % count as u64).unwrap_or_default(),
        };
        let mut found: Vec<Arc<Candidate>> = Vec::new();
        let mut hopeless = Vec::new();
        let mut has_kind_one = false;
        for step in 0..potential.len() {
            if has_kind_one && found.len() >= wanted {
                break;
            }
            let place = potential[(offset + step) % potential.len()];
            match trials.quickly(place) {
                Trial::Candidate(candidate) => {
                    has_kind_one |= candidate.violations == 0;
                    found.push(candidate);
                }
                Trial::Refused(refusal) => error.refusals.set(place, Refusal::clone(&refusal)),
                Trial::Hopeless => hopeless.push(place),
            }
        }
        if found.is_empty() {
            // Only now somebody wants to know why.
            for place in hopeless {
                match trials.in_full(place) {
                    Trial::Candidate(candidate) => found.push(candidate),
                    Trial::Refused(refusal) => error.refusals.set(place, Refusal::clone(&refusal)),
                    Trial::Hopeless => {}
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

/// The node where the least is lost: the fewest that a budget protects, the least important of the most
/// important ones, the least sum of priorities, the fewest Pods, and the one whose most important ones
/// have started last. Of equal ones the first.
pub(crate) fn best<C: Borrow<Candidate>>(candidates: Vec<C>) -> Option<C> {
    candidates.into_iter().min_by_key(|candidate| {
        let candidate: &Candidate = candidate.borrow();
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
