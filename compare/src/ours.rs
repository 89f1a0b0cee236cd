//! Our server, started for the comparison: the whole program in this process, over HTTPS, with
//! nothing that moves.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use steersman_apiserver::user::User;
use steersman_cluster::{Cluster, PluginSelection};

use crate::side::Side;

/// What stands for the user here.
const TOKEN: &str = "compare";

/// What the other server has on by default, and ours only where the controllers run that belong to
/// it. They run on neither side.
const AS_THERE: [&str; 3] =
    ["ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition"];

/// A running server; it stops when dropped.
pub(crate) struct Ours {
    pub(crate) side: Side,
    _cluster: Cluster,
}

impl Ours {
    /// Starts a server that takes us for the same user as the other one does, as its
    /// `status.userInfo` of a SelfSubjectReview tells.
    pub(crate) async fn start(user: &Value) -> Result<Self, String> {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let builder = Cluster::builder().nodes(0).controllers(false).listen(any_port);
        let plugins = PluginSelection::new(AS_THERE, []).map_err(|error| error.to_string())?;
        let builder = builder.admission(plugins);
        let cluster = builder.start().await.map_err(|error| error.to_string())?;
        cluster.api().tokens().insert(TOKEN, known(user));
        let endpoint = cluster.endpoint().ok_or("the cluster does not listen")?;
        let side = Side::new(&endpoint.url, TOKEN)?;
        Ok(Self { side, _cluster: cluster })
    }
}

fn known(user: &Value) -> User {
    let text = |name: &str| user[name].as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> {
        let values = value.as_array().into_iter().flatten();
        values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    // The credential's own id is of the other server.
    User {
        name: text("username"),
        groups: texts(&user["groups"]),
        uid: text("uid"),
        ..User::default()
    }
}
