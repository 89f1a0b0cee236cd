//! The real node beside the cluster of `steersman up`.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use steersman::Manager;
use steersman::manager::Running;
use steersman_cluster::{Cluster, ConnectedNode, User};
use tokio::time::{sleep, timeout};

/// How long Pods may take to go that are nobody's any more, and how often it is looked.
const CLEAR_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// This machine as a node of a cluster in this process.
pub(crate) struct Beside {
    pub(crate) name: String,
    pub(crate) running: Running,
    /// Where it keeps what belongs to Pods.
    directory: PathBuf,
}

impl Beside {
    pub(crate) fn join(cluster: &Cluster, node: ConnectedNode, directory: PathBuf) -> Self {
        let name = node.name().to_owned();
        let user = User::known(&format!("system:node:{name}"), &["system:nodes"]);
        let running = node.install(Manager::new(cluster.client_as(user))).start();
        Self { name, running, directory }
    }

    /// Takes away its Pods, for they would be nobody's without their cluster.
    pub(crate) async fn clear(&self, cluster: &Cluster) {
        let client = cluster.client();
        let bound = ListParams::default().fields(&format!("spec.nodeName={}", self.name));
        let pods = Api::<Pod>::all(client.clone()).list(&bound).await;
        let pods = pods.map(|list| list.items).unwrap_or_default();
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        for pod in &pods {
            let namespace = pod.namespace().unwrap_or_default();
            let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
            let _ = pods.delete(&pod.name_any(), &at_once).await; // somebody may have been faster
        }
        let places = pods.iter().filter_map(ResourceExt::uid);
        let places: Vec<PathBuf> =
            places.map(|uid| self.directory.join("pods").join(uid)).collect();
        let gone = async {
            while places.iter().any(|place| place.exists()) {
                sleep(LOOK).await;
            }
        };
        if timeout(CLEAR_MAX, gone).await.is_err() {
            eprintln!("warning: something is left of Pods of the node {}", self.name);
        }
    }
}
