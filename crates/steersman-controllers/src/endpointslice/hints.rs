//! For whom endpoints are: hints about zones and nodes, as the Service's `trafficDistribution` asks
//! for, or its annotation `service.kubernetes.io/topology-mode`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone};
use steersman::ObjectKey;
use steersman::handler::Requests;
use steersman::informer::Event;

use super::packing::{Changes, endpoints};

const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_AWARE_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// Which endpoints a Service prefers for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// Any for all.
    Anywhere,
    /// Those of the same zone; by the name of how that is asked for.
    SameZone(&'static str),
    /// Those of the same node, then of the same zone.
    SameNode,
    /// As many for each zone as it has processors.
    Automatic,
}

impl Traffic {
    /// What a Service asks for. The annotation goes before the field.
    pub(super) fn of(service: &Service) -> Self {
        if is_automatic(service) {
            return Self::Automatic;
        }
        let asked = service.spec.as_ref().and_then(|spec| spec.traffic_distribution.as_deref());
        match asked {
            Some("PreferClose") => Self::SameZone("PreferClose"),
            Some("PreferSameZone") => Self::SameZone("PreferSameZone"),
            Some("PreferSameNode") => Self::SameNode,
            _ => Self::Anywhere,
        }
    }

    /// The value of `trafficDistribution` that is followed, if one is.
    pub(super) fn distribution(self) -> Option<&'static str> {
        match self {
            Self::SameZone(name) => Some(name),
            Self::SameNode => Some("PreferSameNode"),
            Self::Anywhere | Self::Automatic => None,
        }
    }

    /// The hints that an endpoint should have.
    fn hints(self, endpoint: &Endpoint) -> Option<EndpointHints> {
        let zone = endpoint.zone.clone().map(|name| vec![ForZone { name }]);
        let node = endpoint.node_name.clone().map(|name| vec![ForNode { name }]);
        let hints = match self {
            Self::SameZone(_) => EndpointHints { for_zones: zone, for_nodes: None },
            Self::SameNode => EndpointHints { for_zones: zone, for_nodes: node },
            Self::Anywhere | Self::Automatic => return None,
        };
        (hints.for_zones.is_some() || hints.for_nodes.is_some()).then_some(hints)
    }

    /// Whether an endpoint of a slice that stays has other hints than it should: of those that are
    /// not ready nobody minds, unless they should have none.
    fn is_off(self, endpoint: &Endpoint) -> bool {
        (is_ready(endpoint) || self == Self::Anywhere) && endpoint.hints != self.hints(endpoint)
    }

    /// Has slices written that would have stayed as they are, but for their hints.
    pub(super) fn revise_kept(self, changes: &mut Changes) {
        let off = |slice: &EndpointSlice| endpoints(slice).iter().any(|one| self.is_off(one));
        revise_kept(changes, off);
    }

    /// Gives all endpoints that are written the hints that they should have.
    pub(super) fn hint(self, changes: &mut Changes) {
        for slice in changes.create.iter_mut().chain(&mut changes.update) {
            for endpoint in slice.endpoints.iter_mut().flatten() {
                if is_ready(endpoint) || self == Self::Anywhere {
                    endpoint.hints = self.hints(endpoint);
                }
            }
        }
    }
}

/// Moves slices that would have stayed as they are to those that are written.
pub(super) fn revise_kept(changes: &mut Changes, mut is_off: impl FnMut(&EndpointSlice) -> bool) {
    let (off, keep): (Vec<_>, Vec<_>) =
        std::mem::take(&mut changes.keep).into_iter().partition(|slice| is_off(slice));
    changes.keep = keep;
    changes.update.extend(off.into_iter().map(Arc::unwrap_or_clone));
}

/// Whether traffic may be sent to an endpoint.
pub(super) fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true)
}

/// Whether an annotation asks for hints by the number of processors. The older one goes first.
fn is_automatic(service: &Service) -> bool {
    let Some(annotations) = &service.metadata.annotations else { return false };
    let mode = annotations.get(TOPOLOGY_AWARE_HINTS).or_else(|| annotations.get(TOPOLOGY_MODE));
    mode.is_some_and(|mode| mode == "Auto" || mode == "auto")
}

/// The Services whose hints follow the processors of zones, to look at them again when nodes come
/// and go. Clones share their content.
#[derive(Clone, Default)]
pub(super) struct Automatic {
    services: Arc<Mutex<BTreeSet<ObjectKey>>>,
}

impl Automatic {
    /// Takes a change of a Service into account.
    pub(super) fn observe(&self, event: &Event<Service>) {
        let asks = match event {
            Event::Deleted { .. } => false,
            _ => event.object().object().is_some_and(|service| is_automatic(&service)),
        };
        let key = event.object().key();
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if asks {
            services.insert(key.clone());
        } else {
            services.remove(key);
        }
    }

    /// Names all of them.
    pub(super) fn all(&self, requests: &mut Requests) {
        let services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.iter().for_each(|key| requests.add(key));
    }
}
