//! What the parts of a cluster need that are no controllers: nodes, the scheduler, proxies, the
//! controller manager itself, and what is often installed beside them.

use super::rules::{
    AUTHENTICATION, AUTHORIZATION, Binding, CERTIFICATES, COORDINATION, CORE_AND_EVENTS, DISCOVERY,
    EVENTS, NETWORKING, READ, READ_UPDATE, READ_WRITE, RESOURCE, Role, Rule, STORAGE, Subject,
    binding, role, rule,
};

const SCHEDULER: Subject = Subject::User("system:kube-scheduler");

const TOKEN_REVIEWS: Rule = rule("create", AUTHENTICATION, "tokenreviews");
const ACCESS_REVIEWS: Rule = rule("create", AUTHORIZATION, "subjectaccessreviews");

pub(super) const ROLES: &[Role] = &[
    role(
        "system:heapster",
        &[rule(READ, "", "events namespaces nodes pods"), rule(READ, "extensions", "deployments")],
    ),
    role("system:node", NODE),
    role(
        "system:node-problem-detector",
        &[rule("get", "", "nodes"), rule("patch", "", "nodes/status"), EVENTS],
    ),
    role(
        "system:node-bootstrapper",
        &[rule("create get list watch", CERTIFICATES, "certificatesigningrequests")],
    ),
    role("system:auth-delegator", &[TOKEN_REVIEWS, ACCESS_REVIEWS]),
    role("system:kube-aggregator", &[rule(READ, "", "endpoints services")]),
    role("system:kube-controller-manager", CONTROLLER_MANAGER),
    role("system:kube-dns", &[rule("list watch", "", "endpoints services")]),
    role(
        "system:persistent-volume-provisioner",
        &[
            rule("create delete get list watch", "", "persistentvolumes"),
            rule("get list update watch", "", "persistentvolumeclaims"),
            rule(READ, STORAGE, "storageclasses"),
            rule("watch", "", "events"),
            EVENTS,
        ],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        &[rule("create", CERTIFICATES, "certificatesigningrequests/nodeclient")],
    ),
    role(
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        &[rule("create", CERTIFICATES, "certificatesigningrequests/selfnodeclient")],
    ),
    role(
        "system:volume-scheduler",
        &[
            rule(READ_UPDATE, "", "persistentvolumes"),
            rule(READ, STORAGE, "storageclasses"),
            rule(READ_UPDATE, "", "persistentvolumeclaims"),
        ],
    ),
    role(
        "system:certificates.k8s.io:legacy-unknown-approver",
        &[approves("kubernetes.io/legacy-unknown")],
    ),
    role(
        "system:certificates.k8s.io:kubelet-serving-approver",
        &[approves("kubernetes.io/kubelet-serving")],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        &[approves("kubernetes.io/kube-apiserver-client")],
    ),
    role(
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        &[approves("kubernetes.io/kube-apiserver-client-kubelet")],
    ),
    role(
        "system:kubelet-api-admin",
        &[
            rule(READ, "", "nodes"),
            rule("proxy", "", "nodes"),
            rule("*", "", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
            rule("*", "", "nodes/configz nodes/healthz nodes/pods"),
        ],
    ),
    role(
        "system:node-proxier",
        &[
            rule("list watch", "", "endpoints services"),
            rule(READ, "", "nodes"),
            EVENTS,
            rule("list watch", NETWORKING, "servicecidrs"),
            rule("list watch", DISCOVERY, "endpointslices"),
        ],
    ),
    role("system:kube-scheduler", KUBE_SCHEDULER),
];

pub(super) const BINDINGS: &[Binding] = &[
    binding("system:node-proxier", &[Subject::User("system:kube-proxy")]),
    binding("system:kube-controller-manager", &[Subject::User("system:kube-controller-manager")]),
    binding("system:kube-dns", &[Subject::ServiceAccount("kube-dns")]),
    binding("system:kube-scheduler", &[SCHEDULER]),
    binding("system:volume-scheduler", &[SCHEDULER]),
    // Nodes had this role by their group once; now the node authorizer gives each what is its own.
    binding("system:node", &[]),
];

/// Whoever may say that certificates of a signer are to be signed.
const fn approves(signer: &'static str) -> Rule {
    rule("approve", CERTIFICATES, "signers").named(signer)
}

/// What a node may do at most; the node authorizer and the plug-in NodeRestriction keep it to what
/// concerns itself.
const NODE: &[Rule] = &[
    TOKEN_REVIEWS,
    rule("create", AUTHORIZATION, "localsubjectaccessreviews subjectaccessreviews"),
    rule(READ, "", "services"),
    rule("create get list watch", "", "nodes"),
    rule("patch update", "", "nodes/status"),
    rule("patch update", "", "nodes"),
    rule("create patch update", CORE_AND_EVENTS, "events"),
    rule(READ, "", "pods"),
    rule("create delete", "", "pods"),
    rule("patch update", "", "pods/status"),
    rule("create", "", "pods/eviction"),
    rule(READ, "", "configmaps secrets"),
    rule("get", "", "persistentvolumeclaims persistentvolumes"),
    rule("get", "", "endpoints"),
    rule("create get list watch", CERTIFICATES, "certificatesigningrequests"),
    rule("create delete get patch update", COORDINATION, "leases"),
    rule("get", STORAGE, "volumeattachments"),
    rule("create", "", "serviceaccounts/token"),
    rule("get patch update", "", "persistentvolumeclaims/status"),
    rule(READ, STORAGE, "csidrivers"),
    rule("create delete get patch update", STORAGE, "csinodes"),
    rule(READ, "node.k8s.io", "runtimeclasses"),
    rule("get", RESOURCE, "resourceclaims"),
    rule("deletecollection", RESOURCE, "resourceslices"),
    rule("get", "", "serviceaccounts"),
];

const CONTROLLER_MANAGER: &[Rule] = &[
    EVENTS,
    rule("create", COORDINATION, "leases"),
    rule("get update", COORDINATION, "leases").named("kube-controller-manager"),
    rule("create", "", "secrets serviceaccounts"),
    rule("delete", "", "secrets"),
    rule("get", "", "configmaps namespaces secrets serviceaccounts"),
    rule("update", "", "secrets serviceaccounts"),
    TOKEN_REVIEWS,
    ACCESS_REVIEWS,
    rule("list watch", "*", "*"),
    rule("create", "", "serviceaccounts/token"),
];

const KUBE_SCHEDULER: &[Rule] = &[
    EVENTS,
    rule("create", COORDINATION, "leases"),
    rule("get list update watch", COORDINATION, "leases").named("kube-scheduler"),
    rule(READ_WRITE, COORDINATION, "leasecandidates"),
    rule(READ, "", "nodes"),
    rule("delete get list watch", "", "pods"),
    rule("create", "", "bindings pods/binding"),
    rule("patch update", "", "pods/status"),
    rule(READ, "", "replicationcontrollers services"),
    rule(READ, "apps extensions", "replicasets"),
    rule(READ, "apps", "statefulsets"),
    rule(READ, "policy", "poddisruptionbudgets"),
    rule(READ, "", "persistentvolumeclaims persistentvolumes"),
    TOKEN_REVIEWS,
    ACCESS_REVIEWS,
    rule(READ, STORAGE, "csinodes"),
    rule(READ, STORAGE, "volumeattachments"),
    rule(READ, "", "namespaces"),
    rule(READ, STORAGE, "csidrivers"),
    rule(READ, STORAGE, "csistoragecapacities"),
    rule(READ, RESOURCE, "deviceclasses"),
    rule(READ_UPDATE, RESOURCE, "resourceclaims"),
    rule(READ_UPDATE, RESOURCE, "resourceclaims/status"),
    rule("update", "", "pods/finalizers"),
    rule(READ, RESOURCE, "resourceslices"),
    rule("create delete", RESOURCE, "resourceclaims"),
    rule("patch update", RESOURCE, "resourceclaims/binding"),
];
