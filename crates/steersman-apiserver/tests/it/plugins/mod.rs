//! Admission plug-ins, each with what it changes and in which words it refuses.

mod classes;
mod configuration;
mod events;
mod images;
mod namespaces;
mod nodes;
mod owners;
mod placement;
mod pods;
mod priority;
mod selection;
mod service_account;
mod storage;
mod webhooks;

use serde_json::Value;
use steersman_apiserver::PluginSelection;

use crate::api::{Api, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";
const NAMESPACES: &str = "/api/v1/namespaces";

/// A server with some plug-ins more than there are by default.
async fn with(plugins: &[&str]) -> Api {
    Api::with_plugins(selection(plugins, &[])).await
}

/// A server with some plug-ins less.
async fn without(plugins: &[&str]) -> Api {
    Api::with_plugins(selection(&[], plugins)).await
}

fn selection(on: &[&str], off: &[&str]) -> PluginSelection {
    let selection = PluginSelection::new(on.iter().copied(), off.iter().copied()).unwrap();
    selection.by_default("ServiceAccount", false)
}

/// A pod with fields of its own in its spec.
fn pod_with(name: &str, spec: &Value) -> Value {
    let mut pod = pod(name);
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

/// Why a request is refused.
#[track_caller]
fn why(status: &Value) -> &str {
    status["message"].as_str().unwrap()
}
