//! Whether the server that an APIService names can be reached: its service, the endpoints of that,
//! and an answer from it. Reasons and messages are Kubernetes'.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::Value;
use steersman_store::{RangeRequest, StoreError};

use super::conditions::{Availability, PASSED};
use super::headers::{aggregator, name_user};
use crate::state::Server;
use crate::state::remotes::Remote;
use crate::webhook_client::Service;

/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// How often a server that does not answer is asked before it counts as gone.
const ATTEMPTS: usize = 2;

/// Why a server cannot be reached.
pub(super) const FAILED_DISCOVERY_CHECK: &str = "FailedDiscoveryCheck";

/// Looks whether a server can be reached. One in this process needs no service.
pub(super) async fn check(server: &Server, remote: &Remote) -> Availability {
    if !server.origins.has_extension(&remote.target)
        && let Some(service) = &remote.target.service
        && let Some(missing) = missing(server, service).await
    {
        return missing;
    }
    let mut failed = String::new();
    for _ in 0..ATTEMPTS {
        match ask(server, remote).await {
            Ok(()) => return Availability::yes(PASSED.0, PASSED.1),
            Err(why) => failed = why,
        }
    }
    Availability::no(FAILED_DISCOVERY_CHECK, failed)
}

/// What is missing of a service, if anything.
async fn missing(server: &Server, service: &Service) -> Option<Availability> {
    let Service { namespace, name, port } = service;
    let unknown = |reason: &'static str, error: StoreError| {
        let message = format!("service/{name} in {namespace:?} cannot be checked due to: {error}");
        Some(Availability::unknown(reason, message))
    };
    let key = format!("/registry/services/specs/{namespace}/{name}");
    let found = match server.known(&key).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            let message = format!("service/{name} in {namespace:?} is not present");
            return Some(Availability::no("ServiceNotFound", message));
        }
        Err(error) => return unknown("ServiceAccessError", error),
    };
    let found: Value = serde_json::from_slice(&found.value).unwrap_or_default();
    if found["spec"]["type"] != "ClusterIP" {
        return None;
    }
    let mut ports = found["spec"]["ports"].as_array().into_iter().flatten();
    let Some(known) = ports.find(|known| known["port"] == *port) else {
        let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
        return Some(Availability::no("ServicePortError", message));
    };
    let port_name = known["name"].as_str().unwrap_or("");
    let slices = match slices(server, service).await {
        Ok(slices) => slices,
        Err(error) => return unknown("EndpointsAccessError", error),
    };
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return Some(Availability::no("EndpointsNotFound", message));
    }
    if !slices.iter().any(|slice| has_endpoint(slice, port_name)) {
        let message = format!(
            "endpointslices for service/{name} in {namespace:?} have no addresses with port name \
             {port_name:?}"
        );
        return Some(Availability::no("MissingEndpoints", message));
    }
    None
}

async fn slices(server: &Server, service: &Service) -> Result<Vec<Value>, StoreError> {
    let prefix = format!("/registry/endpointslices/{}/", service.namespace);
    let request = RangeRequest { prefix, stale: true, ..RangeRequest::default() };
    let entries = server.store.range(request).await?.entries;
    let slices = entries.iter().map(|entry| serde_json::from_slice(&entry.value));
    let slices = slices.filter_map(Result::ok).filter(|slice: &Value| {
        slice["metadata"]["labels"]["kubernetes.io/service-name"] == service.name.as_str()
    });
    Ok(slices.collect())
}

/// Whether a slice has an endpoint that is ready, and a port of that name.
fn has_endpoint(slice: &Value, port_name: &str) -> bool {
    let list = |field: &str| slice[field].as_array().into_iter().flatten();
    let is_ready = |endpoint: &Value| endpoint["conditions"]["ready"] != false;
    let is_named =
        |port: &Value| port["name"].as_str().unwrap_or("") == port_name && !port["port"].is_null();
    list("endpoints").any(is_ready) && list("ports").any(is_named)
}

/// Asks for a path that every such server must have.
async fn ask(server: &Server, remote: &Remote) -> Result<(), String> {
    let at = server.origins.location(&*server.store, &remote.target).await?;
    let url = format!("{at}{}", remote.base());
    let failed = |why: String| format!("failing or missing response from {url}: {why}");
    let path = format!("{}{}", remote.target.url, remote.base());
    let mut request =
        Request::get(path).body(Bytes::new()).map_err(|error| failed(error.to_string()))?;
    name_user(request.headers_mut(), &aggregator());
    let answer = server.origins.open(&*server.store, &remote.target, request);
    let answer = tokio::time::timeout(ANSWER_TIME, answer).await;
    match answer {
        Err(_) => Err(failed(format!(
            "Get {url:?}: context deadline exceeded (Client.Timeout exceeded while awaiting \
             headers)"
        ))),
        Ok(Err(why)) => Err(failed(format!("Get {url:?}: {why}"))),
        Ok(Ok(response)) if !response.status().is_success() => {
            Err(failed(format!("bad status from {url}: {}", response.status().as_u16())))
        }
        Ok(Ok(_)) => Ok(()),
    }
}
