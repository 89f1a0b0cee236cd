//! Tells a Pod, and people, that it could not be scheduled.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::events::{NewEvent, Recorder};
use steersman::{Client, clock};

use crate::framework::{FitError, PodInfo, Refusal};

/// The condition that tells whether a Pod has a node.
const POD_SCHEDULED: &str = "PodScheduled";
/// The longest note of an Event, in bytes.
const NOTE_MAX: usize = 1024;

/// Why a Pod could not be scheduled.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// `Unschedulable`, or `SchedulerError` if something went wrong.
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// The node where room is being made for it, or none any more; otherwise that stays as it is.
    pub(super) nominated_node: Option<Option<String>>,
}

impl Report {
    /// It does not fit; what is said of where it will go stays.
    pub(super) fn unschedulable(message: String) -> Self {
        Self { reason: "Unschedulable", message, nominated_node: None }
    }

    /// Something went wrong: nobody is to keep a place for it.
    pub(super) fn error(message: String) -> Self {
        Self { reason: "SchedulerError", message, nominated_node: Some(None) }
    }

    /// The node that was chosen is not for it after all. That is the only one it is told of, and the
    /// next time it may be another.
    pub(super) fn refused(plugin: &'static str, refusal: &Refusal) -> (Self, FitError) {
        let mut error = FitError { nodes: 1, ..FitError::default() };
        error.refusals.set(0, refusal.clone());
        error.refused_by(plugin, refusal);
        (Self::unschedulable(error.message()).nominated_nowhere(), error)
    }

    /// The same for a Pod that is not to go to any node that was said of it.
    pub(super) fn nominated_nowhere(mut self) -> Self {
        self.nominated_node = Some(None);
        self
    }

    /// Writes it down: as an Event, and in the Pod's status unless that says so already.
    pub(super) async fn write(&self, pod: &Pod, info: &PodInfo, client: &Client, by: &Recorder) {
        tracing::debug!(pod = %info.key, message = self.message, "pod not scheduled; requeued");
        let failed = NewEvent::warning("FailedScheduling").action("Scheduling");
        by.event(pod, failed.note(shortened(&self.message)));
        if let Some(status) = self.status(pod) {
            let patch = Patch::Strategic(json!({"status": status}));
            let written = client.patch_status::<Pod, _>(&info.key, &patch).await;
            match written {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    tracing::warn!(pod = %info.key, %error, "cannot write why a pod waits");
                }
            }
        }
    }

    /// What has to be written into the Pod's status, if anything. The time is that of the last change
    /// between having a place and having none.
    fn status(&self, pod: &Pod) -> Option<Value> {
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        let old = conditions.find(|it| it.type_ == POD_SCHEDULED && it.status == "False");
        let is_known = old.is_some_and(|old| {
            old.reason.as_deref() == Some(self.reason)
                && old.message.as_deref() == Some(&self.message)
        });
        let nominated = status.and_then(|status| status.nominated_node_name.as_deref());
        let nominated = nominated.filter(|node| !node.is_empty());
        let renominated = self.nominated_node.as_ref().filter(|node| node.as_deref() != nominated);
        if is_known && renominated.is_none() {
            return None;
        }
        let since = old.and_then(|old| old.last_transition_time.clone());
        let condition = PodCondition {
            type_: POD_SCHEDULED.into(),
            status: "False".into(),
            reason: Some(self.reason.into()),
            message: Some(self.message.clone()),
            last_transition_time: since.or_else(|| Some(clock::now_time())),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        };
        let mut status = json!({"conditions": [condition]});
        if let Some(node) = renominated {
            status["nominatedNodeName"] = json!(node);
        }
        Some(status)
    }
}

/// Tells people that nothing is done for a Pod which is being deleted.
pub(super) fn skip(pod: &Pod, info: &PodInfo, by: &Recorder) {
    let skipped = NewEvent::warning("FailedScheduling").action("Scheduling");
    by.event(pod, skipped.note(format!("skip schedule deleting pod: {}", info.key)));
}

/// A text that fits into a note.
fn shortened(text: &str) -> String {
    if text.len() <= NOTE_MAX {
        return text.to_owned();
    }
    let mut end = NOTE_MAX - " ...".len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} ...", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(message: &str) -> Report {
        Report::unschedulable(message.to_owned())
    }

    #[test]
    fn who_is_refused_on_the_node_that_was_chosen_is_told_of_that_node_alone() {
        let (report, error) = Report::refused("Own", &Refusal::unschedulable("not yours"));
        assert_eq!(report.reason, "Unschedulable");
        assert_eq!(report.message, "0/1 nodes are available: 1 not yours.");
        assert_eq!(report.nominated_node, Some(None));
        assert!(error.plugins.contains("Own"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_pod_says_already_is_not_written_and_its_time_stays() {
        let mut pod = Pod::default();
        let first = report("no").status(&pod).unwrap();
        pod.status = Some(serde_json::from_value(first.clone()).unwrap());
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        assert_eq!(report("no").status(&pod), None);
        let second = report("still no").status(&pod).unwrap();
        let time = |status: &Value| status["conditions"][0]["lastTransitionTime"].clone();
        assert_eq!(time(&first), time(&second));
    }

    #[test]
    fn a_nomination_is_written_and_taken_back() {
        let nominating = |node: Option<&str>| Report {
            nominated_node: Some(node.map(str::to_owned)),
            ..report("no")
        };
        let mut pod = Pod::default();
        let status = nominating(Some("n")).status(&pod).unwrap();
        assert_eq!(status["nominatedNodeName"], "n");
        pod.status = Some(serde_json::from_value(status).unwrap());
        assert_eq!(nominating(Some("n")).status(&pod), None);
        assert_eq!(nominating(None).status(&pod).unwrap()["nominatedNodeName"], Value::Null);
    }

    #[test]
    fn a_note_is_cut_where_it_gets_too_long() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"ä".repeat(600));
        assert!(long.len() <= NOTE_MAX && long.ends_with(" ..."));
    }
}
