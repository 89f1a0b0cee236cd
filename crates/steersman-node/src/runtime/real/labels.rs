//! How sandboxes and containers say whose they are: the labels of a kubelet, by which an agent that
//! was started anew, and people, find them.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use steersman::ObjectKey;

const POD_NAME: &str = "io.kubernetes.pod.name";
const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
/// The uid of the Pod.
pub(super) const POD_UID: &str = "io.kubernetes.pod.uid";
/// The name of the container in the Pod.
pub(super) const CONTAINER_NAME: &str = "io.kubernetes.container.name";
/// Whose the sandbox is: several agents may share a runtime.
pub(super) const NODE: &str = "steersman.dev/node";
/// The image that the Pod asked for when the container was made: a running container with another one
/// is started again.
const IMAGE: &str = "steersman.dev/image";
const RESTARTS: &str = "io.kubernetes.container.restartCount";
const MESSAGE_PATH: &str = "io.kubernetes.container.terminationMessagePath";
const MESSAGE_POLICY: &str = "io.kubernetes.container.terminationMessagePolicy";
const GRACE: &str = "io.kubernetes.pod.terminationGracePeriod";

type Labels = HashMap<String, String>;

/// What every part of a Pod says of it.
fn of_any(pod: &Pod, node: &str) -> Labels {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let meta = &pod.metadata;
    Labels::from([
        (POD_NAME.into(), text(&meta.name)),
        (POD_NAMESPACE.into(), text(&meta.namespace)),
        (POD_UID.into(), text(&meta.uid)),
        (NODE.into(), node.to_owned()),
    ])
}

/// Those of a sandbox: the Pod's own as well.
pub(super) fn of_sandbox(pod: &Pod, node: &str) -> Labels {
    let own = pod.metadata.labels.iter().flatten();
    let mut labels: Labels = own.map(|(key, value)| (key.clone(), value.clone())).collect();
    labels.extend(of_any(pod, node));
    labels
}

/// Those of a container.
pub(super) fn of_container(pod: &Pod, container: &Container, node: &str) -> Labels {
    let mut labels = of_any(pod, node);
    labels.insert(CONTAINER_NAME.into(), container.name.clone());
    labels
}

/// What is kept of a container for when its Pod is gone.
pub(super) fn annotations(pod: &Pod, container: &Container, attempt: i32) -> Labels {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let mut annotations = Labels::from([
        (IMAGE.into(), text(&container.image)),
        (RESTARTS.into(), attempt.to_string()),
        (MESSAGE_PATH.into(), text(&container.termination_message_path)),
        (MESSAGE_POLICY.into(), text(&container.termination_message_policy)),
    ]);
    let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    annotations.extend(grace.map(|seconds| (GRACE.into(), seconds.to_string())));
    annotations
}

/// The image that a container was made for, unless an older agent has made it.
pub(super) fn image(annotations: &Labels) -> Option<&str> {
    annotations.get(IMAGE).map(String::as_str)
}

/// The uid of the Pod that something belongs to.
pub(super) fn uid(labels: &Labels) -> Option<&str> {
    labels.get(POD_UID).map(String::as_str)
}

/// The Pod that something belongs to.
pub(super) fn pod(labels: &Labels) -> Option<ObjectKey> {
    let (namespace, name) = (labels.get(POD_NAMESPACE)?, labels.get(POD_NAME)?);
    Some(ObjectKey::namespaced(namespace.as_str(), name.as_str()))
}
