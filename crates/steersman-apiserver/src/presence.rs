//! Which servers live, as the endpoints of the service `kubernetes` say in both forms.
//!
//! As in Kubernetes each server keeps an entry in the store that goes by itself unless it is
//! renewed, and whoever renews its own writes down all that are there. A server that stops in
//! order takes its entry away; one that dies is missed after a while.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_rules::metadata;
use steersman_rules::resource::Place;
use steersman_store::{Expected, RangeRequest, StoreError, WriteRequest};

use crate::heartbeat;
use crate::state::Server;
use crate::status::{Result, Status};
use crate::write::delete::delete_object;
use crate::write::own::keep;
use crate::write::{DeleteOptions, Writer};

/// Where servers say that they live.
const LEASES: &str = "/registry/masterleases/";

/// How long a server counts as alive after it last said so. It says so every ten seconds.
const TTL: Duration = Duration::from_secs(15);

const SERVICE: &str = "kubernetes";
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
const SLICES: [&str; 3] = ["discovery.k8s.io", "v1", "endpointslices"];

/// Says that this server lives, and writes down all that do.
pub(crate) async fn run(server: &Arc<Server>) -> Result<()> {
    let Some(endpoint) = server.reachable() else { return Ok(()) };
    // Who is about to stop is no longer to be found.
    if !server.is_stopping() {
        let request = WriteRequest::put(lease(endpoint), endpoint.to_string(), Expected::Any);
        server.store.write(request.expiring(TTL)).await?;
    }
    write_down(server).await?;
    if server.is_stopping() { Ok(()) } else { heartbeat::beat(server, endpoint).await }
}

/// Takes this server off the list, because it is about to stop.
pub(crate) async fn withdraw(server: &Arc<Server>) -> Result<()> {
    let Some(endpoint) = server.reachable() else { return Ok(()) };
    // A server that extends another has no service `kubernetes`.
    if server.registry.table().get("", "v1", "endpoints").is_none() {
        return Ok(());
    }
    let request = WriteRequest::delete(lease(endpoint), Expected::Any);
    match server.store.write(request).await {
        Ok(_) | Err(StoreError::Conflict { .. }) => write_down(server).await,
        Err(error) => Err(error.into()),
    }
}

/// Two servers may share an address, so the port is in the key.
fn lease(endpoint: SocketAddr) -> String {
    format!("{LEASES}{endpoint}")
}

/// Servers that are described together: with the same sort of address and the same port.
type Groups = BTreeMap<(bool, u16), Vec<IpAddr>>;

async fn write_down(server: &Arc<Server>) -> Result<()> {
    let request = RangeRequest { prefix: LEASES.to_owned(), ..RangeRequest::default() };
    let entries = server.store.range(request).await?.entries;
    let mut groups = Groups::new();
    for endpoint in entries.iter().filter_map(|entry| entry.key[LEASES.len()..].parse().ok()) {
        let endpoint: SocketAddr = endpoint;
        groups.entry((endpoint.is_ipv6(), endpoint.port())).or_default().push(endpoint.ip());
    }
    // The last one to go leaves its name: nobody is there to say that nobody is.
    if groups.is_empty() {
        return Ok(());
    }
    groups.values_mut().for_each(|ips| ips.sort_unstable());
    keep_endpoints(server, &groups).await?;
    keep_slices(server, &groups).await
}

/// The endpoints may be loopback addresses, which a client may not write.
async fn keep_endpoints(server: &Arc<Server>, groups: &Groups) -> Result<()> {
    let subsets: Vec<Value> = groups
        .iter()
        .map(|((_, port), ips)| {
            let addresses: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip})).collect();
            json!({"addresses": addresses, "ports": ports(*port)})
        })
        .collect();
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": SERVICE, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": subsets,
    });
    keep(server, ["", "v1", "endpoints"], endpoints, |object, wanted| {
        object["subsets"] = wanted["subsets"].clone();
    })
    .await
}

/// One slice a group, for all endpoints of a slice have the same ports; the first has the name of
/// the service. Slices of groups that are no more are deleted.
async fn keep_slices(server: &Arc<Server>, groups: &Groups) -> Result<()> {
    let mut names = Vec::new();
    for (index, ((is_ipv6, port), ips)) in groups.iter().enumerate() {
        let family = if *is_ipv6 { "IPv6" } else { "IPv4" };
        let name = match index {
            0 => SERVICE.to_owned(),
            _ => format!("{SERVICE}-{}-{port}", family.to_lowercase()),
        };
        let ready = |ip: &IpAddr| json!({"addresses": [ip], "conditions": {"ready": true}});
        let endpoints: Vec<Value> = ips.iter().map(ready).collect();
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {SERVICE_LABEL: SERVICE}},
            "addressType": family, "endpoints": endpoints, "ports": ports(*port),
        });
        keep(server, SLICES, slice, |object, wanted| {
            for field in ["addressType", "endpoints", "ports"] {
                object[field] = wanted[field].clone();
            }
        })
        .await?;
        names.push(name);
    }
    delete_slices(server, &names).await
}

async fn delete_slices(server: &Arc<Server>, kept: &[String]) -> Result<()> {
    let table = server.registry.table();
    let [group, version, plural] = SLICES;
    let resource = table.get(group, version, plural).ok_or_else(Status::no_such_resource)?;
    let prefix = resource.prefix("default") + SERVICE + "-";
    let request = RangeRequest { prefix, stale: true, ..RangeRequest::default() };
    for entry in server.store.range(request).await?.entries {
        let slice: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
        let name = metadata::text(&slice, "name");
        let ours = slice["metadata"]["labels"][SERVICE_LABEL] == SERVICE;
        if ours && !kept.iter().any(|kept| kept == name) {
            let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
            let place = Place { namespace: "default", name };
            match delete_object(&writer, place, &DeleteOptions::default()).await {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
    }
    Ok(())
}

fn ports(port: u16) -> Value {
    json!([{"name": "https", "port": port, "protocol": "TCP"}])
}
