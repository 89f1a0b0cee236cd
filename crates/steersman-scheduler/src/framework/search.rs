//! The search for a node: which can run a Pod, and which of them is the best.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::class_resources::ClassResources;
use super::cycle::{Compared, Cycle};
use super::fit_error::FitError;
use super::node_info::NodeInfo;
use super::plugin::{Plugin, Points, PreFilter, PreScore, SCORE_MAX};
use super::profile::{Enabled, Failure, Profile};
use super::refusal::{Code, Refusal};

/// With fewer nodes than this, every one is looked at.
const NODES_MIN: usize = 100;
/// At least this percentage of the nodes is looked at.
const PERCENTAGE_MIN: usize = 5;
/// Under which name scores are told to who follows at the level `TRACE`.
const SCORES: &str = "steersman_scheduler::scores";

/// The nodes that can run a Pod.
pub(crate) struct Feasible {
    pub(crate) nodes: Vec<Arc<NodeInfo>>,
    /// Their places in the snapshot, if they were looked for.
    places: Vec<usize>,
    /// The nodes that plug-ins left, if not all.
    only: Option<BTreeSet<String>>,
    /// Why others cannot.
    pub(crate) error: Box<FitError>,
}

impl Profile {
    /// Finds the best node for a Pod. `start` is where among the nodes to begin, and where the next
    /// Pod is to.
    pub(crate) fn schedule(
        &self,
        cycle: &mut Cycle<'_>,
        start: &mut usize,
    ) -> Result<Arc<NodeInfo>, Failure> {
        if cycle.snapshot.is_empty() {
            return Err(Failure::NoNodes);
        }
        let Feasible { mut nodes, places, .. } = self.feasible(cycle, start)?;
        if nodes.len() > 1 {
            cycle.state.insert(Compared(places.into()));
            let totals = self.scores(cycle, &nodes).map_err(Failure::Error)?;
            return Ok(nodes.swap_remove(top_of_heap(&totals)));
        }
        Ok(nodes.remove(0))
    }

    /// The nodes that can run a Pod, or so many of them that it is enough; at least one. If room was made
    /// for it, and there is, it is that node.
    pub(crate) fn feasible(
        &self,
        cycle: &mut Cycle<'_>,
        start: &mut usize,
    ) -> Result<Feasible, Failure> {
        let mut error = FitError { nodes: cycle.snapshot.len(), ..FitError::default() };
        let began = Instant::now();
        let only = self.pre_filter(cycle, &mut error);
        self.ran("PreFilter", &only.as_ref().map_err(Failure::code), began);
        let (nodes, places) = Default::default();
        let mut found = Feasible { nodes, places, only: only?, error: Box::new(error) };
        let nominated = cycle.info.nominated_node.as_deref();
        if let Some(node) = nominated.and_then(|name| cycle.snapshot.get(name))
            && self.filter_with_nominated(cycle, node).is_ok()
        {
            found.nodes.push(Arc::clone(node));
            return Ok(found);
        }
        self.search(cycle, start, found)
    }

    /// The same among all nodes that are left.
    pub(crate) fn search(
        &self,
        cycle: &Cycle<'_>,
        start: &mut usize,
        mut found: Feasible,
    ) -> Result<Feasible, Failure> {
        let began = Instant::now();
        found.nodes.clear();
        found.places.clear();
        let places: Option<Vec<usize>> = found
            .only
            .as_ref()
            .map(|names| names.iter().filter_map(|name| cycle.snapshot.place(name)).collect());
        let count = places.as_ref().map_or(cycle.snapshot.len(), Vec::len);
        let wanted = self.wanted(count);
        let mut looked_at = 0;
        // Who is kept to few nodes has hardly anybody who asks for the same.
        let mut known = places.is_none().then(|| cycle.snapshot.remembered(cycle));
        let asked = self.asked(cycle);
        for step in 0..count {
            if found.nodes.len() == wanted {
                break;
            }
            looked_at += 1;
            let place = (*start + step) % count;
            let place = places.as_ref().map_or(place, |places| places[place]);
            let node = &cycle.snapshot.nodes()[place];
            let verdict = match &mut known {
                Some(known) => self.judge(cycle, place, asked, known),
                None => self.filter_with_nominated(cycle, node),
            };
            match verdict {
                Ok(()) => {
                    found.nodes.push(Arc::clone(node));
                    found.places.push(place);
                }
                Err((plugin, refusal)) if refusal.code == Code::Error => {
                    let why = refusal.message();
                    return Err(Failure::Error(format!("running {plugin:?} filter plugin: {why}")));
                }
                Err((plugin, refusal)) => {
                    found.error.refused_by(plugin, &refusal);
                    found.error.refusals.set(place, refusal);
                }
            }
        }
        *start = (*start + looked_at) % cycle.snapshot.len();
        self.ran("Filter", &Ok(()), began);
        match found.nodes.is_empty() {
            true => Err(Failure::Fit(found.error)),
            false => Ok(found),
        }
    }

