//! Addresses and their families.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Pod, ServiceSpec};

use super::has_cluster_ip;

/// A family of addresses; what EndpointSlices call the type of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    /// The name that Services and EndpointSlices give it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.name() == name)
    }

    /// The family of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The families of a Service. Where nothing is said, its own address tells, and of a headless
    /// one both are assumed.
    pub(crate) fn of_service(spec: &ServiceSpec) -> Vec<Self> {
        let said = spec.ip_families.iter().flatten().filter_map(|name| Self::named(name));
        let mut families: Vec<Self> = said.collect();
        families.dedup();
        if families.is_empty() && has_cluster_ip(spec) {
            families.extend(spec.cluster_ip.as_deref().and_then(canonical).map(Self::of));
        } else if families.is_empty() {
            families.extend([Self::V4, Self::V6]);
        }
        families
    }

    /// The addresses that a Pod has of this family.
    pub(crate) fn of_pod(self, pod: &Pod) -> Vec<String> {
        let all = pod.status.as_ref().and_then(|status| status.pod_ips.as_ref());
        let parsed = all.into_iter().flatten().filter_map(|address| canonical(&address.ip));
        parsed.filter(|ip| Self::of(*ip) == self).map(|ip| ip.to_string()).collect()
    }
}

/// An address, also if zeros stand before its numbers, as was customary, or if it is an IPv4
/// address in the clothes of IPv6.
pub(crate) fn canonical(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    let plain = |part: &str| {
        let digits = part.trim_start_matches('0');
        if digits.is_empty() && !part.is_empty() { "0".to_owned() } else { digits.to_owned() }
    };
    text.split('.').map(plain).collect::<Vec<_>>().join(".").parse().ok()
}
