//! Which Pods a node takes while it is short of something, and keeps whatever happens.

use k8s_openapi::api::core::v1::{Pod, Toleration};

use super::signal::Condition;

/// The priority from which on Pods belong to the system.
const SYSTEM_CRITICAL: i32 = 2_000_000_000;

/// Where a Pod came from, if not from the API server.
const CONFIG_SOURCE: &str = "kubernetes.io/config.source";
/// On the object that stands for a static Pod.
const CONFIG_MIRROR: &str = "kubernetes.io/config.mirror";

const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";

/// Whether a Pod is needed by the system: static ones, which would not come again, and those of the
/// highest priorities.
pub(crate) fn is_critical(pod: &Pod) -> bool {
    let annotation = |name: &str| pod.metadata.annotations.as_ref().and_then(|all| all.get(name));
    let is_static = annotation(CONFIG_SOURCE).is_some_and(|source| source != "api");
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority);
    is_static
        || annotation(CONFIG_MIRROR).is_some()
        || priority.is_some_and(|priority| priority >= SYSTEM_CRITICAL)
}

/// Whether a node with these conditions takes a Pod. If not, the Pod fails with the reason
/// [`REASON`](super::REASON) and this message.
pub(crate) fn admits(pod: &Pod, conditions: &[Condition]) -> Result<(), String> {
    if conditions.is_empty() || is_critical(pod) {
        return Ok(());
    }
    if conditions == [Condition::Memory] && (!is_best_effort(pod) || tolerates_memory_pressure(pod))
    {
        return Ok(());
    }
    let names: Vec<String> = conditions.iter().map(ToString::to_string).collect();
    Err(format!("The node had condition: [{}]. ", names.join(" ")))
}

fn is_best_effort(pod: &Pod) -> bool {
    let class = pod.status.as_ref().and_then(|status| status.qos_class.as_deref());
    class == Some("BestEffort")
}

fn tolerates_memory_pressure(pod: &Pod) -> bool {
    let tolerates = |toleration: &Toleration| {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let (key, effect) = (text(&toleration.key), text(&toleration.effect));
        let value = match text(&toleration.operator).as_str() {
            "" | "Equal" => text(&toleration.value).is_empty(),
            operator => operator == "Exists",
        };
        matches!(effect.as_str(), "" | "NoSchedule")
            && (key == MEMORY_PRESSURE || key.is_empty())
            && value
    };
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
    tolerations.into_iter().flatten().any(tolerates)
}
