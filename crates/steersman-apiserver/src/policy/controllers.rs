//! What each controller of the controller manager needs. It acts as a service account of
//! `kube-system` that has its name, and each role is bound to that account.

use std::borrow::Cow;

use super::rules::{
    ADMISSION, AUTHORIZATION, Binding, CERTIFICATES, DISCOVERY, EVENTS, NETWORKING, RBAC, READ,
    RESOURCE, Role, STORAGE, Subject, role, rule,
};

/// Binds a role to its service account.
pub(super) fn binding(role: &Role) -> Binding {
    let account = role.name.trim_start_matches(PREFIX);
    let subjects = Cow::Owned(vec![Subject::ServiceAccount(account)]);
    Binding { namespace: "", name: role.name, role: role.name, subjects }
}

/// What the names of these roles begin with; the rest is the service account.
const PREFIX: &str = "system:controller:";

/// Where workloads are, and where they were.
const EITHER: &str = "apps extensions";

pub(super) const ROLES: &[Role] = &[
    role(
        "system:controller:attachdetach-controller",
        &[
            rule("list watch", "", "persistentvolumeclaims persistentvolumes"),
            rule(READ, "", "nodes"),
            rule("patch update", "", "nodes/status"),
            rule("list watch", "", "pods"),
            EVENTS,
            rule("create delete get list watch", STORAGE, "volumeattachments"),
            rule(READ, STORAGE, "csidrivers"),
            rule(READ, STORAGE, "csinodes"),
        ],
    ),
    role(
        "system:controller:clusterrole-aggregation-controller",
        &[rule("escalate get list patch update watch", RBAC, "clusterroles")],
    ),
    role(
        "system:controller:cronjob-controller",
        &[
            rule("get list update watch", "batch", "cronjobs"),
            rule("create delete get list patch update watch", "batch", "jobs"),
            rule("update", "batch", "cronjobs/status"),
            rule("update", "batch", "cronjobs/finalizers"),
            rule("delete list watch", "", "pods"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:daemon-set-controller",
        &[
            rule(READ, EITHER, "daemonsets"),
            rule("update", EITHER, "daemonsets/status"),
            rule("update", EITHER, "daemonsets/finalizers"),
            rule("list watch", "", "nodes"),
            rule("create delete list patch watch", "", "pods"),
            rule("create", "", "pods/binding"),
            rule("create delete get list patch update watch", "apps", "controllerrevisions"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:deployment-controller",
        &[
            rule("get list update watch", EITHER, "deployments"),
            rule("update", EITHER, "deployments/status"),
            rule("update", EITHER, "deployments/finalizers"),
            rule("create delete get list patch update watch", EITHER, "replicasets"),
            rule("get list update watch", "", "pods"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:disruption-controller",
        &[
            rule(READ, EITHER, "deployments"),
            rule(READ, EITHER, "replicasets"),
            rule(READ, "", "replicationcontrollers"),
            rule(READ, "policy", "poddisruptionbudgets"),
            rule(READ, "apps", "statefulsets"),
            rule("update", "policy", "poddisruptionbudgets/status"),
            rule("patch update", "", "pods/status"),
            rule("get", "*", "*/scale"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:endpoint-controller",
        &[
            rule(READ, "", "pods services"),
            rule("create delete get list update watch", "", "endpoints"),
            rule("create", "", "endpoints/restricted"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:endpointslice-controller",
        &[
            rule(READ, "", "nodes pods services"),
            rule("update", "", "services/finalizers"),
            rule("create delete get list update watch", DISCOVERY, "endpointslices"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:endpointslicemirroring-controller",
        &[
            rule(READ, "", "endpoints services"),
            rule("update", "", "services/finalizers"),
            rule("update", "", "endpoints/finalizers"),
            rule("create delete get list update watch", DISCOVERY, "endpointslices"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:expand-controller",
        &[
            rule("get list patch update watch", "", "persistentvolumes"),
            rule("patch update", "", "persistentvolumeclaims/status"),
            rule(READ, "", "persistentvolumeclaims"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:ephemeral-volume-controller",
        &[
            rule(READ, "", "pods"),
            rule("update", "", "pods/finalizers"),
            rule("create get list watch", "", "persistentvolumeclaims"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:resource-claim-controller",
        &[
            rule(READ, "", "pods"),
            rule("update", "", "pods/finalizers"),
            rule("create delete get list watch", RESOURCE, "resourceclaims"),
            rule("patch update", RESOURCE, "resourceclaims resourceclaims/status"),
            rule("patch update", "", "pods/status"),
            EVENTS,
            rule("patch update", RESOURCE, "resourceclaims/binding"),
        ],
    ),
    role(
        "system:controller:device-taint-eviction-controller",
        &[
            rule("delete get list watch", "", "pods"),
            rule("patch update", "", "pods/status"),
            rule(READ, RESOURCE, "resourceclaims"),
            rule(READ, RESOURCE, "resourceslices"),
            rule(READ, RESOURCE, "deviceclasses"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:generic-garbage-collector",
        &[rule("delete get list patch update watch", "*", "*"), EVENTS],
    ),
    role(
        "system:controller:horizontal-pod-autoscaler",
        &[
            rule(READ, "autoscaling", "horizontalpodautoscalers"),
            rule("update", "autoscaling", "horizontalpodautoscalers/status"),
            rule("get update", "*", "*/scale"),
            rule("list watch", "", "pods"),
            rule("list watch", "metrics.k8s.io", "pods"),
            rule(READ, "custom.metrics.k8s.io", "*"),
            rule(READ, "external.metrics.k8s.io", "*"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:job-controller",
        &[
            rule("get list patch update watch", "batch", "jobs"),
            rule("update", "batch", "jobs/status"),
            rule("update", "batch", "jobs/finalizers"),
            rule("create delete list patch watch", "", "pods"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:namespace-controller",
        &[
            rule("delete get list watch", "", "namespaces"),
            rule("update", "", "namespaces/finalize namespaces/status"),
            rule("delete deletecollection get list watch", "*", "*"),
        ],
    ),
    role(
        "system:controller:node-controller",
        &[
            rule("delete get list patch update watch", "", "nodes"),
            rule("patch update", "", "nodes/status"),
            rule("patch update", "", "pods/status"),
            rule("delete get list watch", "", "pods"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:persistent-volume-binder",
        &[
            rule("create delete get list update watch", "", "persistentvolumes"),
            rule("update", "", "persistentvolumes/status"),
            rule("get list update watch", "", "persistentvolumeclaims"),
            rule("update", "", "persistentvolumeclaims/status"),
            rule("create delete get list watch", "", "pods"),
            rule(READ, STORAGE, "storageclasses"),
            rule("list watch", "", "nodes"),
            EVENTS,
            rule("watch", "", "events"),
        ],
    ),
    role(
        "system:controller:pod-garbage-collector",
        &[
            rule("delete list watch", "", "pods"),
            rule(READ, "", "nodes"),
            rule("patch", "", "pods/status"),
        ],
    ),
    role(
        "system:controller:replicaset-controller",
        &[
            rule("get list update watch", EITHER, "replicasets"),
            rule("update", EITHER, "replicasets/status"),
            rule("update", EITHER, "replicasets/finalizers"),
            rule("create delete list patch watch", "", "pods"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:replication-controller",
        &[
            rule("get list update watch", "", "replicationcontrollers"),
            rule("update", "", "replicationcontrollers/status"),
            rule("update", "", "replicationcontrollers/finalizers"),
            rule("create delete list patch watch", "", "pods"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:resourcequota-controller",
        &[rule("list watch", "*", "*"), rule("update", "", "resourcequotas/status"), EVENTS],
    ),
    role(
        "system:controller:route-controller",
        &[rule("list watch", "", "nodes"), rule("patch", "", "nodes/status"), EVENTS],
    ),
    role(
        "system:controller:service-account-controller",
        &[rule("create", "", "serviceaccounts"), EVENTS],
    ),
    role(
        "system:controller:service-controller",
        &[
            rule(READ, "", "services"),
            rule("patch update", "", "services/status"),
            rule("list watch", "", "nodes"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:service-cidrs-controller",
        &[
            rule("get list patch update watch", NETWORKING, "servicecidrs"),
            rule("patch update", NETWORKING, "servicecidrs/finalizers"),
            rule("patch update", NETWORKING, "servicecidrs/status"),
            rule(READ, NETWORKING, "ipaddresses"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:statefulset-controller",
        &[
            rule("list watch", "", "pods"),
            rule(READ, "apps", "statefulsets"),
            rule("update", "apps", "statefulsets/status"),
            rule("update", "apps", "statefulsets/finalizers"),
            rule("create delete get patch update", "", "pods"),
            rule("create delete get list patch update watch", "apps", "controllerrevisions"),
            rule("create get list watch", "", "persistentvolumeclaims"),
            rule("delete update", "", "persistentvolumeclaims"),
            rule("update", "", "pods/finalizers"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:ttl-controller",
        &[rule("list patch update watch", "", "nodes"), EVENTS],
    ),
    role(
        "system:controller:certificate-controller",
        &[
            rule("delete get list watch", CERTIFICATES, "certificatesigningrequests"),
            rule(
                "update",
                CERTIFICATES,
                "certificatesigningrequests/approval certificatesigningrequests/status",
            ),
            rule("approve", CERTIFICATES, "signers")
                .named("kubernetes.io/kube-apiserver-client-kubelet"),
            rule("sign", CERTIFICATES, "signers").named(
                "kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet \
                 kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
            ),
            rule("create", AUTHORIZATION, "subjectaccessreviews"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:pvc-protection-controller",
        &[
            rule("get list update watch", "", "persistentvolumeclaims"),
            rule("update", "", "persistentvolumeclaims/status"),
            rule(READ, "", "pods"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:pv-protection-controller",
        &[rule("get list update watch", "", "persistentvolumes"), EVENTS],
    ),
    role(
        "system:controller:volumeattributesclass-protection-controller",
        &[
            rule(READ, "", "persistentvolumeclaims"),
            rule(READ, "", "persistentvolumes"),
            rule("get list update watch", STORAGE, "volumeattributesclasses"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:ttl-after-finished-controller",
        &[rule("delete get list watch", "batch", "jobs"), EVENTS],
    ),
    role(
        "system:controller:root-ca-cert-publisher",
        &[rule("create update", "", "configmaps"), EVENTS],
    ),
    role(
        "system:controller:validatingadmissionpolicy-status-controller",
        &[
            rule(READ, ADMISSION, "validatingadmissionpolicies"),
            rule("get patch update", ADMISSION, "validatingadmissionpolicies/status"),
            EVENTS,
        ],
    ),
    role(
        "system:controller:legacy-service-account-token-cleaner",
        &[
            rule("get", "", "configmaps")
                .named("kube-apiserver-legacy-service-account-token-tracking"),
            rule("delete patch", "", "secrets"),
        ],
    ),
    role(
        "system:controller:selinux-warning-controller",
        &[
            EVENTS,
            rule(READ, "", "persistentvolumes"),
            rule(READ, "", "persistentvolumeclaims"),
            rule(READ, "", "pods"),
            rule(READ, STORAGE, "csidrivers"),
        ],
    ),
];
