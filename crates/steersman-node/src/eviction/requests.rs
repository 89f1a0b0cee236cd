//! What Pods asked for, and how far they may go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use steersman_values::Quantity;

/// Amounts by resource.
type Amounts = BTreeMap<String, Text>;

/// What a Pod asked for of a resource, with its overhead.
pub(super) fn request(pod: &Pod, resource: &str) -> Quantity {
    let own = total(pod, resource, |it| it.requests.as_ref()).unwrap_or(Quantity::ZERO);
    let overhead = pod.spec.as_ref().and_then(|spec| amount(spec.overhead.as_ref(), resource));
    match overhead.filter(|_| own != Quantity::ZERO) {
        Some(overhead) => own.checked_add(overhead).unwrap_or(own),
        None => own,
    }
}

/// How much of a resource the containers of a Pod may use together, if any of them has a limit.
pub(super) fn limit(pod: &Pod, resource: &str) -> Option<Quantity> {
    total(pod, resource, |it| it.limits.as_ref())
}

/// The sum of what runs at the same time, or what an init container needs if that is more. What is
/// said for the Pod as a whole goes before.
fn total(
    pod: &Pod,
    resource: &str,
    list: impl Fn(&ResourceRequirements) -> Option<&Amounts>,
) -> Option<Quantity> {
    let spec = pod.spec.as_ref()?;
    let whole = spec.resources.as_ref().and_then(|it| amount(list(it), resource));
    if whole.is_some() {
        return whole;
    }
    let of = |container: &Container| amount(list(container.resources.as_ref()?), resource);
    let sum = |one: Option<Quantity>, other: Option<Quantity>| match (one, other) {
        (Some(one), Some(other)) => one.checked_add(other),
        (one, other) => one.or(other),
    };
    let mut main = None;
    for container in &spec.containers {
        main = sum(main, of(container));
    }
    // Companions stay, so others run beside those that were started before them.
    let (mut companions, mut most) = (None, None);
    for container in spec.init_containers.iter().flatten() {
        let together = sum(companions, of(container));
        if container.restart_policy.as_deref() == Some("Always") {
            companions = together;
        }
        most = most.max(together);
    }
    sum(main, companions).max(most)
}

/// An amount in a list.
pub(super) fn amount(list: Option<&Amounts>, resource: &str) -> Option<Quantity> {
    Quantity::parse(&list?.get(resource)?.0).ok()
}

/// A number of bytes as quantities of memory and disks are written.
pub(super) fn binary(bytes: i64) -> String {
    const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if bytes.abs() < 1024 {
        return decimal(bytes);
    }
    let (mut amount, mut unit) = (bytes, 0);
    while amount % 1024 == 0 && unit + 1 < UNITS.len() {
        amount /= 1024;
        unit += 1;
    }
    format!("{amount}{}", UNITS[unit])
}

/// A number as other quantities are written.
pub(super) fn decimal(number: i64) -> String {
    Quantity::parse(&number.to_string()).map_or_else(|_| number.to_string(), |it| it.to_string())
}
