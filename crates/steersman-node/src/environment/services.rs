//! Where Services are, as variables: `WEB_SERVICE_HOST`, and what links of Docker were called.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};

use super::Environment;

/// The Service that every Pod is told of, links or not: in-cluster configuration needs it.
const MASTER: (&str, &str) = ("default", "kubernetes");

/// The variables of the Services that a Pod sees: those of its namespace, if it wants links, and the
/// API server's. Where both have the same name, its own namespace wins.
pub(super) fn variables(pod: &Pod, services: &[Arc<Service>]) -> Environment {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let named = |service: &Service, namespace: &str| {
        service.metadata.namespace.as_deref() == Some(namespace)
    };
    let is_master = |service: &Service| {
        named(service, MASTER.0) && service.metadata.name.as_deref() == Some(MASTER.1)
    };
    let seen = |service: &&Arc<Service>| is_master(service) || links && named(service, namespace);
    let mut by_name: BTreeMap<&str, &Service> = BTreeMap::new();
    for service in services.iter().filter(seen).filter(|service| address(service).is_some()) {
        let name = service.metadata.name.as_deref().unwrap_or_default();
        if !is_master(service) || !by_name.contains_key(name) {
            by_name.insert(name, service);
        }
    }
    let mut found = Environment::new();
    for service in by_name.into_values() {
        add(service, &mut found);
    }
    found
}

/// The address of a Service that has one of its own.
fn address(service: &Service) -> Option<&str> {
    let address = service.spec.as_ref()?.cluster_ip.as_deref();
    address.filter(|address| !matches!(*address, "" | "None"))
}

/// Adds the variables of a Service.
fn add(service: &Service, found: &mut Environment) {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let (Some(address), Some(first)) = (address(service), ports.first()) else { return };
    let name = variable_name(service.metadata.name.as_deref().unwrap_or_default());
    let mut set = |name: String, value: String| found.insert(name, value.into_bytes());

    set(format!("{name}_SERVICE_HOST"), address.to_owned());
    set(format!("{name}_SERVICE_PORT"), first.port.to_string());
    for port in ports {
        if let Some(called) = port.name.as_deref().filter(|called| !called.is_empty()) {
            let called = variable_name(called);
            set(format!("{name}_SERVICE_PORT_{called}"), port.port.to_string());
        }
    }
    set(format!("{name}_PORT"), url(address, first));
    for port in ports {
        let (number, protocol) = (port.port, protocol(port));
        let prefix = format!("{name}_PORT_{number}_{}", protocol.to_uppercase());
        set(format!("{prefix}_PROTO"), protocol);
        set(format!("{prefix}_PORT"), number.to_string());
        set(format!("{prefix}_ADDR"), address.to_owned());
        set(prefix, url(address, port));
    }
}

fn variable_name(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

fn protocol(port: &ServicePort) -> String {
    port.protocol.as_deref().unwrap_or("TCP").to_lowercase()
}

fn url(address: &str, port: &ServicePort) -> String {
    let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    format!("{}://{host}:{}", protocol(port), port.port)
}