    /// How many nodes that can run a Pod are enough to choose from.
    fn wanted(&self, nodes: usize) -> usize {
        if self.at(Points::SCORE).next().is_none() && !self.looks_at_all {
            return 1;
        }
        if nodes < NODES_MIN {
            return nodes;
        }
        let percentage = match self.percentage {
            0 => 50_usize.saturating_sub(nodes / 125).max(PERCENTAGE_MIN),
            chosen => chosen,
        };
        (nodes * percentage / 100).max(NODES_MIN)
    }

    /// Lets plug-ins look at the Pod. Which nodes are left, if not all.
    fn pre_filter(
        &self,
        cycle: &mut Cycle<'_>,
        error: &mut FitError,
    ) -> Result<Option<BTreeSet<String>>, Failure> {
        let mut only: Option<BTreeSet<String>> = None;
        let mut restricting = BTreeSet::new();
        let mut refused = None;
        cycle.skipped_filters = 0;
        let classes = ClassResources::of(&cycle.info.requests.asked, &**cycle.lister);
        if !classes.is_empty() {
            cycle.state.insert(classes);
        }
        for (place, Enabled { plugin, .. }) in self.placed(Points::PRE_FILTER) {
            match self.pre_filter_by(place, cycle) {
                Ok(PreFilter::All) => {}
                Ok(PreFilter::Skip) => cycle.skipped_filters |= 1 << place,
                Ok(PreFilter::Only(names)) => {
                    restricting.insert(plugin.name());
                    let left: BTreeSet<String> = match only {
                        Some(others) => others.intersection(&names).cloned().collect(),
                        None => names,
                    };
                    if left.is_empty() {
                        error.plugins = restricting;
                        let why = unsatisfied(&error.plugins, " simultaneously");
                        return Err(refuse(error, Refusal::unresolvable(why)));
                    }
                    only = Some(left);
                }
                Err(refusal) if refusal.code == Code::Error => {
                    let why = refusal.message();
                    let name = plugin.name();
                    return Err(Failure::Error(format!(
                        "running PreFilter plugin {name:?}: {why}"
                    )));
                }
                Err(refusal) => {
                    error.refused_by(plugin.name(), &refusal);
                    if refusal.code != Code::Unschedulable {
                        return Err(refuse(error, refusal));
                    }
                    refused = Some(refusal);
                }
            }
        }
        if let Some(refusal) = refused {
            return Err(refuse(error, refusal));
        }
        if only.is_some() {
            let list = list(&restricting);
            let why = format!("node(s) didn't satisfy plugin(s) {list}");
            error.plugins.extend(restricting);
            error.refusals.absent = Some(Refusal::unresolvable(why));
        }
        Ok(only)
    }

    /// The weighted scores of these nodes.
    pub(crate) fn scores(
        &self,
        cycle: &mut Cycle<'_>,
        nodes: &[Arc<NodeInfo>],
    ) -> Result<Vec<i64>, String> {
        cycle.skipped_scores = 0;
        let began = Instant::now();
        for (place, Enabled { plugin, .. }) in self.placed(Points::PRE_SCORE) {
            match self.pre_score_by(place, cycle, nodes) {
                Ok(PreScore::Score) => {}
                Ok(PreScore::Skip) => cycle.skipped_scores |= 1 << place,
                Err(refusal) => {
                    let (name, why) = (plugin.name(), refusal.message());
                    return Err(format!("running PreScore plugin {name:?}: {why}"));
                }
            }
        }
        self.ran("PreScore", &Ok(()), began);
        let began = Instant::now();
        let mut totals = vec![0_i64; nodes.len()];
        let places = cycle.places_of(nodes);
        for (place, Enabled { plugin, weight, .. }) in self.placed(Points::SCORE) {
            if cycle.skipped_scores & (1 << place) != 0 {
                continue;
            }
            let mut scores = score(cycle, (place, &**plugin), nodes, &places);
            let it_began = self.begin(&cycle.state);
            plugin.normalize(cycle, nodes, &mut scores);
            self.took(plugin.name(), "ScoreExtensionNormalize", "Success", it_began);
            if let Some(score) = scores.iter().find(|score| !(0..=SCORE_MAX).contains(*score)) {
                let name = plugin.name();
                return Err(format!(
                    "applying score defaultWeights on Score plugins: plugin {name:?} returns an \
                     invalid score {score}, it should in the range of [0, {SCORE_MAX}] after \
                     normalizing"
                ));
            }
            for (total, score) in totals.iter_mut().zip(&mut scores) {
                *score = score.saturating_mul(*weight);
                *total = total.saturating_add(*score);
            }
            tell_scores(cycle, plugin.name(), nodes, &scores);
        }
        self.ran("Score", &Ok(()), began);
        Ok(totals)
    }
}

