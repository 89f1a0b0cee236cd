//! What every cluster has: the system's namespaces, the service `kubernetes` with its address
//! and endpoints, and the priority classes of the system.
//!
//! [`run`] makes what is not there; it runs at start and, beside [`crate::retention`], again and
//! again. In the steady state it reads a dozen keys and writes nothing but the news, if this
//! server listens, that it lives.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::allocate;
use crate::mutate::create::create_object;
use crate::mutate::{Tracking, Writer, change};
use crate::presence;
use crate::state::Server;
use crate::status::{Result, Status};
use steersman_rules::metadata;
use steersman_rules::resource::Place;

const NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

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
        ensure(server, ["", "v1", "namespaces"], "", name, || namespace(name)).await?;
    }
    for (name, value, description) in PRIORITY_CLASSES {
        let class = || {
            json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": value, "globalDefault": false,
                "description": description, "preemptionPolicy": "PreemptLowerPriority",
            })
        };
        ensure(server, ["scheduling.k8s.io", "v1", "priorityclasses"], "", name, class).await?;
    }
    let cidrs = ["networking.k8s.io", "v1", "servicecidrs"];
    keep(server, cidrs, service_cidr(&server.now()), |cidr, wanted| {
        if cidr["status"]["conditions"].is_null() {
            cidr["status"] = wanted["status"].clone();
        }
    })
    .await?;
    ensure(server, ["", "v1", "services"], "default", "kubernetes", service).await?;
    presence::run(server).await
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    })
}

fn service_cidr(now: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [allocate::CIDR]},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "", "lastTransitionTime": now,
            "message": "Kubernetes Service CIDR is ready",
        }]},
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": allocate::FIRST, "clusterIPs": [allocate::FIRST],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    })
}

/// Creates an object that is not there.
async fn ensure(
    server: &Arc<Server>,
    path: [&str; 3],
    namespace: &str,
    name: &str,
    object: impl FnOnce() -> Value,
) -> Result<()> {
    let table = server.registry.table();
    let [group, version, plural] = path;
    let resource = table.get(group, version, plural).ok_or_else(Status::no_such_resource)?;
    if server.known(&resource.key(Place { namespace, name })).await?.is_some() {
        return Ok(());
    }
    let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
    match create_object(&writer, namespace, object(), Tracking::Record).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}

/// Creates an object, in the namespace `default` if its kind lives in one, and puts it right.
pub(crate) async fn keep(
    server: &Arc<Server>,
    path: [&str; 3],
    wanted: Value,
    put_right: impl Fn(&mut Value, &Value) + Send + Sync,
) -> Result<()> {
    let table = server.registry.table();
    let [group, version, plural] = path;
    let resource = table.get(group, version, plural).ok_or_else(Status::no_such_resource)?;
    let namespace = if resource.namespaced { "default" } else { "" };
    let name = metadata::text(&wanted, "name");
    ensure(server, path, namespace, name, || wanted.clone()).await?;
    let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
    let kept = change::change(&writer, Place { namespace, name }, |old| {
        let mut new = old.clone();
        put_right(&mut new, &wanted);
        if new != *old {
            writer.track(Some(old), &mut new);
        }
        Ok(new)
    });
    match kept.await {
        // Deleted this very moment: next time it is made anew.
        Err(status) if status.code == 404 => Ok(()),
        kept => kept.map(drop),
    }
}
