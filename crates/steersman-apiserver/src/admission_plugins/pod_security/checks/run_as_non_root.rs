//! Every container is kept from running as root, by the Pod or by itself.

use super::wording::{containers, setters};
use super::{Pod, Violation};

const REASON: &str = "runAsNonRoot != true";

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let of_pod = &pod.security()["runAsNonRoot"];
    let bad = pod.names_of(|container| container.security()["runAsNonRoot"] == false);
    if let Some(setters) = setters(of_pod == false, &bad) {
        let detail = format!("{setters} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(REASON, detail));
    }
    if of_pod == true {
        return None;
    }
    let silent = pod.names_of(|container| container.security()["runAsNonRoot"].is_null());
    let detail =
        || format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent));
    (!silent.is_empty()).then(|| Violation::new(REASON, detail()))
}

/// Root in a user namespace is nobody on the host.
pub(super) fn since_1_35(pod: Pod<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { since_1_0(pod) }
}
