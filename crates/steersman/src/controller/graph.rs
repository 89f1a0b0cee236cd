//! What a controller said about itself, as data: which kinds it has to do with, and how. From
//! this the permissions that it needs can be inferred.

use serde::Serialize;

use crate::kind::Kind;
use crate::object::AnyObject;

/// What a kind is to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    /// Its objects are reconciled.
    Reconciled,
    /// Its objects are made by the controller, and wake their owner.
    Owned,
    /// Its objects wake others.
    Watched,
    /// Its objects are only read.
    Read,
}

/// A kind that a controller has to do with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeclaredKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The kind's name.
    pub kind: String,
    /// The name of the resource.
    pub plural: String,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// What it is to the controller.
    pub role: Role,
    /// Whether only the metadata of its objects is watched.
    pub metadata_only: bool,
}

impl DeclaredKind {
    pub(super) fn new<K: AnyObject>(kind: &Kind<K>, role: Role) -> Self {
        Self {
            group: kind.group().into_owned(),
            version: kind.version().into_owned(),
            kind: kind.name().into_owned(),
            plural: kind.plural().into_owned(),
            namespaced: kind.is_namespaced(),
            role,
            metadata_only: kind.is_metadata_only(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};

    use super::*;
    use crate::{Context, Controller, Next, ObjectKey};

    #[test]
    fn a_controller_tells_what_it_has_to_do_with() {
        let controller = Controller::of::<Deployment>()
            .owns::<ReplicaSet>()
            .owns_metadata::<Pod>()
            .watches(|_: &ConfigMap| None::<ObjectKey>)
            .reads::<Node>()
            .reconcile(async |_: Arc<Deployment>, _: Context<Deployment>| Ok(Next::Settled));
        let told: Vec<_> = controller
            .graph()
            .iter()
            .map(|kind| (kind.plural.as_str(), kind.role, kind.namespaced, kind.metadata_only))
            .collect();
        let expected = [
            ("deployments", Role::Reconciled, true, false),
            ("replicasets", Role::Owned, true, false),
            ("pods", Role::Owned, true, true),
            ("configmaps", Role::Watched, true, false),
            ("nodes", Role::Read, false, false),
        ];
        assert_eq!(told, expected);
    }
}
