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

/// Parts of an object that an update changed. What is not in the metadata is told from it: the
/// generation goes up with the spec, and what nothing else explains is the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u8);

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
    /// Something in an object that does not tell spec from status.
    pub const CONTENT: Self = Self(1 << 6);

    const NAMES: [(Self, &str); 7] = [
        (Self::SPEC, "spec"),
        (Self::LABELS, "labels"),
        (Self::ANNOTATIONS, "annotations"),
        (Self::FINALIZERS, "finalizers"),
        (Self::OWNERS, "owners"),
        (Self::STATUS, "status"),
        (Self::CONTENT, "content"),
    ];

    /// Whether all of these parts are among them.
    pub fn contains(self, parts: Self) -> bool {
        self.0 & parts.0 == parts.0
    }

    fn changed(old: &ObjectMeta, new: &ObjectMeta) -> Self {
        let known = [
            (old.generation != new.generation, Self::SPEC),
            (old.labels != new.labels, Self::LABELS),
            (old.annotations != new.annotations, Self::ANNOTATIONS),
            (old.finalizers != new.finalizers, Self::FINALIZERS),
            (old.owner_references != new.owner_references, Self::OWNERS),
        ];
        let parts = known.into_iter().filter(|(differs, _)| *differs);
        match parts.fold(0, |all, (_, part)| all | part.0) {
            0 if new.generation.is_some() => Self::STATUS,
            0 => Self::CONTENT,
            parts => Self(parts),
        }
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.iter().filter(|(part, _)| self.contains(*part));
        f.write_str(&names.map(|(_, name)| *name).collect::<Vec<_>>().join(", "))
    }
}

impl ObjectChange {
    /// Whether something happened to the object just now.
    pub(super) fn happened(self) -> bool {
        !matches!(self, Self::Listed | Self::Resynced | Self::Generic)
    }

    /// What an update did.
    pub(super) fn between(old: &ObjectMeta, new: &ObjectMeta) -> Self {
        if old.deletion_timestamp.is_none() && new.deletion_timestamp.is_some() {
            Self::Deleting
        } else {
            Self::Updated(Parts::changed(old, new))
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
