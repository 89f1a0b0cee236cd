//! The plug-ins for the Pods of one scheduler name, and how they are run.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::Instant;

use super::cycle::{Cycle, CycleState, Timed};
use super::fit_error::FitError;
use super::node_info::NodeInfo;
use super::plugin::{Permit, Plugin, Points, PostFilter, PreFilter, PreScore, Replacement};
use super::pod_info::PodInfo;
use super::refusal::{Code, Refusal};
use super::verdicts::{Remembered, Verdict};
use crate::metrics::{Evaluations, SchedulerMetrics};

/// Plug-ins of one profile: which are skipped is noted in the bits of a number.
const PLUGINS_MAX: usize = 64;

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
    pub(super) percentage: usize,
    plugins: Vec<Enabled>,
    /// The places of those at each extension point, in the order in which they are run there.
    order: [Vec<usize>; Points::EACH.len()],
    /// Whether more than one node is looked for, although no plug-in compares them.
    pub(super) looks_at_all: bool,
    /// Where it tells how long they take, if somebody wants to know.
    meter: Option<Meter>,
}

/// Where a profile tells what its plug-ins do.
#[derive(Clone)]
struct Meter {
    metrics: SchedulerMetrics,
    /// How often each was asked, by its place.
    evaluations: Vec<Evaluations>,
}

