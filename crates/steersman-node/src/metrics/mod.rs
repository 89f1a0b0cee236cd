//! What simulated Pods and nodes use, as metrics-server tells it of real ones: PodMetrics and
//! NodeMetrics of `metrics.k8s.io/v1beta1`, made when somebody asks. [`usage`] says how much it is.

mod usage;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;
use steersman::clock;

use crate::script::Scripts;
use usage::{of_node, of_pod, with_sum};

/// Tells what Pods and nodes use.
#[derive(Clone)]
pub struct ResourceMetrics {
    client: Client,
    scripts: Scripts,
}

impl std::fmt::Debug for ResourceMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceMetrics").field("scripts", &self.scripts).finish_non_exhaustive()
    }
}

impl ResourceMetrics {
    /// Of the Pods and nodes that a client sees, which do what scripts say.
    pub fn new(client: Client, scripts: Scripts) -> Self {
        Self { client, scripts }
    }

    /// PodMetrics of the Pods of a namespace, or of all if it is empty, with these labels.
    pub async fn pods(&self, namespace: &str, labels: &str) -> kube::Result<Vec<Value>> {
        let pods = self.pods_of(namespace).list(&ListParams::default().labels(labels)).await?;
        let now = clock::now_time();
        Ok(pods.iter().filter_map(|pod| of_pod(&self.scripts, pod, &now)).collect())
    }

    /// PodMetrics of a Pod; none if it does not run.
    pub async fn pod(&self, namespace: &str, name: &str) -> kube::Result<Option<Value>> {
        let pod = self.pods_of(namespace).get(name).await?;
        Ok(of_pod(&self.scripts, &pod, &clock::now_time()))
    }

    /// NodeMetrics of the nodes with these labels.
    pub async fn nodes(&self, labels: &str) -> kube::Result<Vec<Value>> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let nodes = nodes.list(&ListParams::default().labels(labels)).await?;
        let pods = self.pods_of("").list(&ListParams::default()).await?;
        let now = clock::now_time();
        let of_node = |node: &Node| of_node(&self.scripts, node, &pods.items, &now);
        Ok(nodes.iter().filter_map(of_node).collect())
    }

    /// NodeMetrics of a node; none if it is not ready.
    pub async fn node(&self, name: &str) -> kube::Result<Option<Value>> {
        let node = Api::<Node>::all(self.client.clone()).get(name).await?;
        let on_it = ListParams::default().fields(&format!("spec.nodeName={name}"));
        let pods = self.pods_of("").list(&on_it).await?;
        Ok(of_node(&self.scripts, &node, &pods.items, &clock::now_time()))
    }

    /// PodMetrics with what all containers use together in `usage`, for the columns that
    /// metrics-server has.
    pub fn in_table(metrics: Value) -> Value {
        with_sum(metrics)
    }

    fn pods_of(&self, namespace: &str) -> Api<Pod> {
        match namespace {
            "" => Api::all(self.client.clone()),
            namespace => Api::namespaced(self.client.clone(), namespace),
        }
    }
}
