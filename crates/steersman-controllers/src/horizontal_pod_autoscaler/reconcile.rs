//! Reads target and metrics, carries out the plan, and reports.

use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus,
    MetricSpec, MetricStatus,
};
use k8s_openapi::api::core::v1::Pod;
use kube::core::Selector;
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Error, Next, Result, clock, selector};
use tokio::time::Instant;

use super::Shared;
use super::history::Rescale;
use super::limits::longest_period;
use super::metrics::{Trouble, Way};
use super::metrics_api::MetricsApi;
use super::plan::{self, Measured, Plan};
use super::proposal::{Proposal, Proposer, UNKNOWN_TYPE, Unable};
use super::replicas::{Situation, Tolerances};
use super::status::{self, ABLE_TO_SCALE, Condition, SCALED_TO_ZERO, SCALING_ACTIVE};
use super::target::{self, Target};

/// Who tells people about autoscalers: not the name of the controller, as in Kubernetes.
const REPORTER: &str = "horizontal-pod-autoscaler";

/// Gives the target of an autoscaler the size that it should have, when it is time to.
pub(super) async fn reconcile(
    autoscaler: &Arc<HorizontalPodAutoscaler>,
    ctx: &Context<HorizontalPodAutoscaler>,
    shared: &Shared,
) -> Result<Next> {
    let now = clock::now();
    if let Some(wait) = shared.memory.wait(ctx.key(), now) {
        return Ok(Next::After(wait));
    }
    let start = Instant::now();
    let status = autoscaler.status.clone().unwrap_or_default();
    let (spec, way) = (&autoscaler.spec, Way::None);
    let mut sync = Sync { autoscaler, spec, ctx, shared, now, status, way };
    let synced = sync.run().await;
    let way = sync.way;
    let synced = sync.write_status().await.and(synced);
    let trouble = match synced {
        Ok(()) => Trouble::None,
        Err(_) if !target::is_clear(&spec.scale_target_ref) => Trouble::Spec,
        Err(_) => Trouble::Internal,
    };
    shared.metrics.reconciled(way, trouble, start.elapsed());
    synced.map(|()| Next::After(shared.settings.sync_period))
}

/// One look at an autoscaler.
struct Sync<'a> {
    autoscaler: &'a HorizontalPodAutoscaler,
    spec: &'a HorizontalPodAutoscalerSpec,
    ctx: &'a Context<HorizontalPodAutoscaler>,
    shared: &'a Shared,
    now: Timestamp,
    /// What it says in the end.
    status: HorizontalPodAutoscalerStatus,
    /// Whether the target has got another size.
    way: Way,
}

impl<'a> Sync<'a> {
    async fn run(&mut self) -> Result<()> {
        let mut target = self.target().await?;
        let current = target.spec_replicas();
        let now = self.now;
        self.shared.memory.with(self.ctx.key(), |history| history.begin(current, now));
        let (plan, statuses, error) = match plan::without_metrics(self.spec, current) {
            Some(plan) => (plan, Vec::new(), None),
            None => self.by_metrics(&target).await?,
        };
        let desired = match plan {
            Plan::Disabled => {
                let why = "scaling is disabled since the replica count of the target is zero";
                self.set(Condition::new(SCALING_ACTIVE, false, "ScalingDisabled", why));
                status::remove(&mut self.status, SCALED_TO_ZERO);
                current
            }
            Plan::Stay => current,
            Plan::Rescale { replicas, reason } => {
                self.rescale(&mut target, replicas, &reason, &statuses).await?;
                replicas
            }
        };
        status::report(&mut self.status, current, desired, statuses);
        self.shared.metrics.desires(self.ctx.key(), desired);
        error.map_or(Ok(()), |error| Err(Error::message(error)))
    }

