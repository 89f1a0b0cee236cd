//! Where a service is: its ready endpoints, for nothing here forwards what is sent to a cluster
//! address; without any, that address.

use std::net::IpAddr;

use serde_json::Value;
use steersman_store::{RangeRequest, Store, StoreError};

use crate::lookup;

/// A service that a `clientConfig` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// Why there is no address of a service to try, in the words of Kubernetes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackendError {
    #[error("service {0:?} not found")]
    NoService(String),
    #[error("no service port {port} found for service {service:?}")]
    NoPort { service: String, port: u16 },
    #[error("no endpoints available for service {0:?}")]
    NoEndpoints(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The addresses to try, in order, at least one; says why there are none.
pub(super) async fn addresses(
    store: &dyn Store,
    service: &Service,
) -> Result<Vec<(String, u16)>, BackendError> {
    let Service { namespace, name, port } = service;
    let key = format!("/registry/services/specs/{namespace}/{name}");
    let entry = lookup::known(store, &key).await?;
    let Some(entry) = entry else { return Err(BackendError::NoService(name.clone())) };
    let object: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    let spec = &object["spec"];
    if spec["type"] == "ExternalName" {
        return Ok(vec![(text(&spec["externalName"]).to_owned(), *port)]);
    }
    let ports = spec["ports"].as_array().into_iter().flatten();
    let Some(wanted) = ports.clone().find(|candidate| candidate["port"] == *port) else {
        return Err(BackendError::NoPort { service: name.clone(), port: *port });
    };
    let mut found = in_slices(store, service, text(&wanted["name"])).await?;
    if found.is_empty() {
        found = in_endpoints(store, service, text(&wanted["name"])).await?;
    }
    let cluster_ip = text(&spec["clusterIP"]);
    if found.is_empty() && cluster_ip.parse::<IpAddr>().is_ok() {
        found.push((cluster_ip.to_owned(), *port));
    }
    if found.is_empty() {
        return Err(BackendError::NoEndpoints(name.clone()));
    }
    Ok(found)
}

/// The ready endpoints of the service's slices.
async fn in_slices(
    store: &dyn Store,
    service: &Service,
    port_name: &str,
) -> Result<Vec<(String, u16)>, StoreError> {
    let prefix = format!("/registry/endpointslices/{}/", service.namespace);
    let request = RangeRequest { prefix, stale: true, ..RangeRequest::default() };
    let slices = store.range(request).await?.entries;
    let mut found = Vec::new();
    for slice in slices {
        let slice: Value = serde_json::from_slice(&slice.value).unwrap_or_default();
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] != service.name.as_str() {
            continue;
        }
        let Some(port) = port_named(&slice["ports"], port_name) else { continue };
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
        let first = ready.filter_map(|endpoint| endpoint["addresses"][0].as_str());
        found.extend(first.map(|address| (address.to_owned(), port)));
    }
    Ok(found)
}

/// The same in the old form, which some write by hand.
async fn in_endpoints(
    store: &dyn Store,
    service: &Service,
    port_name: &str,
) -> Result<Vec<(String, u16)>, StoreError> {
    let key = format!("/registry/services/endpoints/{}/{}", service.namespace, service.name);
    let Some(entry) = lookup::known(store, &key).await? else { return Ok(Vec::new()) };
    let endpoints: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    let mut found = Vec::new();
    for subset in endpoints["subsets"].as_array().into_iter().flatten() {
        let Some(port) = port_named(&subset["ports"], port_name) else { continue };
        let addresses = subset["addresses"].as_array().into_iter().flatten();
        let addresses = addresses.filter_map(|address| address["ip"].as_str());
        found.extend(addresses.map(|address| (address.to_owned(), port)));
    }
    Ok(found)
}

fn port_named(ports: &Value, name: &str) -> Option<u16> {
    let mut ports = ports.as_array()?.iter();
    let port = ports.find(|port| text(&port["name"]) == name)?;
    port["port"].as_u64().and_then(|port| u16::try_from(port).ok())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
