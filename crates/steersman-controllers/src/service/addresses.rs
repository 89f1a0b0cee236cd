//! Addresses and their families.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::core::v1::{Pod, ServiceSpec};
use steersman_values::IpFamily;

use super::has_cluster_ip;

/// The families of a Service. Where nothing is said, its own address tells, and of a headless one both are
/// assumed.
pub(crate) fn families_of(spec: &ServiceSpec) -> Vec<IpFamily> {
    let said = spec.ip_families.iter().flatten().filter_map(|name| IpFamily::named(name));
    let mut families: Vec<IpFamily> = said.collect();
    families.dedup();
    if families.is_empty() && has_cluster_ip(spec) {
        families.extend(spec.cluster_ip.as_deref().and_then(canonical).map(IpFamily::of));
    } else if families.is_empty() {
        families.extend(IpFamily::ALL);
    }
    families
}

/// The addresses that a Pod has of this family. Those that are written as they should be, as nearly
/// all are, are not copied.
pub(crate) fn pod_addresses(pod: &Pod, family: IpFamily) -> impl Iterator<Item = Cow<'_, str>> {
    let all = pod.status.as_ref().and_then(|status| status.pod_ips.as_ref());
    all.into_iter().flatten().filter_map(move |address| {
        let text = address.ip.as_str();
        if let Ok(plain) = text.parse::<Ipv4Addr>() {
            return (family == IpFamily::of(plain.into())).then_some(Cow::Borrowed(text));
        }
        let ip = canonical(text).filter(|ip| IpFamily::of(*ip) == family)?;
        Some(Cow::Owned(ip.to_string()))
    })
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