    async fn target(&mut self) -> Result<Target<'a>> {
        let reference = &self.spec.scale_target_ref;
        let found =
            Target::find(self.ctx.live(), &self.shared.kinds, self.namespace(), reference).await;
        match found {
            Ok(target) => {
                let message = "the HPA controller was able to get the target's current scale";
                self.set(Condition::new(ABLE_TO_SCALE, true, "SucceededGetScale", message));
                Ok(target)
            }
            Err(error) => {
                self.warn("FailedGetScale", &error.to_string());
                let message = format!(
                    "the HPA controller was unable to get the target's current scale: {error}"
                );
                self.set(Condition::new(ABLE_TO_SCALE, false, "FailedGetScale", message));
                Err(error)
            }
        }
    }

    /// Lets the metrics decide. Some of them may have failed all the same; that is told as well.
    async fn by_metrics(
        &mut self,
        target: &Target<'_>,
    ) -> Result<(Plan, Vec<MetricStatus>, Option<String>)> {
        let current = target.spec_replicas();
        let (proposal, statuses, error) = match self.measure(target).await {
            Ok(Measured { proposal, condition, statuses, error }) => {
                self.set(condition);
                (proposal, statuses, error)
            }
            Err(error) => (None, Vec::new(), Some(error.to_string())),
        };
        let Some((replicas, metric)) = proposal else {
            let error = error.unwrap_or_default();
            self.warn("FailedComputeMetricsReplicas", &error);
            let desired = self.status.desired_replicas;
            status::report(&mut self.status, current, desired, statuses);
            return Err(Error::message(error));
        };
        let (spec, now) = (self.spec, self.now);
        let (plan, conditions) = self.shared.memory.with(self.ctx.key(), |history| {
            plan::by_metrics(spec, current, (replicas, &metric), history, now)
        });
        conditions.into_iter().for_each(|condition| self.set(condition));
        Ok((plan, statuses, error))
    }

    /// Asks every metric; an error if it cannot be told which Pods they are about.
    async fn measure(&mut self, target: &Target<'_>) -> Result<Measured> {
        let selector = self.selector(target.selector())?;
        let pods = self.pods(&selector)?;
        self.claim(target.selector(), &selector, &pods)?;
        let (client, kinds) = (self.ctx.live(), &self.shared.kinds);
        let settings = self.shared.settings;
        let proposer = Proposer {
            api: MetricsApi { client, kinds, namespace: self.namespace() },
            selector: selector.to_string(),
            situation: Situation {
                spec_replicas: target.spec_replicas(),
                status_replicas: target.status_replicas(),
                pods: &pods,
                tolerances: Tolerances::of(self.spec.behavior.as_ref(), settings.tolerance),
                settings,
                now: self.now,
            },
        };
        let before = self.status.current_replicas.unwrap_or(0);
        let metrics = self.spec.metrics.iter().flatten();
        let proposals =
            join_all(metrics.map(|metric| self.propose(&proposer, metric, before))).await;
        for unable in proposals.iter().filter_map(|proposal| proposal.as_ref().err()) {
            self.warn(unable.reason, &unable.cause);
        }
        Ok(plan::combine(proposals, target.spec_replicas()))
    }

    /// What a metric proposes for a target that had a size `before`, counted.
    async fn propose(
        &self,
        proposer: &Proposer<'_>,
        metric: &MetricSpec,
        before: i32,
    ) -> Result<Proposal, Unable> {
        let start = Instant::now();
        let proposal = proposer.propose(metric).await;
        let (way, trouble) = match &proposal {
            Ok(proposal) => (Way::between(before, proposal.replicas), Trouble::None),
            Err(Unable { reason: UNKNOWN_TYPE, .. }) => (Way::None, Trouble::Spec),
            Err(_) => (Way::None, Trouble::Internal),
        };
        self.shared.metrics.computed(&metric.type_, way, trouble, start.elapsed());
        proposal
    }

    fn selector(&mut self, text: &str) -> Result<Selector> {
        if text.is_empty() {
            let message = "the HPA target's scale is missing a selector";
            self.warn("SelectorRequired", "selector is required");
            self.set(Condition::new(SCALING_ACTIVE, false, "InvalidSelector", message));
            return Err(Error::message("selector is required"));
        }
        selector::parse(text).map_err(|error| {
            let message = format!(
                "couldn't convert selector into a corresponding internal selector object: {}",
                error.why
            );
            self.warn("InvalidSelector", &message);
            self.set(Condition::new(SCALING_ACTIVE, false, "InvalidSelector", message.clone()));
            Error::message(message)
        })
    }

    fn pods(&self, selector: &Selector) -> Result<Vec<Arc<Pod>>> {
        Ok(self.ctx.cache::<Pod>()?.by_labels(Some(self.namespace()), selector))
    }

    /// Says that these Pods are this autoscaler's; an error if another one says so, too.
    fn claim(&mut self, text: &str, selector: &Selector, pods: &[Arc<Pod>]) -> Result<()> {
        let memory = &self.shared.memory;
        memory.selects(self.ctx.key(), selector);
        let claiming = memory.selecting(self.namespace(), pods);
        if claiming.len() <= 1 {
            return Ok(());
        }
        let claiming: Vec<String> = claiming.iter().map(ToString::to_string).collect();
        let message = format!(
            "pods by selector {text} are controlled by multiple HPAs: [{}]",
            claiming.join(" ")
        );
        self.warn("AmbiguousSelector", &message);
        self.set(Condition::new(SCALING_ACTIVE, false, "AmbiguousSelector", message.clone()));
        Err(Error::message(message))
    }

    async fn rescale(
        &mut self,
        target: &mut Target<'_>,
        replicas: i32,
        reason: &str,
        statuses: &[MetricStatus],
    ) -> Result<()> {
        let current = target.spec_replicas();
        if let Err(error) = target.resize(replicas).await {
            let note = format!("New size: {replicas}; reason: {reason}; error: {error}");
            self.warn("FailedRescale", &note);
            let message =
                format!("the HPA controller was unable to update the target scale: {error}");
            self.set(Condition::new(ABLE_TO_SCALE, false, "FailedUpdateScale", message));
            let desired = self.status.desired_replicas;
            status::report(&mut self.status, current, desired, statuses.to_vec());
            return Err(error);
        }
        self.way = Way::between(current, replicas);
        let message =
            format!("the HPA controller was able to update the target scale to {replicas}");
        self.set(Condition::new(ABLE_TO_SCALE, true, "SucceededRescale", message));
        let note = format!("New size: {replicas}; reason: {reason}");
        self.tell(NewEvent::normal("SuccessfulRescale").note(note));
        if let Some(behavior) = &self.spec.behavior {
            let up = replicas > current;
            let rules = if up { &behavior.scale_up } else { &behavior.scale_down };
            let period = longest_period(rules.as_ref());
            let rescale = Rescale { from: current, to: replicas, period, at: self.now };
            self.shared.memory.with(self.ctx.key(), |history| history.rescaled(rescale));
        }
        status::remove(&mut self.status, SCALED_TO_ZERO);
        self.status.last_scale_time = Some(clock::now_time());
        Ok(())
    }

    /// Writes the status if it says something else than before.
    async fn write_status(self) -> Result<()> {
        if self.autoscaler.status.as_ref() == Some(&self.status) {
            return Ok(());
        }
        let mut autoscaler = self.autoscaler.clone();
        autoscaler.status = Some(self.status.clone());
        match self.ctx.live().update_status(&autoscaler).await {
            Err(error) => {
                self.warn("FailedUpdateStatus", &error.to_string());
                Err(error)
            }
            Ok(_) => Ok(()),
        }
    }

    fn namespace(&self) -> &'a str {
        self.autoscaler.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn set(&mut self, condition: Condition) {
        status::set(&mut self.status, condition, &clock::now_time());
    }

    fn warn(&self, reason: &str, note: &str) {
        self.tell(NewEvent::warning(reason).note(note));
    }

    fn tell(&self, event: NewEvent) {
        let recorder = self.ctx.recorder().reporting(REPORTER);
        recorder.event(Reference::of(self.autoscaler), event);
    }
}
