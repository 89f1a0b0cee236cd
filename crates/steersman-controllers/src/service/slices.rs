//! Endpoints in EndpointSlices: what tells them apart, and what makes slices of one sort.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort};

use super::ports::protocol_of;

/// What tells endpoints apart. All else of one may change where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    addresses: Vec<String>,
    hostname: String,
    namespace: String,
    name: String,
}

impl Identity {
    fn of(endpoint: &Endpoint) -> Self {
        let mut addresses = endpoint.addresses.clone();
        addresses.sort_unstable();
        let target = endpoint.target_ref.as_ref();
        Self {
            addresses,
            hostname: endpoint.hostname.clone().unwrap_or_default(),
            namespace: target.and_then(|target| target.namespace.clone()).unwrap_or_default(),
            name: target.and_then(|target| target.name.clone()).unwrap_or_default(),
        }
    }
}

/// Whether endpoints of one identity are the same in all else but hints, which follow from it.
pub(crate) fn same_beyond_identity(a: &Endpoint, b: &Endpoint) -> bool {
    let conditions = |of: &Endpoint| {
        let EndpointConditions { ready, serving, terminating } =
            of.conditions.clone().unwrap_or_default();
        (ready, serving, terminating)
    };
    a.node_name == b.node_name
        && a.zone == b.zone
        && conditions(a) == conditions(b)
        && same_target(a.target_ref.as_ref(), b.target_ref.as_ref())
}

/// Whether both are of the same object. Its version, which others write, does not matter.
pub(crate) fn same_target(a: Option<&ObjectReference>, b: Option<&ObjectReference>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            (&a.uid, &a.name, &a.namespace) == (&b.uid, &b.name, &b.namespace)
                && (&a.kind, &a.api_version) == (&b.kind, &b.api_version)
                && a.field_path == b.field_path
        }
        (None, None) => true,
        _ => false,
    }
}

/// The endpoints that there should be, in order, each once.
#[derive(Default)]
pub(crate) struct Desired {
    places: HashMap<Identity, usize>,
    endpoints: Vec<Option<Endpoint>>,
}

impl Desired {
    /// Adds one; of several that are the same the last counts.
    pub(crate) fn insert(&mut self, endpoint: Endpoint) {
        let place = *self.places.entry(Identity::of(&endpoint)).or_insert(self.endpoints.len());
        if place == self.endpoints.len() {
            self.endpoints.push(None);
        }
        self.endpoints[place] = Some(endpoint);
    }

    /// Takes the one that is the same as this.
    pub(crate) fn take(&mut self, same: &Endpoint) -> Option<Endpoint> {
        let place = self.places.remove(&Identity::of(same))?;
        self.endpoints[place].take()
    }

    /// The one that is the same as this.
    pub(crate) fn get(&self, same: &Endpoint) -> Option<&Endpoint> {
        let place = self.places.get(&Identity::of(same))?;
        self.endpoints[*place].as_ref()
    }

    /// How many are left.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Those that nobody has taken.
    pub(crate) fn rest(self) -> impl Iterator<Item = Endpoint> {
        self.endpoints.into_iter().flatten()
    }
}

/// What slices have in common whose endpoints may stand in any of them: their ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortsKey(Vec<(String, Option<i32>, String, Option<String>)>);

/// The key of these ports, in whatever order they are.
pub(crate) fn ports_key(ports: &[EndpointPort]) -> PortsKey {
    let of_port = |port: &EndpointPort| {
        let name = port.name.clone().unwrap_or_default();
        let protocol = protocol_of(port.protocol.as_deref()).to_owned();
        (name, port.port, protocol, port.app_protocol.clone())
    };
    let mut key: Vec<_> = ports.iter().map(of_port).collect();
    key.sort();
    PortsKey(key)
}

/// How the names of the slices of a Service begin.
pub(crate) fn name_prefix(service: &str) -> String {
    const NAME_MAX: usize = 253;
    if service.len() < NAME_MAX { format!("{service}-") } else { service.to_owned() }
}
