//! What every cluster has from the start: the system's namespaces and the service `kubernetes`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::mutate::create::create_object;
use crate::mutate::{Tracking, Writer};
use crate::state::Server;
use crate::status::{Result, Status};

const NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates what is not there yet.
pub(crate) async fn run(server: &Arc<Server>) -> Result<()> {
    for name in NAMESPACES {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        });
        ensure(server, "namespaces", "", namespace).await?;
    }
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    });
    ensure(server, "services", "default", service).await
}

async fn ensure(server: &Arc<Server>, plural: &str, namespace: &str, object: Value) -> Result<()> {
    let table = server.registry.table();
    let resource = table.get("", "v1", plural).ok_or_else(Status::no_such_resource)?;
    let writer = Writer::internal(server, resource);
    match create_object(&writer, namespace, object, Tracking::Record).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}
