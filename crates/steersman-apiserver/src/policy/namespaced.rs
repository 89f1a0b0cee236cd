//! What is permitted only within the namespaces of the system.

use super::rules::{Binding, COORDINATION, EVENTS, READ, Role, Rule, Subject, binding, role, rule};

const SYSTEM: &str = "kube-system";
const PUBLIC: &str = "kube-public";

const LEADERS: &[Rule] = &[
    rule("create get list update watch", COORDINATION, "leases"),
    rule("create get list update watch", COORDINATION, "leasecandidates"),
];

pub(super) const ROLES: &[Role] = &[
    role(
        "extension-apiserver-authentication-reader",
        &[rule(READ, "", "configmaps").named("extension-apiserver-authentication")],
    )
    .within(SYSTEM),
    role("system:controller:bootstrap-signer", &[rule(READ, "", "secrets")]).within(SYSTEM),
    role("system:controller:cloud-provider", &[rule("create get list watch", "", "configmaps")])
        .within(SYSTEM),
    role(
        "system:controller:token-cleaner",
        &[rule("delete get list watch", "", "secrets"), EVENTS],
    )
    .within(SYSTEM),
    role("system::leader-locking-kube-controller-manager", LEADERS).within(SYSTEM),
    role("system::leader-locking-kube-scheduler", LEADERS).within(SYSTEM),
    role(
        "system:controller:bootstrap-signer",
        &[
            rule(READ, "", "configmaps"),
            rule("update", "", "configmaps").named("cluster-info"),
            EVENTS,
        ],
    )
    .within(PUBLIC),
];

pub(super) const BINDINGS: &[Binding] = &[
    binding("extension-apiserver-authentication-reader", &[MANAGER, SCHEDULER])
        .within(SYSTEM)
        .named("system::extension-apiserver-authentication-reader"),
    binding(
        "system::leader-locking-kube-controller-manager",
        &[
            MANAGER,
            Subject::ServiceAccount("kube-controller-manager"),
            Subject::ServiceAccount("leader-election-controller"),
        ],
    )
    .within(SYSTEM),
    binding(
        "system::leader-locking-kube-scheduler",
        &[SCHEDULER, Subject::ServiceAccount("kube-scheduler")],
    )
    .within(SYSTEM),
    binding("system:controller:bootstrap-signer", BOOTSTRAP_SIGNER).within(SYSTEM),
    binding("system:controller:cloud-provider", &[Subject::ServiceAccount("cloud-provider")])
        .within(SYSTEM),
    binding("system:controller:token-cleaner", &[Subject::ServiceAccount("token-cleaner")])
        .within(SYSTEM),
    binding("system:controller:bootstrap-signer", BOOTSTRAP_SIGNER).within(PUBLIC),
];

const MANAGER: Subject = Subject::User("system:kube-controller-manager");
const SCHEDULER: Subject = Subject::User("system:kube-scheduler");
const BOOTSTRAP_SIGNER: &[Subject] = &[Subject::ServiceAccount("bootstrap-signer")];
