//! The plug-ins for the Pods of one scheduler name, and how they are run.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::Instant;

use super::cycle::Cycle;
use super::fit_error::FitError;
use super::node_info::NodeInfo;
use super::plugin::{
    Permit, Plugin, Points, PostFilter, PreFilter, PreScore, Replacement, SCORE_MAX,
};
use super::pod_info::PodInfo;
use super::refusal::{Code, Refusal};
use crate::metrics::SchedulerMetrics;

/// With fewer nodes than this, every one is looked at.
const NODES_MIN: usize = 100;
/// At least this percentage of the nodes is looked at.
const PERCENTAGE_MIN: usize = 5;
/// Plug-ins of one profile: which are skipped is noted in the bits of a number.
const PLUGINS_MAX: usize = 64;

/// Under which name scores are told to who follows at the level `TRACE`.
const SCORES: &str = "steersman_scheduler::scores";

/// A plug-in as a profile has it.
#[derive(Clone)]
pub(crate) struct Enabled {
    pub(crate) plugin: Arc<dyn Plugin>,
    /// The extension points at which it takes part.
    pub(crate) points: Points,
    /// How much its scores count.
    pub(crate) weight: i64,
}

/// The plug-ins for the Pods of one scheduler name.
#[derive(Clone)]
pub struct Profile {
    name: Arc<str>,
    /// How many of the nodes that can run a Pod are compared; zero leaves it to the scheduler.
    percentage: usize,
    plugins: Vec<Enabled>,
    /// The places of those that filter.
    filters: Vec<usize>,
    /// Where it tells how long they take, if somebody wants to know.
    metrics: Option<SchedulerMetrics>,
}

/// Why a Pod gets no node.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// There are no nodes.
    NoNodes,
    /// None can run it.
    Fit(Box<FitError>),
    /// Something went wrong.
    Error(String),
}

impl Failure {
    /// What it means for the Pod.
    fn code(&self) -> Code {
        match self {
            Self::Fit(error) => {
                error.refusals.absent.as_ref().map_or(Code::Unschedulable, |it| it.code)
            }
            Self::NoNodes => Code::UnschedulableAndUnresolvable,
            Self::Error(_) => Code::Error,
        }
    }
}

/// What came of helping a Pod that fits nowhere.
#[derive(Debug)]
pub(crate) enum Helped {
    /// There will be room.
    Yes(PostFilter),
    /// There will be none for now.
    No,
    /// Nor can there be on any node: if one was nominated, it is no more.
    Never,
}

impl Profile {
    /// A profile of these plug-ins.
    pub(crate) fn new(name: &str, percentage: usize, mut plugins: Vec<Enabled>) -> Self {
        plugins.truncate(PLUGINS_MAX);
        let filters = (0..plugins.len())
            .filter(|place| plugins[*place].points.contains(Points::FILTER))
            .collect();
        Self { name: name.into(), percentage, plugins, filters, metrics: None }
    }

    /// Tells from now on how long plug-ins take.
    pub(crate) fn measure(&mut self, metrics: SchedulerMetrics) {
        self.metrics = Some(metrics);
    }

    /// The plug-ins at an extension point have been run.
    pub(crate) fn ran<T>(&self, point: &str, result: &Result<T, Code>, since: Instant) {
        if let Some(metrics) = &self.metrics {
            let status = result.as_ref().err().map_or("Success", |code| code.as_str());
            metrics.ran(point, status, &self.name, since);
        }
    }

    /// The name in `spec.schedulerName` of its Pods.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The plug-ins at an extension point, in their order.
    pub(crate) fn at(&self, point: Points) -> impl Iterator<Item = &Arc<dyn Plugin>> {
        self.plugins.iter().filter(move |it| it.points.contains(point)).map(|it| &it.plugin)
    }

    /// The plug-in of this name.
    pub(crate) fn plugin(&self, name: &str) -> Option<&Arc<dyn Plugin>> {
        self.plugins.iter().map(|it| &it.plugin).find(|plugin| plugin.name() == name)
    }

