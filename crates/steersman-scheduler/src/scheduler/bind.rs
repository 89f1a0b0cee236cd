//! Binds a Pod that has a node, beside other Pods.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use steersman::Error;
use steersman::events::NewEvent;

use super::Worker;
use super::report::Report;
use crate::framework::{
    Action, Before, Binding, ClusterEvent, FitError, Object, Points, Profile, Refusal, Resource,
};
use crate::queue::Pending;

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
    pub(super) async fn bind(&self, pending: Pending, profile: &Profile, binding: Binding) {
        let bound = AssertUnwindSafe(self.try_to_bind(profile, &binding)).catch_unwind().await;
        let failure = match bound {
            Ok(Ok(())) => return self.bound(profile, &binding),
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
        if let Some((reason, message)) = report {
            let report = Report { reason, message, nominated_node: None };
            let recorder = self.recorder_of(profile);
            report.write(&binding.pod, &binding.info, &self.client, &recorder).await;
        }
        self.shared.lock().queue.put_back(pending, error.as_ref());
        self.shared.wake.notify_one();
    }

    async fn try_to_bind(&self, profile: &Profile, binding: &Binding) -> Result<(), Failure> {
        let permitted = self.shared.waiting.permitted(&binding.info.uid).await;
        permitted.map_err(|(plugin, refusal)| Failure::Rejected(plugin, refusal))?;
        self.shared.lock().queue.done(&binding.info.uid);
        for plugin in profile.at(Points::PRE_BIND) {
            if let Some(prepared) = plugin.pre_bind(binding) {
                prepared.await.map_err(|refusal| {
                    let (name, why) = (plugin.name(), refusal.message());
                    Failure::Failed(format!("running PreBind plugin {name:?}: {why}"))
                })?;
            }
        }
        let Ok(_turn) = self.turns.acquire().await else { return Err(Failure::Overtaken) };
        for plugin in profile.at(Points::BIND) {
            if let Some(bound) = plugin.bind(binding) {
                return bound.await.map_err(|error| failure(plugin.name(), &error));
            }
        }
        Err(Failure::Failed("no plugin binds this pod".to_owned()))
    }

    fn bound(&self, profile: &Profile, binding: &Binding) {
        let (key, node) = (&binding.info.key, &binding.node);
        tracing::debug!(pod = %key, node = &**node, "pod bound");
        let note = format!("Successfully assigned {key} to {node}");
        let event = NewEvent::normal("Scheduled").action("Binding").note(note);
        self.recorder_of(profile).event(&*binding.pod, event);
        for plugin in profile.at(Points::POST_BIND) {
            plugin.post_bind(binding);
        }
    }
}

fn failure(plugin: &str, error: &Error) -> Failure {
    match error.is_not_found() || error.is_conflict() {
        true => Failure::Overtaken,
        false => Failure::Failed(format!("running Bind plugin {plugin:?}: {error}")),
    }
}
