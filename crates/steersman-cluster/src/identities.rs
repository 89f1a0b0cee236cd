//! Who the parts of the cluster are to its API server.
//!
//! They act as Kubernetes' own do: each controller as a service account of `kube-system` with the
//! role that Kubernetes gives it, the scheduler as `system:kube-scheduler`. What they read comes
//! through shared caches, which are filled as `system:kube-controller-manager`, and that also writes
//! their Events and the tokens of service accounts. Simulated nodes are as many kubelets as there are
//! nodes behind one client, so that they act as an administrator.

use steersman_apiserver::ApiServer;
use steersman_apiserver::user::User;

/// The names of controllers whose service account has another one.
const ACCOUNTS: [(&str, &str); 4] = [
    ("certificatesigningrequest-signing-controller", "certificate-controller"),
    ("garbage-collector", "generic-garbage-collector"),
    ("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    ("serviceaccount-controller", "service-account-controller"),
];

/// Who acts as the controller manager itself: others get their tokens from it.
const TOKENS: &str = "serviceaccount-token-controller";

/// What stands for nodes.
const NODES: [&str; 2] = ["kubelet", "node-heartbeat"];

/// A client for what all parts share.
pub(crate) fn shared_client(api: &ApiServer) -> kube::Client {
    client(api, manager())
}

fn manager() -> User {
    User::known("system:kube-controller-manager", &[])
}

/// A client for the part of this name.
pub(crate) fn client_of(api: &ApiServer, part: &str) -> kube::Client {
    client(api, user(part))
}

/// A client of a user. Objects that name no namespace are in `default`, or in the namespace of a
/// service account.
pub(crate) fn client(api: &ApiServer, user: User) -> kube::Client {
    let account = user.name.strip_prefix("system:serviceaccount:");
    let namespace = account.and_then(|account| account.split_once(':'));
    let namespace = namespace.map_or("default", |(namespace, _)| namespace).to_owned();
    kube::Client::new(api.acting_as(user), namespace)
}

fn user(part: &str) -> User {
    if NODES.contains(&part) {
        return User::in_process();
    }
    match part {
        steersman_scheduler::SCHEDULER_NAME => return User::known("system:kube-scheduler", &[]),
        TOKENS => return manager(),
        _ => {}
    }
    let renamed = ACCOUNTS.iter().find(|(name, _)| *name == part);
    User::service_account("kube-system", renamed.map_or(part, |(_, account)| account))
}
