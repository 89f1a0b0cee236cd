//! Binds a Pod that has a node, beside other Pods.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use serde_json::json;
use steersman::Error;
use steersman::events::NewEvent;

use tokio::time::Instant;

use super::handlers::bound_to;
use super::report::Report;
use super::{Attempt, Worker};
use crate::framework::{
    Action, Before, Binding, ClusterEvent, Code, FitError, Object, Points, Profile, Refusal,
    Resource, status_of,
};
use crate::metrics::Attempted;

/// How often it is looked whether a Pod is bound, if the answer is not known,
const LOOKS: usize = 10;
/// and after which time again, if nobody answers that either.
const LOOK: Duration = Duration::from_secs(1);

/// What a plug-in does for a Pod before it is bound, by its name.
type Prepared<'a> = Vec<(&'static str, BoxFuture<'a, Result<(), Refusal>>)>;

/// Why a Pod could not be bound.
enum Failure {
    /// A plug-in does not permit it.
    Rejected(&'static str, Refusal),
    /// Something went wrong.
    Failed(String),
    /// It is gone, or has a node already; informers will show that.
    Overtaken,
}

impl Failure {
    /// What the Pod is told, if anything, and who refused it.
    fn told(self) -> (Option<Report>, Option<FitError>) {
        match self {
            Self::Overtaken => (None, None),
            Self::Failed(message) => (Some(Report::error(message)), None),
            Self::Rejected(plugin, refusal) => {
                let (report, error) = Report::refused(plugin, &refusal);
                (Some(report), Some(error))
            }
        }
    }

    /// Somebody has not permitted it.
    fn not_permitted(plugin: &'static str, refusal: Refusal) -> Self {
        match refusal.is_rejection() {
            true => Self::Rejected(plugin, refusal),
            false => Self::Failed(format!("waiting on permit for pod: {}", refusal.message())),
        }
    }
}

impl Worker {
    /// Binds a Pod. If that does not work, it takes nothing from its node any more, and goes back into
    /// the queue.
    pub(super) async fn bind(&self, attempt: Attempt, profile: &Profile, binding: Binding) {
        let mut pod = Arc::clone(&binding.pod);
        let _running = self.metrics.work.binding();
        let bound = self.try_to_bind(profile, &binding, &mut pod);
        let bound = AssertUnwindSafe(bound).catch_unwind().await;
        let failure = match bound {
            Ok(Ok(())) => return self.bound(&attempt, profile, &binding),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::Failed("a plugin panicked".to_owned()),
        };
        profile.unreserve(&binding.state, &binding.info, &binding.node);
        let was_assumed = {
            let mut state = self.shared.lock();
            state.queue.resume(&binding.info);
            state.cache.forget(&binding.info.uid)
        };
        if was_assumed {
            let object = Object::Pod(Before { old: Some(binding.info.clone()), new: None });
            let (resource, action) = (Resource::AssignedPod, Action::DELETE);
            self.shared.happened(&ClusterEvent { resource, action, object });
        }
        let (report, error) = failure.told();
        self.attempted(&attempt, error.as_ref());
        if let Some(report) = report {
            self.shared.lock().unnominate(&binding.info.uid);
            let recorder = self.recorder_of(profile);
            report.write(&pod, &binding.info, &self.client, &recorder).await;
        }
        self.shared.lock().queue.put_back(attempt.pending, error.as_ref());
        self.shared.wake.notify_one();
    }

    /// Binds a Pod, which may change before that.
    async fn try_to_bind(
        &self,
        profile: &Profile,
        binding: &Binding,
        pod: &mut Arc<Pod>,
    ) -> Result<(), Failure> {
        // Nothing is done before it is waited for.
        let prepared: Prepared<'_> = profile
            .at(Points::PRE_BIND)
            .filter_map(|plugin| Some((plugin.name(), plugin.pre_bind(binding)?)))
            .collect();
        if !prepared.is_empty() || self.shared.waiting.contains(&binding.info.uid) {
            self.nominate(binding, pod).await;
        }
        let began = Instant::now();
        let permitted = self.shared.waiting.permitted(&binding.info.uid).await;
        let code = permitted.as_ref().map_err(|(_, refusal)| refusal.code);
        self.metrics.waited(code.err().map_or("Success", Code::as_str), began.elapsed());
        permitted.map_err(|(plugin, refusal)| Failure::not_permitted(plugin, refusal))?;
        self.shared.lock().queue.done(&binding.info.uid);
        let began = Instant::now();
        let ready = self.prepare(profile, binding, prepared).await;
        profile.ran("PreBind", &ready.as_ref().map_err(|_| Code::Error), began);
        ready?;
        let Ok(_turn) = self.turns.acquire().await else { return Err(Failure::Overtaken) };
        if let Some(bound) = self.extenders.bind(binding).await {
            return match bound {
                Ok(()) => Ok(()),
                Err(_) if self.is_bound_all_the_same(binding).await => Ok(()),
                Err(why) => Err(Failure::Failed(why)),
            };
        }
        let began = Instant::now();
        for plugin in profile.at(Points::BIND) {
            if let Some(bound) = plugin.bind(binding) {
                let it_began = profile.begin(&binding.state);
                let bound = bound.await;
                let status = if bound.is_ok() { "Success" } else { "Error" };
                profile.took(plugin.name(), "Bind", status, it_began);
                profile.ran("Bind", &bound.as_ref().map_err(|_| Code::Error), began);
                return match bound {
                    Ok(()) => Ok(()),
                    Err(_) if self.is_bound_all_the_same(binding).await => Ok(()),
                    Err(error) => Err(failure(plugin.name(), &error)),
                };
            }
        }
        Err(Failure::Failed("no plugin binds this pod".to_owned()))
    }

