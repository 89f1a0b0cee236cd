//! The object of a cluster address, an `IPAddress`: whoever creates it has the address, so that the
//! store decides.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_rules::resource::Place;
use steersman_store::{Entry, Expected, StoreError, WriteRequest};
use steersman_values::IpFamily;

use crate::document::encode;
use crate::state::Server;
use crate::status::{Result, Status};
use crate::write::Writer;

/// Where `IPAddress` objects are.
pub(super) const PREFIX: &str = "/registry/ipaddresses/";

/// Who manages them, as their label says.
pub(super) const MANAGER: (&str, &str) =
    ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");

/// How often giving an address back is tried while others write its object.
const ATTEMPTS: usize = 16;

/// The name of the object of an address, which has several forms in IPv6.
pub(super) fn object_name(address: &str) -> String {
    address.parse::<IpAddr>().map_or_else(|_| address.to_owned(), |address| address.to_string())
}

/// The key of the object of an address.
pub(super) fn key(address: &str) -> String {
    format!("{PREFIX}{}", object_name(address))
}

/// Creates the object of an address; says whether there was none.
pub(super) async fn create(server: &Arc<Server>, owner: Place<'_>, address: &str) -> Result<bool> {
    let table = server.registry.table();
    let resource = table.get("networking.k8s.io", "v1", "ipaddresses");
    let writer = Writer::internal(server, resource.ok_or_else(Status::no_such_resource)?);
    let name = object_name(address);
    let family = name.parse().map_or(IpFamily::V4, IpFamily::of).name();
    let mut object = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {
            "name": name, "uid": server.random.uid(), "creationTimestamp": writer.now,
            "labels": {"ipaddress.kubernetes.io/ip-family": family, MANAGER.0: MANAGER.1},
        },
        "spec": {"parentRef": {
            "resource": "services", "namespace": owner.namespace, "name": owner.name,
        }},
    });
    writer.track(None, &mut object);
    let key = writer.resource.key(Place { namespace: "", name: &name });
    let request = WriteRequest::put(key, encode(&object)?, Expected::Absent);
    match server.store.write(request).await {
        Ok(_) => Ok(true),
        Err(StoreError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Gives an address back that a service held, unless another service has it by now: a repair may
/// have been faster. What cannot be given back now, a repair gives back later.
pub(super) async fn give_back(server: &Server, owner: Place<'_>, address: &str) {
    let key = key(address);
    let ours = |entry: &Entry| is_of(entry, owner);
    let mut entry = server.known(&key).await.ok().flatten().filter(ours);
    for _ in 0..ATTEMPTS {
        if entry.is_none() {
            entry = server.get(&key).await.ok().flatten().filter(ours);
        }
        let Some(found) = entry.take() else { return };
        let expected = Expected::Modified(found.modified);
        let written = server.store.write(WriteRequest::delete(found.key, expected)).await;
        if !matches!(written, Err(StoreError::Conflict { .. })) {
            return;
        }
    }
}

/// Whether the object of an address says that a service has it.
fn is_of(entry: &Entry, owner: Place<'_>) -> bool {
    let object: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    let parent = &object["spec"]["parentRef"];
    parent["namespace"] == owner.namespace && parent["name"] == owner.name
}
