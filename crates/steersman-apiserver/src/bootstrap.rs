//! What every cluster has: the system's namespaces, the service `kubernetes` with its address
//! and endpoints, and the priority classes of the system.
//!
//! [`run`] makes what is not there; it runs at start and, beside [`crate::retention`], whenever such
//! objects change. In the steady state it reads a dozen keys and writes nothing but the news, if this
//! server listens, that it lives.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::aggregation::front;
use crate::document::items;
use crate::presence;
use crate::state::Server;
use crate::state::service_ranges::ServiceRanges;
use crate::status::Result;
use crate::write::own::{ensure, keep};

const NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// Of which kinds there is something that always exists.
const KINDS: [[&str; 3]; 4] = [NAMESPACE, PRIORITY_CLASS, SERVICE_CIDR, SERVICE];
const NAMESPACE: [&str; 3] = ["", "v1", "namespaces"];
const PRIORITY_CLASS: [&str; 3] = ["scheduling.k8s.io", "v1", "priorityclasses"];
const SERVICE_CIDR: [&str; 3] = ["networking.k8s.io", "v1", "servicecidrs"];
const SERVICE: [&str; 3] = ["", "v1", "services"];
const CONFIG_MAP: [&str; 3] = ["", "v1", "configmaps"];

/// The ConfigMap that tells since when it is noted which tokens in Secrets are used: who cleans up
/// those that nobody uses must know for how long nobody did.
const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// Name, value and meaning of the priority classes that always exist.
const PRIORITY_CLASSES: &[(&str, i64, &str)] = &[
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another \
         node if necessary.",
    ),
];

/// Creates what is not there.
pub(crate) async fn run(server: &Arc<Server>) -> Result<()> {
    for name in NAMESPACES {
        ensure(server, NAMESPACE, "", name, || namespace(name)).await?;
    }
    for (name, value, description) in PRIORITY_CLASSES {
        let class = || {
            json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": value, "globalDefault": false,
                "description": description, "preemptionPolicy": "PreemptLowerPriority",
            })
        };
        ensure(server, PRIORITY_CLASS, "", name, class).await?;
    }
    keep(
        server,
        SERVICE_CIDR,
        service_cidr(&server.service_ranges, &server.now()),
        |cidr, wanted| {
            if cidr["status"]["conditions"].is_null() {
                cidr["status"] = wanted["status"].clone();
            }
            // A cluster may get a second family later.
            let (has, ranges) = (items(&cidr["spec"]["cidrs"]), items(&wanted["spec"]["cidrs"]));
            if has.len() < ranges.len() && ranges.starts_with(has) {
                cidr["spec"] = wanted["spec"].clone();
            }
        },
    )
    .await?;
    ensure(server, SERVICE, "default", "kubernetes", || service(&server.service_ranges)).await?;
    // Only those who reach this server over the network are behind it.
    if server.reachable().is_some() {
        front::publish(server).await?;
        let since = || legacy_token_tracking(&server.now());
        ensure(server, CONFIG_MAP, "kube-system", TRACKING, since).await?;
    }
    presence::run(server).await
}

/// Where in the store it is that could go missing. Endpoints are not among it: only a server that
/// is reachable has any, and it looks after them all the time.
pub(crate) fn folders(server: &Server) -> Vec<String> {
    let table = server.registry.table();
    let resources =
        KINDS.iter().filter_map(|[group, version, plural]| table.get(group, version, plural));
    resources.map(|resource| resource.prefix("")).collect()
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    })
}

fn legacy_token_tracking(now: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": TRACKING, "namespace": "kube-system"},
        "data": {"since": now.get(..10)},
    })
}

fn service_cidr(ranges: &ServiceRanges, now: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": ranges.texts()},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "", "lastTransitionTime": now,
            "message": "Kubernetes Service CIDR is ready",
        }]},
    })
}

fn service(ranges: &ServiceRanges) -> Value {
    let primary = ranges.primary();
    let (address, family) = (primary.first().to_string(), primary.family().name());
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": address, "clusterIPs": [address],
            "ipFamilies": [family], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    })
}
