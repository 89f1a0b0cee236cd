//! What happened to an object, and which parts of it changed.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectChange {
    /// It was there when the controller started.
    Listed,
    /// It was created.
    Created,
    /// It changed, in these parts.
    Updated(Parts),
    /// Its deletion began.
    Deleting,
    /// It is gone.
    Deleted,
    /// Nothing happened to it; it was time to look at everything again.
    Resynced,
    /// Nothing is known to have happened to it; somebody outside of the cluster pointed at it.
    Generic,
}

/// Parts of an object that an update changed. Where the object has a generation, that goes up with
/// the spec, and what nothing else explains is the status; where it has none, the fields beside the
/// metadata are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u32);

impl Parts {
    /// The desired state.
    pub const SPEC: Self = Self(1);
    /// The labels.
    pub const LABELS: Self = Self(1 << 1);
    /// The annotations.
    pub const ANNOTATIONS: Self = Self(1 << 2);
    /// The finalizers.
    pub const FINALIZERS: Self = Self(1 << 3);
    /// The owner references.
    pub const OWNERS: Self = Self(1 << 4);
    /// The status.
    pub const STATUS: Self = Self(1 << 5);
    /// Something that has no name here.
    pub const CONTENT: Self = Self(1 << 6);

    /// What the bits stand for, from the lowest on. Those after the first seven are the fields of
    /// built-in kinds that have neither spec nor status.
    const NAMES: [&str; 30] = [
        "spec",
        "labels",
        "annotations",
        "finalizers",
        "owners",
        "status",
        "content",
        "data",
        "binaryData",
        "immutable",
        "type",
        "revision",
        "rules",
        "aggregationRule",
        "subjects",
        "roleRef",
        "secrets",
        "imagePullSecrets",
        "automountServiceAccountToken",
        "endpoints",
        "ports",
        "subsets",
        "webhooks",
        "template",
        "description",
        "capacity",
        "parameters",
        "mountOptions",
        "allowVolumeExpansion",
        "allowedTopologies",
    ];

    /// The field of this name beside the metadata, such as the `data` of a Secret;
    /// [`CONTENT`](Self::CONTENT) if no built-in kind has one.
    pub fn of(field: &str) -> Self {
        match field {
            "spec" => Self::SPEC,
            "status" => Self::STATUS,
            _ => {
                let names = Self::NAMES.iter().enumerate().skip(7);
                let known = names.into_iter().find(|(_, name)| **name == field);
                known.map_or(Self::CONTENT, |(bit, _)| Self(1 << bit))
            }
        }
    }

    /// Whether all of these parts are among them.
    pub fn contains(self, parts: Self) -> bool {
        self.0 & parts.0 == parts.0
    }

    /// These and those.
    pub(super) fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether a field other than spec, status and metadata is among them.
    pub(super) fn has_content(self) -> bool {
        self.0 >= Self::CONTENT.0
    }

    fn changed(old: &ObjectMeta, new: &ObjectMeta, content: impl FnOnce() -> Self) -> Self {
        let known = [
            (old.generation != new.generation, Self::SPEC),
            (old.labels != new.labels, Self::LABELS),
            (old.annotations != new.annotations, Self::ANNOTATIONS),
            (old.finalizers != new.finalizers, Self::FINALIZERS),
            (old.owner_references != new.owner_references, Self::OWNERS),
        ];
        let parts = known.into_iter().filter(|(differs, _)| *differs);
        let parts = parts.fold(Self::default(), |all, (_, part)| all.and(part));
        match (new.generation.or(old.generation), parts) {
            (Some(_), Self(0)) => Self::STATUS,
            (Some(_), parts) => parts,
            (None, parts) => match parts.and(content()) {
                Self(0) => Self::CONTENT,
                parts => parts,
            },
        }
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        f.write_str(&names.map(|(_, name)| *name).collect::<Vec<_>>().join(", "))
    }
}

impl ObjectChange {
    /// Whether something happened to the object just now.
    pub(super) fn happened(self) -> bool {
        !matches!(self, Self::Listed | Self::Resynced | Self::Generic)
    }

    /// What an update did; `content` compares what is beside the metadata, if that must be.
    pub(super) fn between(
        old: &ObjectMeta,
        new: &ObjectMeta,
        content: impl FnOnce() -> Parts,
    ) -> Self {
        if old.deletion_timestamp.is_none() && new.deletion_timestamp.is_some() {
            Self::Deleting
        } else {
            Self::Updated(Parts::changed(old, new, content))
        }
    }
}

impl fmt::Display for ObjectChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed => f.write_str("was there at the start"),
            Self::Created => f.write_str("created"),
            Self::Updated(Parts::CONTENT) => f.write_str("updated"),
            Self::Updated(parts) => write!(f, "changed its {parts}"),
            Self::Deleting => f.write_str("is being deleted"),
            Self::Deleted => f.write_str("deleted"),
            Self::Resynced => f.write_str("resynced"),
            Self::Generic => f.write_str("was pointed at"),
        }
    }
}
