//! Clients of somebody else than the administrator, in process.

use steersman_apiserver::user::User;

use crate::cluster::Cluster;

/// What the names of service accounts begin with.
const ACCOUNTS: &str = "system:serviceaccount:";

impl Cluster {
    /// A client of a user, in process: it may do what roles allow that user, and nothing else.
    /// Objects that name no namespace are in `default`, or in the namespace of a
    /// [service account](User::service_account), as for a program that runs as one.
    pub fn client_as(&self, user: User) -> kube::Client {
        let account = user.name.strip_prefix(ACCOUNTS).and_then(|account| account.split_once(':'));
        let namespace = account.map_or("default", |(namespace, _)| namespace).to_owned();
        kube::Client::new(self.api.direct().acting_as(user), namespace)
    }
}
