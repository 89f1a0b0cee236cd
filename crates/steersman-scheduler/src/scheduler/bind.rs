//! Binds a Pod that has a node, beside other Pods.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
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
    Resource,
};
use crate::metrics::Attempted;

/// How often it is looked whether a Pod is bound, if the answer is not known,
const LOOKS: usize = 10;
/// and after which time again, if nobody answers that either.
const LOOK: Duration = Duration::from_secs(1);

/// Why a Pod could not be bound.
enum Failure {
    /// A plug-in does not permit it.
    Rejected(&'static str, Refusal),
    /// Something went wrong.
    Failed(String),
    /// It is gone, or has a node already; informers will show that.
    Overtaken,
}

impl Worker {
    /// Binds a Pod. If that does not work, it takes nothing from its node any more, and goes back into
    /// the queue.
    pub(super) async fn bind(&self, attempt: Attempt, profile: &Profile, binding: Binding) {
        let bound = AssertUnwindSafe(self.try_to_bind(profile, &binding)).catch_unwind().await;
        let failure = match bound {
            Ok(Ok(())) => return self.bound(&attempt, profile, &binding),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::Failed("a plugin panicked".to_owned()),
        };
        profile.unreserve(&binding.state, &binding.info, &binding.node);
        let was_assumed = self.shared.lock().cache.forget(&binding.info.uid);
        if was_assumed {
            let object = Object::Pod(Before { old: Some(binding.info.clone()), new: None });
            let (resource, action) = (Resource::AssignedPod, Action::DELETE);
            self.shared.happened(&ClusterEvent { resource, action, object });
        }
        let (report, error) = match failure {
            Failure::Overtaken => (None, None),
            Failure::Failed(message) => (Some(("SchedulerError", message)), None),
            Failure::Rejected(plugin, refusal) => {
                let mut error = FitError::default();
                error.refused_by(plugin, &refusal);
                (Some(("Unschedulable", refusal.message())), Some(error))
            }
        };
        self.attempted(&attempt, error.as_ref());
        if let Some((reason, message)) = report {
            let report = Report { reason, message, nominated_node: None };
            let recorder = self.recorder_of(profile);
            report.write(&binding.pod, &binding.info, &self.client, &recorder).await;
        }
        self.shared.lock().queue.put_back(attempt.pending, error.as_ref());
        self.shared.wake.notify_one();
    }

    async fn try_to_bind(&self, profile: &Profile, binding: &Binding) -> Result<(), Failure> {
        // Nothing is done before it is waited for.
        let prepared: Vec<_> = profile
            .at(Points::PRE_BIND)
            .filter_map(|plugin| Some((plugin.name(), plugin.pre_bind(binding)?)))
            .collect();
        if !prepared.is_empty() || self.shared.waiting.contains(&binding.info.uid) {
            self.nominate(binding).await;
        }
        let began = Instant::now();
        let permitted = self.shared.waiting.permitted(&binding.info.uid).await;
        let code = permitted.as_ref().map_err(|(_, refusal)| refusal.code);
        self.metrics.waited(code.err().map_or("Success", Code::as_str), began.elapsed());
        permitted.map_err(|(plugin, refusal)| Failure::Rejected(plugin, refusal))?;
        self.shared.lock().queue.done(&binding.info.uid);
        let began = Instant::now();
        for (name, prepared) in prepared {
            prepared.await.map_err(|refusal| {
                profile.ran::<()>("PreBind", &Err(refusal.code), began);
                let why = refusal.message();
                Failure::Failed(format!("running PreBind plugin {name:?}: {why}"))
            })?;
        }
        profile.ran("PreBind", &Ok(()), began);
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
                let bound = bound.await;
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

    /// Says of a Pod where it is about to go, since that may take a while: whoever adds nodes for Pods
    /// that wait need add none for it. That it cannot be said keeps nobody from binding it.
    async fn nominate(&self, binding: &Binding) {
        if binding.info.nominated_node.as_deref() == Some(&*binding.node) {
            return;
        }
        let patch = Patch::Merge(json!({"status": {"nominatedNodeName": *binding.node}}));
        let written = self.client.patch_status::<Pod, _>(&binding.info.key, &patch).await;
        if let Err(error) = written
            && !error.is_not_found()
        {
            tracing::warn!(pod = %binding.info.key, %error, "cannot nominate the node of a pod");
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
        let (key, node) = (&binding.info.key, &binding.node);
        tracing::debug!(pod = %key, node = &**node, "pod bound");
        let note = format!("Successfully assigned {key} to {node}");
        let event = NewEvent::normal("Scheduled").action("Binding").note(note);
        self.recorder_of(profile).event(&*binding.pod, event);
        let began = Instant::now();
        for plugin in profile.at(Points::POST_BIND) {
            plugin.post_bind(binding);
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
