//! The objects that can be related to a node: as they are asked about, and as others refer to them.

/// The kinds of objects that can be related to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    ConfigMap,
    Secret,
    ServiceAccount,
    Claim,
    ResourceClaim,
    Volume,
    Pod,
    Attachment,
    Slice,
}

impl Kind {
    /// The folder of the kinds that are followed.
    pub(super) const fn folder(self) -> &'static str {
        match self {
            Self::Pod => "/registry/pods/",
            Self::Volume => "/registry/persistentvolumes/",
            Self::Attachment => "/registry/volumeattachments/",
            Self::Slice => "/registry/resourceslices/",
            _ => "",
        }
    }
}

/// An object that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object<'a> {
    pub(super) kind: Kind,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// Something that Pods or volumes refer to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reference {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
}
