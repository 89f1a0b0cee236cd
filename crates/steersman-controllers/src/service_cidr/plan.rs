//! Which ranges contain which addresses, and whether a range may go.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use steersman::ObjectKey;
use steersman::handler::Requests;
use steersman::informer::Event;

use crate::cidr::Cidr;

/// Who takes addresses for Services, as the label of their objects says.
const MANAGED_BY: (&str, &str) = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");

/// The ranges that are being deleted, to look at them again when an address of theirs is free: to the
/// others it does not matter.
#[derive(Default)]
pub(super) struct Ranges {
    leaving: Mutex<BTreeMap<ObjectKey, Vec<Cidr>>>,
}

impl Ranges {
    /// Takes a change of a range into account.
    pub(super) fn observe(&self, event: &Event<ServiceCIDR>) {
        let object = event.object();
        let leaves = match event {
            Event::Deleted { .. } => None,
            _ => object.object().filter(|range| range.metadata.deletion_timestamp.is_some()),
        };
        match leaves {
            Some(range) => drop(self.lock().insert(object.key().clone(), cidrs(&range))),
            None => drop(self.lock().remove(object.key())),
        }
    }

    /// Names those that contain an address.
    pub(super) fn leaving(&self, address: &ObjectKey, requests: &mut Requests) {
        let Ok(address) = address.name.parse::<IpAddr>() else { return };
        let leaving = self.lock();
        let containing =
            leaving.iter().filter(|(_, all)| all.iter().any(|it| it.contains(address)));
        containing.for_each(|(key, _)| requests.add(key));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Vec<Cidr>>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cidrs(range: &ServiceCIDR) -> Vec<Cidr> {
    let cidrs = range.spec.as_ref().and_then(|spec| spec.cidrs.as_ref());
    cidrs.into_iter().flatten().filter_map(|cidr| cidr.parse().ok()).collect()
}

/// Whether Services get addresses of the range.
const READY: &str = "Ready";

/// That a range can be used. There is no reason for it, which the framework's own conditions must have.
pub(super) fn ready(now: Time) -> Condition {
    condition("True", "", "Kubernetes Service CIDR is ready", now)
}

/// That a range waits for its addresses.
pub(super) fn terminating(now: Time) -> Condition {
    let message = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create \
                   a new ServiceCIDR";
    condition("False", "Terminating", message, now)
}

fn condition(status: &str, reason: &str, message: &str, now: Time) -> Condition {
    Condition {
        type_: READY.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: now,
        observed_generation: None,
    }
}

/// Whether a range says so already, since whenever.
pub(super) fn says(range: &ServiceCIDR, condition: &Condition) -> bool {
    let conditions = range.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| {
        let since = it.last_transition_time.clone();
        *it == Condition { last_transition_time: since, ..condition.clone() }
    })
}

/// Whether a range may go: others cover all of it, or each address that a Service has of it.
pub(super) fn may_go(
    range: &ServiceCIDR,
    all: &[Arc<ServiceCIDR>],
    addresses: &[Arc<IPAddress>],
) -> bool {
    let is_other = |other: &&Arc<ServiceCIDR>| {
        other.metadata.name != range.metadata.name && other.metadata.deletion_timestamp.is_none()
    };
    let others: Vec<Cidr> = all.iter().filter(is_other).flat_map(|other| cidrs(other)).collect();
    let own = cidrs(range);
    if own.iter().all(|cidr| others.iter().any(|other| other.covers(cidr))) {
        return true;
    }
    let of_service = |address: &&Arc<IPAddress>| {
        let labels = address.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(MANAGED_BY.0)).is_some_and(|by| by == MANAGED_BY.1)
    };
    let held = addresses.iter().filter(of_service).filter_map(|address| {
        address.metadata.name.as_deref().and_then(|name| name.parse::<IpAddr>().ok())
    });
    let mut orphaned = held.filter(|ip| own.iter().any(|cidr| cidr.serves(*ip)));
    orphaned.all(|ip| others.iter().any(|other| other.serves(ip)))
}
