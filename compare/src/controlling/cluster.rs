//! A cluster of ours, with our scheduler and nodes, and with our controllers or none.

use std::net::{Ipv4Addr, SocketAddr};

use steersman_cluster::{Cluster, Controllers, PluginSelection};

use crate::api::Api;

/// How many nodes there are.
const NODES: usize = 4;
/// What runs beside kube-controller-manager, which is no part of it.
const WITHOUT: &str = "kube-scheduler,metrics-server";
/// All but what kube-controller-manager does not do.
const WITH: &str = "*,-local-path-provisioner,-service-lb-controller";

/// Plug-ins that would be off where no controller of ours ends what they begin.
const BEGUN: [&str; 3] =
    ["ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition"];

/// The cluster; it ends when dropped.
pub(super) struct Ours {
    pub(super) api: Api,
    pub(super) kubeconfig: String,
    _cluster: Cluster,
}

impl Ours {
    pub(super) async fn start(controlled: bool) -> Result<Self, String> {
        let controllers = if controlled { WITH } else { WITHOUT };
        let controllers = controllers.parse::<Controllers>().map_err(|error| error.to_string())?;
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let builder = Cluster::builder().nodes(NODES).controllers(controllers).listen(any_port);
        let plugins = PluginSelection::new(BEGUN, []).map_err(|error| error.to_string())?;
        let builder = builder.admission(plugins);
        let cluster = builder.start().await.map_err(|error| error.to_string())?;
        let endpoint = cluster.endpoint().ok_or("the cluster does not listen")?;
        let kubeconfig = endpoint.kubeconfig.clone();
        Ok(Self { api: Api(cluster.client()), kubeconfig, _cluster: cluster })
    }
}