/// What a plug-in says of these nodes. Where that follows from a node, what is known is not asked again.
fn score(
    cycle: &Cycle<'_>,
    (number, plugin): (usize, &dyn Plugin),
    nodes: &[Arc<NodeInfo>],
    places: &[usize],
) -> Vec<i64> {
    if let Some(asked) = cycle.profile.evaluations(number) {
        asked.score.inc_by(nodes.len() as u64);
    }
    let began = cycle.profile.begin(&cycle.state);
    if let Some(scores) = plugin.score_all(cycle, nodes) {
        cycle.profile.took(plugin.name(), "Score", "Success", began);
        return scores;
    }
    let one = |node: &NodeInfo| {
        let began = began.map(|_| Instant::now());
        let score = plugin.score(cycle, node);
        cycle.profile.took(plugin.name(), "Score", "Success", began);
        score
    };
    if !plugin.scores_locally(cycle) {
        return nodes.iter().map(|node| one(node)).collect();
    }
    let all = cycle.snapshot.nodes();
    let mut known = cycle.snapshot.remembered(cycle);
    known.scores(number, places, |place| one(&all[place])).collect()
}

/// Tells the weighted scores of a plug-in, as kube-scheduler does at its highest level of logging.
fn tell_scores(cycle: &Cycle<'_>, plugin: &str, nodes: &[Arc<NodeInfo>], scores: &[i64]) {
    if !tracing::enabled!(target: SCORES, tracing::Level::TRACE) {
        return;
    }
    let pod = &cycle.info.key;
    for (node, score) in nodes.iter().zip(scores) {
        let node = node.name();
        tracing::trace!(target: SCORES, %pod, plugin, node, score, "plugin scored node for pod");
    }
}

fn refuse(error: &mut FitError, refusal: Refusal) -> Failure {
    error.pre_filter = Some(refusal.message());
    error.refusals.absent = Some(refusal);
    Failure::Fit(Box::new(std::mem::take(error)))
}

/// What is said if plug-ins leave no node.
fn unsatisfied(plugins: &BTreeSet<&'static str>, together: &str) -> String {
    match plugins.len() {
        1 => format!("node(s) didn't satisfy plugin {}", plugins.first().unwrap_or(&"")),
        _ => format!("node(s) didn't satisfy plugin(s) {}{together}", list(plugins)),
    }
}

/// Names as Go prints a list.
fn list(names: &BTreeSet<&'static str>) -> String {
    format!("[{}]", names.iter().copied().collect::<Vec<_>>().join(" "))
}

/// Which of equal scores Kubernetes takes: it makes a heap of them, without any randomness as long as
/// there are no extenders, and takes its top.
pub(crate) fn top_of_heap(scores: &[i64]) -> usize {
    let mut heap: Vec<usize> = (0..scores.len()).collect();
    for top in (0..heap.len() / 2).rev() {
        let mut at = top;
        loop {
            let mut child = 2 * at + 1;
            if child >= heap.len() {
                break;
            }
            if child + 1 < heap.len() && scores[heap[child + 1]] > scores[heap[child]] {
                child += 1;
            }
            if scores[heap[child]] <= scores[heap[at]] {
                break;
            }
            heap.swap(at, child);
            at = child;
        }
    }
    heap.first().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_scores_the_first_is_taken_unless_the_heap_moves_another_up() {
        assert_eq!(top_of_heap(&[5, 5, 5]), 0);
        assert_eq!(top_of_heap(&[1, 5, 5]), 1);
        assert_eq!(top_of_heap(&[1, 1, 5, 1, 5, 5]), 4);
        assert_eq!(top_of_heap(&[4, 1, 5, 1, 5]), 4);
    }

    #[test]
    fn so_many_nodes_are_enough() {
        let scoring = Enabled { plugin: Arc::new(Scoring), points: Points::SCORE, weight: 1 };
        let adaptive = Profile::new("p", 0, vec![scoring.clone()]);
        let table =
            [(10, 10), (99, 99), (100, 100), (200, 100), (1000, 420), (5000, 500), (20000, 1000)];
        for (nodes, wanted) in table {
            assert_eq!(adaptive.wanted(nodes), wanted, "{nodes}");
        }
        assert_eq!(Profile::new("p", 40, vec![scoring]).wanted(1000), 400);
        assert_eq!(Profile::new("p", 0, Vec::new()).wanted(1000), 1);
    }

    struct Scoring;

    impl Plugin for Scoring {
        fn name(&self) -> &'static str {
            "Scoring"
        }
    }
}
