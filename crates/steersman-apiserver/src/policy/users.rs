//! What people are given: everything, or in a namespace to administer, edit or view it.
//!
//! The roles `admin`, `edit` and `view` have no rules of their own, so that whoever brings a kind
//! along can add to them: they gather those of the roles that are labelled as part of them.

use super::rules::{
    AUTHORIZATION, Binding, COORDINATION, CORE_AND_EVENTS, DISCOVERY, NETWORKING, RBAC, READ,
    READ_WRITE, RESOURCE, Role, Rule, Subject, WRITE, binding, gathering, role, rule, urls,
};

pub(super) const ROLES: &[Role] = &[
    role("cluster-admin", &[rule("*", "*", "*"), urls("*", "*")]),
    gathering("admin"),
    gathering("edit").part_of("admin"),
    gathering("view").part_of("edit"),
    role("system:aggregate-to-admin", ADMIN).part_of("admin"),
    role("system:aggregate-to-edit", EDIT).part_of("edit"),
    role("system:aggregate-to-view", VIEW).part_of("view"),
];

pub(super) const BINDINGS: &[Binding] =
    &[binding("cluster-admin", &[Subject::Group("system:masters")])];

/// What an admin may do beyond editing: grant permissions to others.
const ADMIN: &[Rule] = &[
    rule("create", AUTHORIZATION, "localsubjectaccessreviews"),
    rule(READ_WRITE, RBAC, "rolebindings roles"),
];

/// What an editor may do beyond viewing. To read a Secret, or what runs in a Pod, is to act as its
/// service account, so it is here.
const EDIT: &[Rule] = &[
    rule(READ, "", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    rule("impersonate", "", "serviceaccounts"),
    rule(WRITE, "", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    rule("create", "", "pods/eviction"),
    rule(
        WRITE,
        "",
        "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale \
         secrets serviceaccounts services services/proxy",
    ),
    rule("create", "", "serviceaccounts/token"),
    rule(WRITE, CORE_AND_EVENTS, "events"),
    rule(
        WRITE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets \
         replicasets/scale statefulsets statefulsets/scale",
    ),
    rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
    rule(WRITE, "batch", "cronjobs jobs"),
    rule(
        WRITE,
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies \
         replicasets replicasets/scale replicationcontrollers/scale",
    ),
    rule(WRITE, "policy", "poddisruptionbudgets"),
    rule(WRITE, NETWORKING, "ingresses networkpolicies"),
    rule(READ_WRITE, COORDINATION, "leases"),
    rule(WRITE, RESOURCE, "resourceclaims resourceclaimtemplates"),
];

/// What a viewer may read: all that lets nobody become somebody else.
const VIEW: &[Rule] = &[
    rule(
        READ,
        "",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods \
         replicationcontrollers replicationcontrollers/scale serviceaccounts services \
         services/status",
    ),
    rule(
        READ,
        "",
        "bindings limitranges namespaces/status pods/log pods/status \
         replicationcontrollers/status resourcequotas resourcequotas/status",
    ),
    rule(READ, "", "namespaces"),
    rule(READ, CORE_AND_EVENTS, "events"),
    rule(READ, DISCOVERY, "endpointslices"),
    rule(
        READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale \
         deployments/status replicasets replicasets/scale replicasets/status statefulsets \
         statefulsets/scale statefulsets/status",
    ),
    rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    rule(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    rule(
        READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses \
         ingresses/status networkpolicies replicasets replicasets/scale replicasets/status \
         replicationcontrollers/scale",
    ),
    rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    rule(READ, NETWORKING, "ingresses ingresses/status networkpolicies"),
    rule(READ, RESOURCE, "resourceclaims resourceclaims/status resourceclaimtemplates"),
];