    /// Lets plug-ins do what comes before binding, until somebody needs the place more.
    async fn prepare(
        &self,
        profile: &Profile,
        binding: &Binding,
        prepared: Prepared<'_>,
    ) -> Result<(), Failure> {
        if prepared.is_empty() {
            return Ok(());
        }
        let mut preparation = self.shared.pre_binding.begin(&binding.info.uid);
        for (name, prepared) in prepared {
            let began = profile.begin(&binding.state);
            let prepared = async {
                let done = prepared.await;
                profile.took(name, "PreBind", status_of(false, done.as_ref().err()), began);
                done
            };
            let why = tokio::select! {
                biased;
                done = prepared => match done {
                    Ok(()) => continue,
                    Err(refusal) => refusal.message(),
                },
                why = preparation.cancelled() => why,
            };
            return Err(Failure::Failed(format!("running PreBind plugin {name:?}: {why}")));
        }
        preparation.finish().map_err(Failure::Failed)
    }

    /// Says of a Pod where it is about to go, since that may take a while: whoever adds nodes for Pods
    /// that wait need add none for it. That it cannot be said keeps nobody from binding it.
    async fn nominate(&self, binding: &Binding, pod: &mut Arc<Pod>) {
        if binding.info.nominated_node.as_deref() == Some(&*binding.node) {
            return;
        }
        let patch = Patch::Merge(json!({"status": {"nominatedNodeName": *binding.node}}));
        match self.client.patch_status::<Pod, _>(&binding.info.key, &patch).await {
            Ok(written) => *pod = Arc::new(written),
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                tracing::warn!(pod = %binding.info.key, %error, "cannot nominate the node of a pod");
            }
        }
    }

    /// Whether a Pod is bound although somebody said that this failed: the answer may have been lost, and
    /// what it takes must not be given to another until its binding is seen.
    async fn is_bound_all_the_same(&self, binding: &Binding) -> bool {
        for _ in 0..LOOKS {
            match self.client.get::<Pod>(&binding.info.key).await {
                Ok(Some(pod)) => {
                    let is_same = pod.metadata.uid.as_deref() == Some(&*binding.info.uid);
                    return is_same && bound_to(&pod) == Some(&*binding.node);
                }
                Ok(None) => return false,
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
        false
    }

    fn bound(&self, attempt: &Attempt, profile: &Profile, binding: &Binding) {
        self.metrics.attempted(Attempted::Scheduled, profile.name(), attempt.began.elapsed());
        let first = attempt.pending.first_tried.unwrap_or(attempt.began);
        self.metrics.bound(attempt.pending.attempts, first.elapsed());
        if attempt.pending.was_flushed {
            self.metrics.work.bound_after_flush();
        }
        let (key, node) = (&binding.info.key, &binding.node);
        tracing::debug!(pod = %key, node = &**node, "pod bound");
        let note = format!("Successfully assigned {key} to {node}");
        let event = NewEvent::normal("Scheduled").action("Binding").note(note);
        self.recorder_of(profile).event(&*binding.pod, event);
        let began = Instant::now();
        for plugin in profile.at(Points::POST_BIND) {
            let it_began = profile.begin(&binding.state);
            plugin.post_bind(binding);
            profile.took(plugin.name(), "PostBind", "Success", it_began);
        }
        profile.ran("PostBind", &Ok(()), began);
    }
}

fn failure(plugin: &str, error: &Error) -> Failure {
    match error.is_not_found() || error.is_conflict() {
        true => Failure::Overtaken,
        false => Failure::Failed(format!("running Bind plugin {plugin:?}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_is_not_bound_goes_nowhere_until_it_is_tried_again() {
        let told = |failure: Failure| {
            let report = failure.told().0.expect("it is told");
            assert_eq!(report.nominated_node, Some(None));
            (report.reason, report.message)
        };
        let late = "running PreBind plugin \"VolumeBinding\": context deadline exceeded";
        let failed = told(Failure::Failed(late.to_owned()));
        assert_eq!(failed, ("SchedulerError", late.to_owned()));
        let rejected = told(Failure::not_permitted("Own", Refusal::unschedulable("no")));
        let expected = "0/1 nodes are available: 1 no.";
        assert_eq!(rejected, ("Unschedulable", expected.to_owned()));
        let preempted = told(Failure::not_permitted("Own", Refusal::error("preempted")));
        let expected = "waiting on permit for pod: preempted";
        assert_eq!(preempted, ("SchedulerError", expected.to_owned()));
        assert!(Failure::Overtaken.told().0.is_none());
    }
}
