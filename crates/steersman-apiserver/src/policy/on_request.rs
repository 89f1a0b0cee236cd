//! What parts of a cluster need where something is served that Kubernetes serves on request only.

use super::rules::{COORDINATION, READ, RESOURCE, Role, Rule, role, rule};

const MIGRATION: &str = "storagemigration.k8s.io";
const DEFINITIONS: &str = "apiextensions.k8s.io";
const INTERNAL: &str = "internal.apiserver.k8s.io";

/// Whether a version of a group is served.
pub(super) type Serves<'a> = &'a dyn Fn(&str, &str) -> bool;

/// What a role has besides.
struct Added {
    group: &'static str,
    version: &'static str,
    role: &'static str,
    rules: &'static [Rule],
}

static ADDED: [Added; 2] = [
    Added {
        group: RESOURCE,
        version: "v1beta2",
        role: "system:controller:device-taint-eviction-controller",
        rules: &[
            rule("patch update", RESOURCE, "devicetaintrules/status"),
            rule(READ, RESOURCE, "devicetaintrules"),
        ],
    },
    Added {
        group: RESOURCE,
        version: "v1beta2",
        role: "system:kube-scheduler",
        rules: &[rule(READ, RESOURCE, "devicetaintrules")],
    },
];

/// Roles of controllers that nobody else needs, with the group and version that they are for. A patch
/// of what is gone by then is a create, which is refused because of its uid.
const ROLES: [(&str, &str, Role); 2] = [
    (
        MIGRATION,
        "v1beta1",
        role(
            "system:controller:storage-version-migrator-controller",
            &[
                rule("create list patch", "*", "*"),
                rule("get", DEFINITIONS, "customresourcedefinitions"),
                rule("patch", DEFINITIONS, "customresourcedefinitions/status"),
                rule("update", MIGRATION, "storageversionmigrations/status"),
            ],
        ),
    ),
    (
        INTERNAL,
        "v1alpha1",
        role(
            "system:controller:storage-version-garbage-collector",
            &[
                rule(READ, COORDINATION, "leases"),
                rule("delete get list patch update watch", INTERNAL, "storageversions"),
                rule("get patch update", INTERNAL, "storageversions/status"),
            ],
        ),
    ),
];

/// What a role has besides where these are served.
pub(super) fn added(role: &str, serves: Serves<'_>) -> &'static [Rule] {
    let mut found = ADDED.iter().filter(|added| added.role == role);
    found.find(|added| serves(added.group, added.version)).map_or(&[], |added| added.rules)
}

/// The roles that there are besides where these are served.
pub(super) fn roles(serves: Serves<'_>) -> impl Iterator<Item = Role> + Clone {
    ROLES.into_iter().filter(|(group, version, _)| serves(group, version)).map(|(.., role)| role)
}
