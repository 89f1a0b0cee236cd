//! On Windows, too, a Pod does not run as a process of its host.

use serde_json::Value;

use super::wording::setters;
use super::{Pod, Violation};

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let is_bad = |security: &Value| security["windowsOptions"]["hostProcess"] == true;
    let bad = pod.names_of(|container| is_bad(container.security()));
    let setters = setters(is_bad(pod.security()), &bad)?;
    let detail = format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}
