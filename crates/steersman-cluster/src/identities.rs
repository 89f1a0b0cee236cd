//! Who the parts of the cluster are to its API server.
//!
//! They act as Kubernetes' own do: each controller as a service account of `kube-system` with the
//! role that Kubernetes gives it, the scheduler as `system:kube-scheduler`, also where they tell
//! Events. What they read comes through shared caches, which are filled as
//! `system:kube-controller-manager`, and that also writes the tokens of service accounts.
//!
//! Simulated nodes are as many kubelets as there are nodes behind one client. They say in each request
//! which of them it is, as one who impersonates does, and are taken at their word: [`Lent`]. That
//! costs two headers, where a client for each of 5,000 nodes would be as many tasks and buffers. A
//! request of theirs that names no node comes from nobody, who may do nothing. What they know of Pods
//! comes through the shared caches: one watch instead of one for each of them.

use std::convert::Infallible;
use std::task::{Context, Poll};

use http::{HeaderMap, Request, Response};
use kube::client::Body;
use steersman_apiserver::user::User;
use steersman_apiserver::{ApiServer, ResponseBody};
use tower::Service;

/// The names of controllers whose service account has another one.
const ACCOUNTS: [(&str, &str); 38] = [
    ("bootstrap-signer-controller", "bootstrap-signer"),
    ("certificatesigningrequest-approving-controller", "certificate-controller"),
    ("certificatesigningrequest-cleaner-controller", "certificate-controller"),
    ("certificatesigningrequest-signing-controller", "certificate-controller"),
    ("daemonset-controller", "daemon-set-controller"),
    ("device-taint-rule-status-controller", "device-taint-eviction-controller"),
    ("disruption-pod-controller", "disruption-controller"),
    ("endpoints-controller", "endpoint-controller"),
    ("endpointslice-mirroring-controller", "endpointslicemirroring-controller"),
    ("garbage-collector", "generic-garbage-collector"),
    ("horizontal-pod-autoscaler-controller", "horizontal-pod-autoscaler"),
    ("job-orphan-pod-controller", "job-controller"),
    ("legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner"),
    ("leftover-endpoints-controller", "endpoint-controller"),
    ("local-path-deleter", "persistent-volume-binder"),
    ("local-path-provisioner", "persistent-volume-binder"),
    ("local-path-resizer", "expand-controller"),
    ("migration-runner-controller", "storage-version-migrator-controller"),
    ("node-ipam-controller", "node-controller"),
    ("node-lifecycle-controller", "node-controller"),
    ("persistentvolume-attach-detach-controller", "attachdetach-controller"),
    ("persistentvolume-binder-controller", "persistent-volume-binder"),
    ("persistentvolume-expander-controller", "expand-controller"),
    ("persistentvolume-protection-controller", "pv-protection-controller"),
    ("persistentvolume-reclaim-controller", "persistent-volume-binder"),
    ("persistentvolumeclaim-protection-controller", "pvc-protection-controller"),
    ("pod-garbage-collector-controller", "pod-garbage-collector"),
    ("replicationcontroller-controller", "replication-controller"),
    ("resource-version-controller", "storage-version-migrator-controller"),
    ("resourceclaim-controller", "resource-claim-controller"),
    ("resourceclaim-release-controller", "resource-claim-controller"),
    ("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    ("service-cidr-controller", "service-cidrs-controller"),
    ("service-lb-controller", "service-controller"),
    ("serviceaccount-controller", "service-account-controller"),
    ("storageversion-garbage-collector-controller", "storage-version-garbage-collector"),
    ("taint-eviction-controller", "node-controller"),
    ("token-cleaner-controller", "token-cleaner"),
];

/// Who acts as the controller manager itself: others get their tokens from it.
const TOKENS: &str = "serviceaccount-token-controller";

/// What stands for nodes.
const NODES: [&str; 2] = ["kubelet", "node-heartbeat"];

/// How the names of kubelets begin.
const KUBELET: &str = "system:node:";
/// The group that all kubelets are in.
const KUBELETS: &str = "system:nodes";
const IMPERSONATE_USER: &str = "impersonate-user";
const IMPERSONATE_GROUP: &str = "impersonate-group";

/// A client for what all parts share, Events of nodes among it.
pub(crate) fn shared_client(api: &ApiServer) -> kube::Client {
    kube::Client::new(Lent(api.acting_as(manager())), "default")
}

fn manager() -> User {
    User::known("system:kube-controller-manager", &[])
}

/// A client for the part of this name.
pub(crate) fn client_of(api: &ApiServer, part: &str) -> kube::Client {
    if NODES.contains(&part) {
        let nobody = User::known("steersman:simulated-nodes", &[]);
        return kube::Client::new(Lent(api.acting_as(nobody)), "default");
    }
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
    match part {
        steersman_scheduler::PART => return User::known("system:kube-scheduler", &[]),
        TOKENS => return manager(),
        _ => {}
    }
    let renamed = ACCOUNTS.iter().find(|(name, _)| *name == part);
    User::service_account("kube-system", renamed.map_or(part, |(_, account)| account))
}

/// The API server, which takes callers at their word that say to be a kubelet, and nothing else.
#[derive(Clone)]
struct Lent(ApiServer);

impl Service<Request<Body>> for Lent {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = <ApiServer as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.0, context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(kubelet) = kubelet(request.headers()) {
            request.headers_mut().remove(IMPERSONATE_USER);
            request.headers_mut().remove(IMPERSONATE_GROUP);
            request.extensions_mut().insert(kubelet);
        }
        self.0.call(request)
    }
}

/// The kubelet that a request says to come from.
fn kubelet(headers: &HeaderMap) -> Option<User> {
    let name = headers.get(IMPERSONATE_USER)?.to_str().ok()?;
    let mut groups = headers.get_all(IMPERSONATE_GROUP).iter();
    let is_kubelet = name.len() > KUBELET.len()
        && name.starts_with(KUBELET)
        && groups.next().is_some_and(|group| group == KUBELETS)
        && groups.next().is_none();
    is_kubelet.then(|| User::known(name, &[KUBELETS]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kubelets_are_taken_at_their_word() {
        let user = |name: &str, groups: &[&str]| {
            let mut headers = HeaderMap::new();
            headers.append(IMPERSONATE_USER, name.parse().unwrap());
            for group in groups {
                headers.append(IMPERSONATE_GROUP, group.parse().unwrap());
            }
            kubelet(&headers).map(|user| (user.name, user.groups))
        };
        let groups = vec!["system:nodes".to_owned(), "system:authenticated".to_owned()];
        let node = ("system:node:a".to_owned(), groups);
        assert_eq!(user("system:node:a", &["system:nodes"]), Some(node));
        for (name, groups) in [
            ("system:node:", &["system:nodes"][..]),
            ("system:node:a", &[]),
            ("system:node:a", &["system:masters"]),
            ("system:node:a", &["system:nodes", "system:masters"]),
            ("admin", &["system:nodes"]),
        ] {
            assert_eq!(user(name, groups), None, "{name} {groups:?}");
        }
        assert_eq!(kubelet(&HeaderMap::new()), None);
    }
}
