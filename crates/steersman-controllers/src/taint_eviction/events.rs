//! What people are told of a Pod that is to go.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::ObjectKey;
use steersman::events::{NewEvent, Recorder, Reference};

const REASON: &str = "TaintManagerEviction";

/// Tells that a Pod goes now.
pub(super) fn marked(recorder: &Recorder, pod: &ObjectKey) {
    tell(recorder, pod, "Marking for deletion Pod");
}

/// Tells that a Pod stays, or is gone already.
pub(super) fn cancelled(recorder: &Recorder, pod: &ObjectKey) {
    tell(recorder, pod, "Cancelling deletion of Pod");
}

fn tell(recorder: &Recorder, pod: &ObjectKey, what: &str) {
    // As Kubernetes does, by name alone.
    let meta = ObjectMeta {
        name: Some(pod.name.to_string()),
        namespace: pod.namespace.as_deref().map(str::to_owned),
        ..ObjectMeta::default()
    };
    let event = NewEvent::normal(REASON).note(format!("{what} {pod}"));
    recorder.event(Reference::with("v1", "Pod", &meta), event);
}