    /// Whether a Pod may be queued; otherwise who keeps it from that.
    pub(crate) fn pre_enqueue(&self, pod: &Pod) -> Result<(), &'static str> {
        for plugin in self.at(Points::PRE_ENQUEUE) {
            plugin.pre_enqueue(pod).map_err(|_| plugin.name())?;
        }
        Ok(())
    }

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
        let mut feasible = self.feasible(cycle, start)?;
        if feasible.len() > 1 {
            let best = self.best(cycle, &feasible).map_err(Failure::Error)?;
            return Ok(feasible.swap_remove(best));
        }
        Ok(feasible.remove(0))
    }

    /// The nodes that can run a Pod, or so many of them that it is enough; at least one.
    fn feasible(
        &self,
        cycle: &mut Cycle<'_>,
        start: &mut usize,
    ) -> Result<Vec<Arc<NodeInfo>>, Failure> {
        let mut error = FitError { nodes: cycle.snapshot.len(), ..FitError::default() };
        let began = Instant::now();
        let only = self.pre_filter(cycle, &mut error);
        self.ran("PreFilter", &only.as_ref().map_err(Failure::code), began);
        let only = only?;
        let began = Instant::now();
        let nominated = cycle.info.nominated_node.as_deref();
        if let Some(node) = nominated.and_then(|name| cycle.snapshot.get(name))
            && self.filter_with_nominated(cycle, node).is_ok()
        {
            return Ok(vec![Arc::clone(node)]);
        }
        let places: Option<Vec<usize>> =
            only.map(|names| names.iter().filter_map(|name| cycle.snapshot.place(name)).collect());
        let count = places.as_ref().map_or(cycle.snapshot.len(), Vec::len);
        let wanted = self.wanted(count);
        let mut feasible = Vec::new();
        let mut looked_at = 0;
        for step in 0..count {
            if feasible.len() == wanted {
                break;
            }
            looked_at += 1;
            let place = (*start + step) % count;
            let place = places.as_ref().map_or(place, |places| places[place]);
            let node = &cycle.snapshot.nodes()[place];
            match self.filter_with_nominated(cycle, node) {
                Ok(()) => feasible.push(Arc::clone(node)),
                Err((plugin, refusal)) if refusal.code == Code::Error => {
                    let why = refusal.message();
                    return Err(Failure::Error(format!("running {plugin:?} filter plugin: {why}")));
                }
                Err((plugin, refusal)) => {
                    error.refused_by(plugin, &refusal);
                    error.refusals.set(place, refusal);
                }
            }
        }
        *start = (*start + looked_at) % cycle.snapshot.len();
        self.ran("Filter", &Ok(()), began);
        match feasible.is_empty() {
            true => Err(Failure::Fit(Box::new(error))),
            false => Ok(feasible),
        }
    }

    /// How many nodes that can run a Pod are enough to choose from.
    fn wanted(&self, nodes: usize) -> usize {
        if self.at(Points::SCORE).next().is_none() {
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
        for (place, Enabled { plugin, .. }) in self.placed(Points::PRE_FILTER) {
            match plugin.pre_filter(cycle) {
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

    fn placed(&self, point: Points) -> impl Iterator<Item = (usize, &Enabled)> {
        self.plugins.iter().enumerate().filter(move |(_, it)| it.points.contains(point))
    }

    /// Whether a node can run the Pod, also if those come to it that room is being made for.
    pub(crate) fn filter_with_nominated(
        &self,
        cycle: &Cycle<'_>,
        node: &NodeInfo,
    ) -> Result<(), (&'static str, Refusal)> {
        let nominated = expected(cycle, node);
        if !nominated.is_empty() {
            let mut trial = cycle.trial();
            let mut with = node.clone();
            for pod in nominated {
                with.add_pod(Arc::clone(pod));
                self.add_pod(&mut trial, pod, &with);
            }
            self.filter(&trial, &with)?;
        }
        self.filter(cycle, node)
    }

    /// Whether a node can run the Pod; otherwise who refuses it first, and why.
    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), (&'static str, Refusal)> {
        for &place in &self.filters {
            if cycle.skipped_filters & (1 << place) == 0 {
                let plugin = &self.plugins[place].plugin;
                plugin.filter(cycle, node).map_err(|refusal| (plugin.name(), refusal))?;
            }
        }
        Ok(())
    }

    /// Whether it is plain that a node cannot run the Pod, not even if these go.
    pub(crate) fn rules_out(
        &self,
        cycle: &Cycle<'_>,
        node: &NodeInfo,
        gone: &[Arc<PodInfo>],
    ) -> bool {
        let after = Replacement { gone, coming: &expected(cycle, node) };
        let mut filters = self.filters.iter().filter(|at| cycle.skipped_filters & (1 << **at) == 0);
        filters.any(|at| self.plugins[*at].plugin.rules_out(cycle, node, after))
    }

    /// Counts another Pod on a node in what plug-ins have prepared.
    pub(crate) fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, node: &NodeInfo) {
        for (place, Enabled { plugin, .. }) in self.placed(Points::PRE_FILTER) {
            if cycle.skipped_filters & (1 << place) == 0 {
                plugin.add_pod(cycle, pod, node);
            }
        }
    }

    /// Counts it no more.
    pub(crate) fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, node: &NodeInfo) {
        for (place, Enabled { plugin, .. }) in self.placed(Points::PRE_FILTER) {
            if cycle.skipped_filters & (1 << place) == 0 {
                plugin.remove_pod(cycle, pod, node);
            }
        }
    }

    /// Lets plug-ins help a Pod that fits nowhere, and notes in the error how that went.
    pub(crate) fn post_filter(&self, cycle: &Cycle<'_>, error: &mut FitError) -> Helped {
        let began = Instant::now();
        let helped = self.help(cycle, error);
        let result = match &helped {
            Helped::Yes(_) => Ok(()),
            Helped::No => Err(Code::Unschedulable),
            Helped::Never => Err(Code::UnschedulableAndUnresolvable),
        };
        self.ran("PostFilter", &result, began);
        helped
    }

    fn help(&self, cycle: &Cycle<'_>, error: &mut FitError) -> Helped {
        let mut reasons = Vec::new();
        let mut helped = Helped::No;
        for plugin in self.at(Points::POST_FILTER) {
            match plugin.post_filter(cycle, &error.refusals) {
                None => {}
                Some(Ok(help)) => {
                    error.post_filter = None;
                    return Helped::Yes(help);
                }
                Some(Err(refusal)) if refusal.code == Code::Error => {
                    reasons = vec![refusal.message()];
                    break;
                }
                Some(Err(refusal)) => {
                    reasons.push(refusal.message());
                    if refusal.code != Code::Unschedulable {
                        helped = Helped::Never;
                        break;
                    }
                }
            }
        }
        error.post_filter = (!reasons.is_empty()).then(|| reasons.join(", "));
        helped
    }

    /// The place of the best of these nodes.
    fn best(&self, cycle: &mut Cycle<'_>, nodes: &[Arc<NodeInfo>]) -> Result<usize, String> {
        let totals = self.scores(cycle, nodes)?;
        Ok(top_of_heap(&totals))
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
            match plugin.pre_score(cycle, nodes) {
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
        let mut scores = Vec::with_capacity(nodes.len());
        for (place, Enabled { plugin, weight, .. }) in self.placed(Points::SCORE) {
            if cycle.skipped_scores & (1 << place) != 0 {
                continue;
            }
            scores.clear();
            scores.extend(nodes.iter().map(|node| plugin.score(cycle, node)));
            plugin.normalize(cycle, nodes, &mut scores);
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

    /// Lets plug-ins take what the Pod needs; if one cannot, all give it back.
    pub(crate) fn reserve(
        &self,
        cycle: &mut Cycle<'_>,
        node: &NodeInfo,
    ) -> Result<(), (&'static str, Refusal)> {
        let began = Instant::now();
        for plugin in self.at(Points::RESERVE) {
            if let Err(refusal) = plugin.reserve(cycle, node) {
                self.ran::<()>("Reserve", &Err(refusal.code), began);
                self.unreserve(&cycle.state, cycle.info, node.name());
                return Err((plugin.name(), refusal));
            }
        }
        self.ran("Reserve", &Ok(()), began);
        Ok(())
    }

    /// Lets plug-ins give back what they took for a Pod, in the opposite order.
    pub(crate) fn unreserve(&self, state: &super::CycleState, pod: &PodInfo, node: &str) {
        for it in self.plugins.iter().rev().filter(|it| it.points.contains(Points::RESERVE)) {
            it.plugin.unreserve(state, pod, node);
        }
    }

    /// Whether a Pod may be bound: who makes it wait and for how long, or who is against it.
    pub(crate) fn permit(
        &self,
        cycle: &Cycle<'_>,
        node: &NodeInfo,
    ) -> Result<Vec<(&'static str, std::time::Duration)>, (&'static str, Refusal)> {
        let began = Instant::now();
        let mut waits = Vec::new();
        for plugin in self.at(Points::PERMIT) {
            match plugin.permit(cycle, node) {
                Permit::Allow => {}
                Permit::Wait(time) => waits.push((plugin.name(), time)),
                Permit::Reject(refusal) => {
                    self.ran::<()>("Permit", &Err(refusal.code), began);
                    return Err((plugin.name(), refusal));
                }
            }
        }
        self.ran("Permit", &Ok(()), began);
        Ok(waits)
    }
}

/// The Pods for which room is being made on a node, and which matter at least as much as the Pod.
fn expected<'a>(cycle: &Cycle<'a>, node: &NodeInfo) -> Vec<&'a Arc<PodInfo>> {
    let counts =
        |pod: &&Arc<PodInfo>| pod.priority >= cycle.info.priority && pod.uid != cycle.info.uid;
    cycle.nominator.on(node.name()).iter().filter(counts).collect()
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
fn top_of_heap(scores: &[i64]) -> usize {
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