/// Who is asked about nodes, in the bits of the places in the profile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    /// Those at first that are [local](Plugin::is_local).
    local: u64,
    /// All others.
    others: u64,
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
    pub(super) fn code(&self) -> Code {
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
        let mut order: [Vec<usize>; Points::EACH.len()] = Default::default();
        for (place, enabled) in plugins.iter().enumerate() {
            let points = Points::EACH.iter().zip(&mut order);
            let taking_part = points.filter(|(point, _)| enabled.points.contains(**point));
            taking_part.for_each(|(_, places)| places.push(place));
        }
        let name = name.into();
        Self { name, percentage, plugins, order, looks_at_all: false, meter: None }
    }

    /// Lets plug-ins of these names be run in this order at a point. All of them take part there, and
    /// nobody else does.
    pub(crate) fn arrange(&mut self, point: Points, names: &[&str]) {
        let place = |name: &&str| self.plugins.iter().position(|it| it.plugin.name() == *name);
        self.order[point.number()] = names.iter().filter_map(place).collect();
    }

    /// The places of the plug-ins at an extension point, in their order.
    fn places(&self, point: Points) -> &[usize] {
        &self.order[point.number()]
    }

    /// Somebody else has a say about which node it is.
    pub(crate) fn look_at_all(&mut self) {
        self.looks_at_all = true;
    }

    /// Tells from now on how long plug-ins take.
    pub(crate) fn measure(&mut self, metrics: SchedulerMetrics) {
        let of = |it: &Enabled| {
            let asked = |point, name: &'static str| match it.points.contains(point) {
                true => metrics.plugins.evaluations(it.plugin.name(), name, &self.name),
                false => Default::default(),
            };
            Evaluations {
                pre_filter: asked(Points::PRE_FILTER, "PreFilter"),
                filter: asked(Points::FILTER, "Filter"),
                pre_score: asked(Points::PRE_SCORE, "PreScore"),
                score: asked(Points::SCORE, "Score"),
            }
        };
        let evaluations = self.plugins.iter().map(of).collect();
        self.meter = Some(Meter { metrics, evaluations });
    }

    /// The plug-ins at an extension point have been run.
    pub(crate) fn ran<T>(&self, point: &str, result: &Result<T, Code>, since: Instant) {
        if let Some(meter) = &self.meter {
            let status = result.as_ref().err().map_or("Success", |code| code.as_str());
            meter.metrics.ran(point, status, &self.name, since);
        }
    }

    /// When a plug-in begins, if it is measured in this attempt how long each takes.
    pub(crate) fn begin(&self, state: &CycleState) -> Option<Instant> {
        (self.meter.is_some() && state.get::<Timed>().is_some()).then(Instant::now)
    }

    /// A plug-in that began then has done what it does at a point.
    pub(crate) fn took(
        &self,
        plugin: &'static str,
        point: &'static str,
        status: &'static str,
        began: Option<Instant>,
    ) {
        if let (Some(meter), Some(began)) = (&self.meter, began) {
            meter.metrics.plugins.took(plugin, point, status, began);
        }
    }

    /// How often the plug-in at a place was asked.
    pub(super) fn evaluations(&self, place: usize) -> Option<&Evaluations> {
        self.meter.as_ref()?.evaluations.get(place)
    }

    /// Lets the plug-in at a place look at the Pod.
    pub(super) fn pre_filter_by(
        &self,
        place: usize,
        cycle: &mut Cycle<'_>,
    ) -> Result<PreFilter, Refusal> {
        let plugin = &*self.plugins[place].plugin;
        let began = self.begin(&cycle.state);
        let looked = plugin.pre_filter(cycle);
        let is_skipped = matches!(looked, Ok(PreFilter::Skip));
        self.took(plugin.name(), "PreFilter", status_of(is_skipped, looked.as_ref().err()), began);
        if let Some(asked) = self.evaluations(place).filter(|_| !is_skipped) {
            asked.pre_filter.inc();
        }
        looked
    }

    /// Lets the plug-in at a place prepare for scores.
    pub(super) fn pre_score_by(
        &self,
        place: usize,
        cycle: &mut Cycle<'_>,
        nodes: &[Arc<NodeInfo>],
    ) -> Result<PreScore, Refusal> {
        let plugin = &*self.plugins[place].plugin;
        let began = self.begin(&cycle.state);
        let prepared = plugin.pre_score(cycle, nodes);
        let is_skipped = matches!(prepared, Ok(PreScore::Skip));
        self.took(plugin.name(), "PreScore", status_of(is_skipped, prepared.as_ref().err()), began);
        if let Some(asked) = self.evaluations(place).filter(|_| !is_skipped) {
            asked.pre_score.inc();
        }
        prepared
    }

    /// The name in `spec.schedulerName` of its Pods.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The plug-ins at an extension point, in their order.
    pub(crate) fn at(&self, point: Points) -> impl DoubleEndedIterator<Item = &Arc<dyn Plugin>> {
        self.places(point).iter().map(|place| &self.plugins[*place].plugin)
    }

    /// The plug-in of this name.
    pub(crate) fn plugin(&self, name: &str) -> Option<&Arc<dyn Plugin>> {
        self.plugins.iter().map(|it| &it.plugin).find(|plugin| plugin.name() == name)
    }

    /// How much the scores of the plug-in of this name count.
    #[cfg(test)]
    pub(crate) fn weight(&self, name: &str) -> Option<i64> {
        self.plugins.iter().find(|it| it.plugin.name() == name).map(|it| it.weight)
    }

    /// Whether a Pod may be queued; otherwise who keeps it from that.
    pub(crate) fn pre_enqueue(&self, pod: &Pod) -> Result<(), &'static str> {
        let began = Instant::now();
        let refused = self.at(Points::PRE_ENQUEUE).find(|it| it.pre_enqueue(pod).is_err());
        self.ran("PreEnqueue", &Ok(()), began);
        refused.map_or(Ok(()), |plugin| Err(plugin.name()))
    }

    /// The plug-ins at an extension point, with their places.
    pub(super) fn placed(&self, point: Points) -> impl Iterator<Item = (usize, &Enabled)> {
        self.places(point).iter().map(|place| (*place, &self.plugins[*place]))
    }

    /// Whether a node can run the Pod, also if those come to it that room is being made for.
    pub(crate) fn filter_with_nominated(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Verdict {
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
    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Verdict {
        self.filter_by(!cycle.skipped_filters, cycle, node)
    }

    /// The same as far as these filters say.
    fn filter_by(&self, wanted: u64, cycle: &Cycle<'_>, node: &NodeInfo) -> Verdict {
        let is_timed = self.begin(&cycle.state).is_some();
        for &place in self.places(Points::FILTER) {
            if wanted & (1 << place) == 0 {
                continue;
            }
            let plugin = &*self.plugins[place].plugin;
            let began = is_timed.then(Instant::now);
            let verdict = plugin.filter(cycle, node);
            self.took(plugin.name(), "Filter", status_of(false, verdict.as_ref().err()), began);
            if let Some(asked) = self.evaluations(place) {
                asked.filter.inc();
            }
            verdict.map_err(|refusal| (plugin.name(), refusal))?;
        }
        Ok(())
    }

    /// Who is asked about nodes for a Pod.
    pub(super) fn asked(&self, cycle: &Cycle<'_>) -> Asked {
        let mut asked = Asked::default();
        for &place in self.places(Points::FILTER) {
            let bit = 1 << place;
            if cycle.skipped_filters & bit != 0 {
                continue;
            }
            match asked.others == 0 && self.plugins[place].plugin.is_local() {
                true => asked.local |= bit,
                false => asked.others |= bit,
            }
        }
        asked
    }

    /// What [`Self::filter_with_nominated`] says of the node at a place. What is known is not asked
    /// again.
    pub(super) fn judge(
        &self,
        cycle: &Cycle<'_>,
        place: usize,
        asked: Asked,
        known: &mut Remembered<'_>,
    ) -> Verdict {
        let node = &cycle.snapshot.nodes()[place];
        if asked.local == 0 || (asked.others != 0 && !expected(cycle, node).is_empty()) {
            return self.filter_with_nominated(cycle, node);
        }
        let verdict = known.verdict(place).unwrap_or_else(|| {
            let verdict = match asked.others {
                0 => self.filter_with_nominated(cycle, node),
                _ => self.filter_by(asked.local, cycle, node),
            };
            known.judged(place, &verdict);
            verdict
        });
        verdict?;
        self.filter_by(asked.others, cycle, node)
    }

    /// What was found out about who would have to go for Pods like this one, if that follows from
    /// the node alone.
    pub(crate) fn trials<'a>(&self, cycle: &Cycle<'a>) -> Option<Remembered<'a>> {
        (self.asked(cycle).others == 0).then(|| cycle.snapshot.remembered(cycle))
    }

    /// Whether it is plain that a node cannot run the Pod, not even if these go.
    pub(crate) fn rules_out(
        &self,
        cycle: &Cycle<'_>,
        node: &NodeInfo,
        gone: &[Arc<PodInfo>],
    ) -> bool {
        let after = Replacement { gone, coming: &expected(cycle, node) };
        let filters = self.placed(Points::FILTER);
        let mut filters = filters.filter(|(at, _)| cycle.skipped_filters & (1 << *at) == 0);
        filters.any(|(_, it)| it.plugin.rules_out(cycle, node, after))
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
            let began = self.begin(&cycle.state);
            let help = plugin.post_filter(cycle, &error.refusals);
            let refusal = help.as_ref().and_then(|help| help.as_ref().err());
            self.took(plugin.name(), "PostFilter", status_of(false, refusal), began);
            match help {
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

    /// Lets plug-ins take what the Pod needs; if one cannot, all give it back.
    pub(crate) fn reserve(
        &self,
        cycle: &mut Cycle<'_>,
        node: &NodeInfo,
    ) -> Result<(), (&'static str, Refusal)> {
        let began = Instant::now();
        for plugin in self.at(Points::RESERVE) {
            let it_began = self.begin(&cycle.state);
            let reserved = plugin.reserve(cycle, node);
            let status = status_of(false, reserved.as_ref().err());
            self.took(plugin.name(), "Reserve", status, it_began);
            if let Err(refusal) = reserved {
                self.ran::<()>("Reserve", &Err(refusal.code), began);
                self.unreserve(&cycle.state, cycle.info, node.name());
                return Err((plugin.name(), refusal));
            }
        }
        self.ran("Reserve", &Ok(()), began);
        Ok(())
    }

    /// Lets plug-ins give back what they took for a Pod, in the opposite order.
    pub(crate) fn unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str) {
        let began = Instant::now();
        for plugin in self.at(Points::RESERVE).rev() {
            let it_began = self.begin(state);
            plugin.unreserve(state, pod, node);
            self.took(plugin.name(), "Unreserve", status_of(false, None), it_began);
        }
        self.ran("Unreserve", &Ok(()), began);
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
            let it_began = self.begin(&cycle.state);
            let permitted = plugin.permit(cycle, node);
            self.took(plugin.name(), "Permit", permission(&permitted), it_began);
            match permitted {
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

/// What came of asking a plug-in, in Kubernetes' words.
pub(crate) fn status_of(is_skipped: bool, refusal: Option<&Refusal>) -> &'static str {
    match refusal {
        Some(refusal) => refusal.code.as_str(),
        None if is_skipped => "Skip",
        None => "Success",
    }
}

fn permission(permitted: &Permit) -> &'static str {
    match permitted {
        Permit::Allow => "Success",
        Permit::Wait(_) => "Wait",
        Permit::Reject(refusal) => refusal.code.as_str(),
    }
}

/// The Pods for which room is being made on a node, and which matter at least as much as the Pod.
fn expected<'a>(cycle: &Cycle<'a>, node: &NodeInfo) -> Vec<&'a Arc<PodInfo>> {
    let counts =
        |pod: &&Arc<PodInfo>| pod.priority >= cycle.info.priority && pod.uid != cycle.info.uid;
    cycle.nominator.on(node.name()).iter().filter(counts).collect()
}
