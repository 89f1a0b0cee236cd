//! Which Pods are endpoints of the Services that select them.

use k8s_openapi::api::core::v1::{Pod, Service};

use super::names;
use crate::pod;

/// Whether a Pod belongs among endpoints: it has an address and has not ended. Pods that are being
/// deleted do as well where it is said so.
pub(crate) fn is_endpoint(pod: &Pod, terminating: bool) -> bool {
    !pod::is_terminal(pod)
        && has_address(pod)
        && (terminating || pod.metadata.deletion_timestamp.is_none())
}

fn has_address(pod: &Pod) -> bool {
    let Some(status) = pod.status.as_ref() else { return false };
    status.pod_ip.as_ref().is_some_and(|ip| !ip.is_empty())
        || status.pod_ips.as_ref().is_some_and(|ips| !ips.is_empty())
}

/// The hostname under which a Pod is found below the name of this Service.
pub(crate) fn sets_hostname<'a>(pod: &'a Pod, service: &Service) -> Option<&'a str> {
    let spec = pod.spec.as_ref()?;
    let hostname = spec.hostname.as_deref().filter(|name| !name.is_empty())?;
    let (namespace, name) = names(service);
    let is_below = spec.subdomain.as_deref().unwrap_or_default() == name
        && pod.metadata.namespace.as_deref().unwrap_or_default() == namespace;
    is_below.then_some(hostname)
}

/// Whether endpoints may differ because a Pod has changed in this way.
pub(super) fn concerns_endpoints(old: &Pod, new: &Pod) -> bool {
    let named = |pod: &Pod| {
        let spec = pod.spec.as_ref();
        spec.map(|spec| (spec.hostname.clone(), spec.subdomain.clone(), spec.node_name.clone()))
    };
    let addresses = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ips.clone());
    old.metadata.labels != new.metadata.labels
        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        || pod::is_ready(old) != pod::is_ready(new)
        || pod::is_terminal(old) != pod::is_terminal(new)
        || addresses(old) != addresses(new)
        || named(old) != named(new)
}
