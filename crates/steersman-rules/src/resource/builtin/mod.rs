//! The resources that Kubernetes itself defines.
//!
//! [`rows`] is the table of facts, one line a resource, true to Kubernetes 1.36 at its stable
//! versions. This module expands a line into a [`Resource`]; what a field selector reads is in
//! [`selectable`], and how two versions of one stored kind translate is in [`crate::versions`].
//!
//! Discovery shows what needs a real node as well (`pods/{exec, attach, portforward, proxy, log}`,
//! `nodes/proxy`, `services/proxy`); the server answers it as far as it can.

mod rows;
pub mod selectable;
#[cfg(test)]
mod tests;

use rows::{Row, Trait};

use super::{Resource, ScalePaths, Subresource, Verb};
use crate::schema::{Schema, Text};
use crate::{kinds, table};

const STANDARD: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
const ONE_BY_ONE: &[Verb] =
    &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch];
const READ: &[Verb] = &[Verb::Get, Verb::List];
const READ_WRITE: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];
const CREATE: &[Verb] = &[Verb::Create];
const UPDATE: &[Verb] = &[Verb::Update];
const GET: &[Verb] = &[Verb::Get];
const STREAM: &[Verb] = &[Verb::Create, Verb::Get];
const ANY_METHOD: &[Verb] = &[Verb::Create, Verb::Delete, Verb::Get, Verb::Patch, Verb::Update];

/// What of metadata a client can change at all. Most kinds let it be written through every path,
/// because that is what they always did; newer ones are stricter.
const METADATA: &[&str] = &[
    "annotations",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "labels",
    "ownerReferences",
];
/// What the agent of a node may say of a pod: not whose it is, nor that it ends.
const POD_METADATA: &[&str] =
    &["annotations", "deletionGracePeriodSeconds", "finalizers", "generateName", "labels"];
/// Who reports on a deployment does not label it.
const DEPLOYMENT_METADATA: &[&str] = &[
    "annotations",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "ownerReferences",
];

/// Every built-in resource, in the order discovery shows groups and versions.
pub fn all() -> Vec<Resource> {
    rows::ROWS.iter().map(resource).collect()
}

fn resource(row: &Row) -> Resource {
    Resource {
        group: row.group.into(),
        version: row.version.into(),
        kind: row.kind.into(),
        list_kind: format!("{}List", row.kind).into(),
        plural: row.plural.into(),
        singular: row.kind.to_lowercase().into(),
        short_names: row.short_names.iter().map(|&name| name.into()).collect(),
        categories: row.traits.iter().filter_map(|&t| category(t)).collect(),
        namespaced: row.namespaced,
        verbs: verbs(row),
        subresources: row.traits.iter().filter_map(|&t| subresource(row, t)).collect(),
        storage_prefix: storage_prefix(row),
        create_on_update: row.has(Trait::CreateOnUpdate),
        unconditional_update: !row.has(Trait::VersionedUpdate),
        has_generation: row.has(Trait::Generation),
        schema: Schema::builtin(row.group, row.version, row.kind).unwrap_or_else(Schema::untyped),
        strategy: kinds::for_kind(row.group, row.kind),
        columns: table::columns_for(row.group, row.kind),
        selectable_fields: selectable::fields(row.group, row.kind)
            .iter()
            .map(|&field| field.into())
            .collect(),
        deprecation: deprecation(row).map(Into::into),
        stored_as: None,
        converted_by_webhook: false,
    }
}

/// Of what is served at a stable version, these two are deprecated as a whole.
fn deprecation(row: &Row) -> Option<&'static str> {
    match (row.group, row.kind) {
        ("", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        ("", "Endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        _ => None,
    }
}

fn verbs(row: &Row) -> &'static [Verb] {
    if row.has(Trait::CreateOnly) {
        CREATE
    } else if row.has(Trait::ReadOnly) {
        READ
    } else if row.has(Trait::OneByOne) {
        ONE_BY_ONE
    } else {
        STANDARD
    }
}

fn category(t: Trait) -> Option<Text> {
    match t {
        Trait::All => Some("all".into()),
        Trait::ApiExtensions => Some("api-extensions".into()),
        _ => None,
    }
}

fn subresource(row: &Row, t: Trait) -> Option<Subresource> {
    let of_parent = |name, verbs| Some(sub(name, row.kind, verbs));
    match t {
        Trait::Status => Some(Subresource {
            metadata: status_metadata(row),
            ..sub("status", row.kind, READ_WRITE)
        }),
        Trait::Approval => {
            Some(Subresource { metadata: METADATA, ..sub("approval", row.kind, READ_WRITE) })
        }
        Trait::EphemeralContainers => of_parent("ephemeralcontainers", READ_WRITE),
        Trait::Resize => of_parent("resize", READ_WRITE),
        Trait::Finalize => {
            Some(Subresource { metadata: METADATA, ..sub("finalize", row.kind, UPDATE) })
        }
        Trait::Binding => Some(sub("binding", "Binding", CREATE)),
        Trait::Eviction => Some(foreign(sub("eviction", "Eviction", CREATE), "policy")),
        Trait::Token => {
            Some(foreign(sub("token", "TokenRequest", CREATE), "authentication.k8s.io"))
        }
        Trait::Attach => Some(sub("attach", "PodAttachOptions", STREAM)),
        Trait::Exec => Some(sub("exec", "PodExecOptions", STREAM)),
        Trait::PortForward => Some(sub("portforward", "PodPortForwardOptions", STREAM)),
        Trait::Log => of_parent("log", GET),
        Trait::Proxy => Some(Subresource {
            kind: format!("{}ProxyOptions", row.kind).into(),
            ..sub("proxy", row.kind, ANY_METHOD)
        }),
        Trait::Scale => Some(Subresource {
            scale: Some(ScalePaths {
                spec_replicas: "spec.replicas".into(),
                status_replicas: "status.replicas".into(),
                selector: Some("spec.selector".into()),
            }),
            ..foreign(sub("scale", "Scale", READ_WRITE), "autoscaling")
        }),
        _ => None,
    }
}

fn status_metadata(row: &Row) -> &'static [&'static str] {
    match (row.group, row.kind) {
        _ if row.has(Trait::StatusAlone) => &[],
        ("", "Pod") => POD_METADATA,
        ("apps", "Deployment") => DEPLOYMENT_METADATA,
        _ => METADATA,
    }
}

fn sub(name: &'static str, kind: &'static str, verbs: &'static [Verb]) -> Subresource {
    let (name, kind) = (name.into(), kind.into());
    Subresource { name, kind, group_version: None, verbs, metadata: &[], scale: None }
}

/// A subresource that speaks a kind of another group; all of those are at `v1`.
fn foreign(sub: Subresource, group: &'static str) -> Subresource {
    Subresource { group_version: Some((group.into(), "v1".into())), ..sub }
}

/// Kubernetes names the folder after the resource, except for a few names from its early days
/// and the two groups that are servers of their own.
fn storage_prefix(row: &Row) -> Text {
    match (row.group, row.plural) {
        ("", "replicationcontrollers") => "controllers".into(),
        ("", "endpoints") => "services/endpoints".into(),
        ("", "nodes") => "minions".into(),
        ("", "services") => "services/specs".into(),
        ("networking.k8s.io", "ingresses") => "ingress".into(),
        ("apiextensions.k8s.io" | "apiregistration.k8s.io", plural) => {
            format!("{}/{plural}", row.group).into()
        }
        (_, plural) => plural.into(),
    }
}
