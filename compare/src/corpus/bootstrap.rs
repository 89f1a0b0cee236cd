//! What a server has made by itself before anybody asks: the bootstrap policy, namespaces, the
//! levels and flows of fairness, its APIServices and the Service by which Pods reach it.

use crate::step::{Scenario, Step, Tidy};

/// Lists of what has a label that no user gives, and of what users seldom make.
const LISTS: [&str; 9] = [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=kubernetes.io/bootstrapping",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?labelSelector=kubernetes.io/bootstrapping",
    "/apis/rbac.authorization.k8s.io/v1/roles?labelSelector=kubernetes.io/bootstrapping",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings?labelSelector=kubernetes.io/bootstrapping",
    "/apis/apiregistration.k8s.io/v1/apiservices?labelSelector=kube-aggregator.kubernetes.io/automanaged%3Donstart",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
];

/// Single objects.
const OBJECTS: [&str; 10] = [
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/kube-node-lease",
    "/api/v1/namespaces/kube-public",
    "/api/v1/namespaces/kube-system",
    "/api/v1/namespaces/default/services/kubernetes",
    "/api/v1/namespaces/default/endpoints/kubernetes",
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
    "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking",
    "/api/v1/namespaces/kube-public/configmaps",
];

/// A request for each; a list has the name of its kind.
pub(super) fn scenario() -> Scenario {
    let mut scenario = Scenario::new("bootstrap", Tidy::default());
    for path in LISTS {
        let collection = path.split('?').next().unwrap_or(path);
        scenario.add(Step::get(last(collection), path));
    }
    for path in OBJECTS {
        let mut words = path.rsplit('/');
        let name = words.next().unwrap_or_default();
        let kind = words.next().unwrap_or_default();
        scenario.add(Step::get(format!("{kind}/{name}"), path));
    }
    scenario
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
