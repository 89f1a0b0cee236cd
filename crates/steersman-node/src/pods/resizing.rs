//! Resizes one Pod: lets it have what it wants, gives it to its containers, and tells people.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use steersman::{Context, Result};

use super::bound_to;
use super::events::Teller;
use super::plan::Observed;
use super::reconcile::PodWorker;
use super::resize::{Progress, is_in_progress};
use super::status;
use crate::registration::Machine;
use crate::runtime::{Change, ContainerRuntime, State};

/// Finds Pods by their node.
const BY_NODE: &str = "resized-on-node";
/// When to try again what failed.
const FAILED: SignedDuration = SignedDuration::from_secs(10);

impl<R: ContainerRuntime> PodWorker<R> {
    /// Lets a Pod have what it wants, if that is something else than it has and its node has room.
    pub(super) fn allocate(
        &self,
        pod: &Pod,
        machine: &Machine,
        teller: &Teller<'_>,
        ctx: &Context<Pod>,
    ) -> Result<()> {
        let sizes = self.allocations.of(pod);
        if !sizes.allocated.differs(pod) {
            if sizes.pending.is_some() {
                self.allocations.change(pod, |sizes| sizes.pending = None);
            }
            return Ok(());
        }
        // Nobody is to pay for this where nothing is resized.
        let by_node = ctx.cache::<Pod>()?.add_index(BY_NODE, node_of);
        let others = by_node.get(&machine.name).into_iter().filter(|other: &Arc<Pod>| {
            other.metadata.uid != pod.metadata.uid && !status::has_ended(other)
        });
        let decided = match self.runtime.refuses(&as_new(pod)) {
            Some(rejection) => Err(rejection),
            None => self.allocations.decide(pod, others, &machine.allocatable_resources()),
        };
        match decided {
            Ok(()) => teller.resize_started(pod),
            Err(rejection) => {
                if self.allocations.defer(pod, &machine.name, rejection.to_string()) {
                    teller.resize_deferred(pod, &rejection);
                }
            }
        }
        Ok(())
    }

    /// Gives running containers what their Pod was given, as far as that can be.
    pub(super) async fn resize(
        &self,
        pod: &Pod,
        changes: &[Change],
        teller: &Teller<'_>,
        now: Timestamp,
    ) -> Result<()> {
        let resized = self.runtime.resize(pod, changes).await?;
        let mut failed = None;
        self.allocations.change(pod, |sizes| {
            for change in changes.iter().take(resized.done) {
                sizes.resized(&change.name, change.resources.clone());
            }
            let Some(error) = resized.error else {
                let whole = pod.spec.as_ref().and_then(|spec| spec.resources.clone());
                sizes.actuated.whole = whole;
                sizes.again = None;
                if let Some(progress) = &mut sizes.progress {
                    progress.error = None;
                }
                return;
            };
            let progress = sizes
                .progress
                .get_or_insert(Progress { generation: pod.metadata.generation, error: None });
            if progress.error.as_ref() != Some(&error) {
                progress.error = Some(error);
                failed = Some(progress.clone());
            }
            sizes.again = now.checked_add(FAILED).ok();
        });
        if let Some(Progress { generation, error: Some(error) }) = failed {
            teller.resize_failed(pod, generation, &error);
        }
        Ok(())
    }

    /// Notes whether what a Pod was given has come to its containers, which its spec says here.
    pub(super) fn progress(&self, pod: &Pod, observed: &mut Observed, teller: &Teller<'_>) {
        self.run_on(pod, observed);
        let in_progress = is_in_progress(pod, &observed.now, &observed.sizes);
        if in_progress == observed.sizes.progress.is_some() {
            return;
        }
        let mut completed = None;
        self.allocations.change(pod, |sizes| {
            if in_progress {
                let generation = pod.metadata.generation;
                sizes.progress = Some(Progress { generation, error: None });
            } else {
                completed = sizes.progress.take();
                sizes.completed = true;
            }
            observed.sizes = sizes.clone();
        });
        if let Some(Progress { generation, .. }) = completed {
            teller.resize_completed(pod, generation);
        }
    }

    /// Forgets that containers were to be stopped for other resources that run on after all: somebody
    /// has taken the resize back before. When they end, they end by themselves.
    fn run_on(&self, pod: &Pod, observed: &mut Observed) {
        let runs_on = |(name, attempt): (&String, &i32)| {
            let found = observed.of(name).filter(|found| found.attempt == *attempt);
            let on = found.filter(|it| matches!(it.state, State::Running { stopping: false, .. }));
            on.map(|_| name.clone())
        };
        let names: Vec<String> = observed.sizes.restarting.iter().filter_map(runs_on).collect();
        if names.is_empty() {
            return;
        }
        self.allocations.change(pod, |sizes| {
            sizes.restarting.retain(|name, _| !names.contains(name));
            observed.sizes = sizes.clone();
        });
    }
}

/// A Pod that does not run yet: under pressure a node gives nothing away.
fn as_new(pod: &Pod) -> Pod {
    let mut new = pod.clone();
    if let Some(status) = &mut new.status {
        status.container_statuses = None;
    }
    new
}

fn node_of(pod: &Pod) -> Option<String> {
    bound_to(pod).map(str::to_owned)
}
