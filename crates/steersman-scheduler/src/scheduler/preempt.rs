//! Lets Pods go so that there is room for one that matters more.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::json;
use steersman::events::{NewEvent, Recorder};
use steersman::{Client, Result, clock};

use super::informers::Informers;
use super::shared::Shared;
use crate::framework::{PREEMPTED, PodInfo};

/// The condition of a Pod that is about to go.
const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// Who lets Pods go, as far as these are told.
const PREEMPTION: &str = "DefaultPreemption";

/// A Pod for which others have to go.
pub(super) struct Preemption {
    pub(super) preemptor: Arc<Pod>,
    pub(super) info: Arc<PodInfo>,
    pub(super) node: Arc<str>,
    pub(super) victims: Vec<Arc<PodInfo>>,
}

/// What it takes to let Pods go.
pub(super) struct Means<'a> {
    pub(super) client: &'a Client,
    pub(super) recorder: &'a Recorder,
    pub(super) informers: &'a Informers,
    pub(super) shared: &'a Shared,
}

impl Preemption {
    /// Deletes the victims, all but the last at once. Meanwhile the Pod is kept out of the queue, until
    /// the last is seen to go: it would choose other victims if it were tried before, and might wait
    /// forever if it heard of that too late. Whether all went well.
    pub(super) async fn carry_out(&self, means: &Means<'_>) -> bool {
        self.unnominate_lesser(means).await;
        let (last, others) = match self.victims.split_last() {
            Some((last, others)) => (Some(last), others),
            None => (None, &[][..]),
        };
        let deleted = futures::future::join_all(others.iter().map(|it| self.remove(it, means)));
        let mut failure = deleted.await.into_iter().find_map(Result::err);
        if failure.is_none()
            && let Some(last) = last
        {
            means.shared.handle.preempting.waits_for(&self.info.uid, &last.uid);
            failure = self.remove(last, means).await.err();
        }
        means.shared.handle.preempting.end(&self.info.uid);
        if let Some(error) = &failure {
            tracing::warn!(pod = %self.info.key, %error, "cannot preempt; the pod is tried again");
        }
        let mut state = means.shared.lock();
        state.queue.ungate(&self.info.uid);
        let is_free = !self.victims.iter().any(|victim| state.cache.has_pod(&victim.uid));
        if failure.is_some() || is_free {
            state.queue.retry(&self.info.uid); // nobody goes any more, of whom it would hear
            means.shared.wake.notify_one();
        }
        failure.is_none()
    }

    /// Pods that matter less and were to go to the same node look for another.
    async fn unnominate_lesser(&self, means: &Means<'_>) {
        let nominated = means.shared.lock().nominator.on(&self.node).to_vec();
        for pod in nominated.iter().filter(|pod| pod.priority < self.info.priority) {
            Arc::make_mut(&mut means.shared.lock().nominator).remove(&pod.uid);
            let patch = Patch::Merge(json!({"status": {"nominatedNodeName": null}}));
            if let Err(error) = means.client.patch_status::<Pod, _>(&pod.key, &patch).await
                && !error.is_not_found()
            {
                tracing::warn!(pod = %pod.key, %error, "cannot take back the nomination");
            }
        }
    }

    async fn remove(&self, victim: &PodInfo, means: &Means<'_>) -> Result<()> {
        if victim.is_terminating {
            return Ok(());
        }
        let Some(pod) = means.informers.pods.cache().get(&victim.key) else { return Ok(()) };
        if pod.metadata.uid.as_deref() != Some(&*victim.uid) {
            return Ok(());
        }
        // Nothing is deleted that does not run yet: it looks for another place.
        let is_cancelled = means.shared.cancel_binding(&victim.uid, PREEMPTION);
        if !is_cancelled && !self.delete(victim, &pod, means).await? {
            return Ok(());
        }
        tracing::debug!(pod = %self.info.key, victim = %victim.key, is_cancelled, "pod preempted");
        let event = NewEvent::normal("Preempted").action("Preempting");
        let event = event.note(note(&self.info.uid, &self.node, is_cancelled));
        means.recorder.event(&*pod, event.related(&*self.preemptor));
        Ok(())
    }

    /// Deletes a victim, which says why. Whether it was there.
    async fn delete(&self, victim: &PodInfo, pod: &Pod, means: &Means<'_>) -> Result<bool> {
        if let Some(condition) = told(pod, &self.info.scheduler_name) {
            let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
            match means.client.patch_status::<Pod, _>(&victim.key, &patch).await {
                Err(error) if error.is_not_found() => return Ok(false),
                written => drop(written?),
            }
        }
        let uid = Some(victim.uid.to_string());
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        match means.client.delete::<Pod>(&victim.key, &params).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(false),
            deleted => deleted.map(|_| true),
        }
    }
}

/// The condition by which a victim says why it goes, unless it says so already. If it goes for another
/// reason as well, it has been about to go since then.
fn told(victim: &Pod, by: &str) -> Option<PodCondition> {
    let reason = Some(PREEMPTED.to_owned());
    let message = Some(format!("{by}: preempting to accommodate a higher priority pod"));
    let conditions = victim.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let old = conditions.find(|it| it.type_ == DISRUPTION_TARGET && it.status == "True");
    if old.is_some_and(|old| old.reason == reason && old.message == message) {
        return None;
    }
    let since = old.and_then(|old| old.last_transition_time.clone());
    Some(PodCondition {
        type_: DISRUPTION_TARGET.into(),
        status: "True".into(),
        reason,
        message,
        last_transition_time: since.or_else(|| Some(clock::now_time())),
        observed_generation: victim.metadata.generation,
        ..PodCondition::default()
    })
}

/// What people are told of a victim, which is not deleted if it was only about to be bound.
fn note(preemptor: &Arc<str>, node: &str, is_cancelled: bool) -> String {
    let how = if is_cancelled { " (in kube-scheduler memory)." } else { "" };
    format!("Preempted by pod {preemptor} on node {node}{how}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_victim_says_once_why_it_goes() {
        let of = |conditions: serde_json::Value| -> Pod {
            let pod = json!({"metadata": {"generation": 3}, "status": {"conditions": conditions}});
            serde_json::from_value(pod).unwrap()
        };
        let first = told(&of(json!([])), "mine").unwrap();
        let message = "mine: preempting to accommodate a higher priority pod";
        assert_eq!((first.status.as_str(), first.message.as_deref()), ("True", Some(message)));
        assert_eq!(first.reason.as_deref(), Some("PreemptionByScheduler"));
        assert_eq!(first.observed_generation, Some(3));
        assert_eq!(told(&of(json!([first])), "mine"), None);
        let evicted = json!({"type": "DisruptionTarget", "status": "True", "reason": "Evicted",
                             "lastTransitionTime": "2030-01-01T00:00:00Z"});
        let second = told(&of(json!([evicted])), "mine").unwrap();
        let since = second.last_transition_time.unwrap().0.to_string();
        assert_eq!(since, "2030-01-01T00:00:00Z");
    }

    #[test]
    fn people_are_told_whether_a_victim_was_deleted() {
        let told = |is_cancelled| note(&"u".into(), "n", is_cancelled);
        assert_eq!(told(false), "Preempted by pod u on node n");
        assert_eq!(told(true), "Preempted by pod u on node n (in kube-scheduler memory).");
    }
}
