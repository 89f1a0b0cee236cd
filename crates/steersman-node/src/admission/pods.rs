//! What a machine cannot do for a Pod, whatever else runs on it.

use k8s_openapi::api::core::v1::Pod;

use steersman_scheduler::framework::needed_features;

use super::sysctls;
use crate::registration::Machine;
use crate::rejection::Rejection;

/// The operating system of all machines.
const OS: &str = "linux";
const OS_LABEL: &str = "kubernetes.io/os";

/// Whether a machine can run a Pod at all.
pub(super) fn check(pod: &Pod, machine: &Machine) -> Result<(), Rejection> {
    let Some(spec) = &pod.spec else { return Ok(()) };
    sysctls::check(spec, machine.kernel())?;
    let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get(OS_LABEL));
    if label.is_some_and(|os| os != OS) {
        return Err(Rejection::OsLabel);
    }
    if spec.os.as_ref().is_some_and(|os| os.name != OS) {
        return Err(Rejection::Os);
    }
    let context = spec.security_context.as_ref();
    let policy = context.and_then(|context| context.supplemental_groups_policy.as_deref());
    if policy == Some("Strict") && !machine.has_strict_groups() {
        return Err(Rejection::StrictGroups);
    }
    let missing =
        needed_features(spec).filter(|name| !machine.features.iter().any(|it| it == name));
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        return Err(Rejection::Features(missing.join(", ")));
    }
    Ok(())
}
