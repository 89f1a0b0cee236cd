//! What is said of a kind in its file, and how that becomes a [`Resource`].

use std::sync::Arc;

use crate::resource::{Effect, Resource, ScalePaths, Subresource, Verb};
use crate::rules::Rules;
use crate::schema::{Schema, Text};
use crate::table::{Column, Description, created_at};

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
pub(super) const METADATA: &[&str] = &[
    "annotations",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "labels",
    "ownerReferences",
];
/// What the agent of a node may say of a pod: not whose it is, nor that it ends.
pub(super) const POD_METADATA: &[&str] =
    &["annotations", "deletionGracePeriodSeconds", "finalizers", "generateName", "labels"];
/// Who reports on a deployment does not label it.
pub(super) const DEPLOYMENT_METADATA: &[&str] = &[
    "annotations",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "ownerReferences",
];

/// Everything that is said of a built-in kind. What can be derived (singular, list kind, verbs,
/// subresources, storage folder) is; its fields are in the tables of [`crate::schema`] and their
/// numbers in those of [`crate::protobuf`].
pub(super) struct Kind {
    /// The API group; empty for core.
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    /// The name in paths.
    pub(super) plural: &'static str,
    /// The name in documents.
    pub(super) name: &'static str,
    pub(super) namespaced: bool,
    pub(super) short_names: &'static [&'static str],
    /// What is true of it and not of most.
    pub(super) traits: &'static [Trait],
    /// Defaults and validation.
    pub(super) rules: &'static Rules,
    /// What `kubectl get` shows between NAME and AGE.
    pub(super) columns: fn() -> Vec<Column>,
    /// What field selectors may name besides name and namespace.
    pub(super) selectable_fields: &'static [&'static str],
    /// What of metadata is written with the status.
    pub(super) status_metadata: &'static [&'static str],
    /// The folder in the store, where it is not the plural.
    pub(super) storage_prefix: Option<&'static str>,
    /// What clients are warned of, whatever they ask for.
    pub(super) deprecation: Option<&'static str>,
    /// What the server itself does when an object is written.
    pub(super) effect: Option<Effect>,
}

/// Something that is true of a resource and not of most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trait {
    /// A review: it is answered, never stored.
    CreateOnly,
    /// Only get and list.
    ReadOnly,
    /// No deletecollection.
    OneByOne,
    /// In the category `all`.
    All,
    /// In the category `api-extensions`.
    ApiExtensions,
    /// `metadata.generation` counts changes of the desired state.
    Generation,
    /// PUT creates what does not exist.
    CreateOnUpdate,
    /// PUT must carry a resourceVersion.
    VersionedUpdate,
    /// Who writes the status cannot write metadata with it.
    StatusAlone,
    /// The status has no columns although the kind has.
    NoStatusTable,
    /// Kubernetes serves it only where somebody asks for it.
    OnRequest,
    /// The rest are subresources.
    Status,
    Scale,
    Approval,
    Finalize,
    Token,
    Binding,
    EphemeralContainers,
    Eviction,
    Resize,
    Attach,
    Exec,
    Log,
    PortForward,
    Proxy,
}

impl Kind {
    /// A kind whose objects live in namespaces, of which nothing else is said.
    pub(super) const fn namespaced(group: &'static str, version: &'static str) -> Self {
        Self { namespaced: true, ..Self::of_cluster(group, version) }
    }

    /// A kind whose objects belong to the cluster, of which nothing else is said.
    pub(super) const fn of_cluster(group: &'static str, version: &'static str) -> Self {
        Self {
            group,
            version,
            plural: "",
            name: "",
            namespaced: false,
            short_names: &[],
            traits: &[],
            rules: &Rules::NONE,
            columns: || vec![created_at()],
            selectable_fields: &[],
            status_metadata: METADATA,
            storage_prefix: None,
            deprecation: None,
            effect: None,
        }
    }

    fn has(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }

    /// Whether it is served only where somebody asks for it.
    pub(super) fn is_on_request(&self) -> bool {
        self.has(Trait::OnRequest)
    }

    /// The kind as the server serves it.
    pub(super) fn resource(&self) -> Resource {
        Resource {
            group: self.group.into(),
            version: self.version.into(),
            kind: self.name.into(),
            list_kind: format!("{}List", self.name).into(),
            plural: self.plural.into(),
            singular: self.name.to_lowercase().into(),
            short_names: self.short_names.iter().map(|&name| name.into()).collect(),
            categories: self.traits.iter().filter_map(|&t| category(t)).collect(),
            namespaced: self.namespaced,
            verbs: verbs(self),
            subresources: self.traits.iter().filter_map(|&t| subresource(self, t)).collect(),
            storage_prefix: self.storage_prefix.unwrap_or(self.plural).into(),
            create_on_update: self.has(Trait::CreateOnUpdate),
            unconditional_update: !self.has(Trait::VersionedUpdate),
            has_generation: self.has(Trait::Generation),
            has_status_table: !self.has(Trait::NoStatusTable),
            schema: Schema::builtin(self.group, self.version, self.name)
                .unwrap_or_else(Schema::untyped),
            rules: self.rules,
            columns: self.columns(),
            selectable_fields: self.selectable_fields.iter().map(|&field| field.into()).collect(),
            deprecation: self.deprecation.map(Into::into),
            stored_as: None,
            converter: None,
            effect: self.effect,
        }
    }

    fn columns(&self) -> Arc<[Column]> {
        let description = Description::Documented { group: self.group, kind: self.name };
        let described = |column| Column { description: description.clone(), ..column };
        (self.columns)().into_iter().map(described).collect()
    }
}

fn verbs(kind: &Kind) -> &'static [Verb] {
    if kind.has(Trait::CreateOnly) {
        CREATE
    } else if kind.has(Trait::ReadOnly) {
        READ
    } else if kind.has(Trait::OneByOne) {
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

fn subresource(kind: &Kind, t: Trait) -> Option<Subresource> {
    let of_parent = |name, verbs| Some(sub(name, kind.name, verbs));
    match t {
        Trait::Status => Some(Subresource {
            metadata: if kind.has(Trait::StatusAlone) { &[] } else { kind.status_metadata },
            ..sub("status", kind.name, READ_WRITE)
        }),
        Trait::Approval => {
            Some(Subresource { metadata: METADATA, ..sub("approval", kind.name, READ_WRITE) })
        }
        Trait::EphemeralContainers => of_parent("ephemeralcontainers", READ_WRITE),
        Trait::Resize => of_parent("resize", READ_WRITE),
        Trait::Finalize => {
            Some(Subresource { metadata: METADATA, ..sub("finalize", kind.name, UPDATE) })
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
            kind: format!("{}ProxyOptions", kind.name).into(),
            ..sub("proxy", kind.name, ANY_METHOD)
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

fn sub(name: &'static str, kind: &'static str, verbs: &'static [Verb]) -> Subresource {
    let name = name.into();
    let kind = kind.into();
    Subresource { name, kind, group_version: None, verbs, metadata: &[], scale: None }
}

/// A subresource that speaks a kind of another group; all of those are at `v1`.
fn foreign(sub: Subresource, group: &'static str) -> Subresource {
    Subresource { group_version: Some((group.into(), "v1".into())), ..sub }
}
