//! Owner references: how one object becomes the controller of another.
//!
//! An object has at most one controller, and an owner in a namespace owns only what is in that
//! namespace. Both rules are kept here, where the reference is written;
//! [`controller_of`] reads it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::kind::{ErasedKind, Kind};
use crate::object::{AsObject, Object, controller_of};

/// Makes `owner` the controller of the object with this metadata.
///
/// Fails if another object controls it already, because two controllers would fight over it,
/// and if the owner is in another namespace, because the garbage collector would delete it.
pub fn set_controller_reference<O: Object>(
    meta: &mut ObjectMeta,
    owner: &impl AsObject<O>,
) -> Result<(), OwnerReferenceError> {
    set_controller_reference_of(meta, owner.as_object().meta(), &Kind::<O>::of().erased())
}

/// The same for an owner that has this metadata, and whose type has been forgotten.
pub(crate) fn set_controller_reference_of(
    meta: &mut ObjectMeta,
    owner: &ObjectMeta,
    kind: &ErasedKind,
) -> Result<(), OwnerReferenceError> {
    let Some(reference) = controller_reference_of(owner, kind) else {
        return Ok(());
    };
    let name = || meta.name.clone().or_else(|| meta.generate_name.clone()).unwrap_or_default();
    let wanted = || format!("{} {}", reference.kind, reference.name);
    if kind.is_namespaced() && meta.namespace != owner.namespace {
        return Err(OwnerReferenceError::OtherNamespace { name: name(), owner: wanted() });
    }
    if let Some(existing) = controller_of(meta) {
        if existing.uid == reference.uid {
            return Ok(());
        }
        let owner = format!("{} {}", existing.kind, existing.name);
        let error = OwnerReferenceError::OwnedByAnother { name: name(), owner, wanted: wanted() };
        return Err(error);
    }
    let owners = meta.owner_references.get_or_insert_default();
    owners.retain(|o| o.uid != reference.uid);
    owners.push(reference);
    Ok(())
}

/// The reference that makes an owner with this metadata a controller; `None` if it has no uid yet.
pub(crate) fn controller_reference_of(
    owner: &ObjectMeta,
    kind: &ErasedKind,
) -> Option<OwnerReference> {
    let names = kind.names();
    Some(OwnerReference {
        api_version: names.api_version.into_owned(),
        kind: names.name.into_owned(),
        name: owner.name.clone()?,
        uid: owner.uid.clone()?,
        controller: Some(true),
        // A foreground deletion of the owner waits for what blocks it.
        block_owner_deletion: Some(true),
    })
}

/// Why an object cannot be owned.
#[derive(Debug, thiserror::Error)]
pub enum OwnerReferenceError {
    /// Another object controls it.
    #[error("{name} is controlled by {owner} and cannot also be controlled by {wanted}")]
    OwnedByAnother {
        /// The object.
        name: String,
        /// What controls it.
        owner: String,
        /// What was to control it.
        wanted: String,
    },
    /// A namespaced owner can only own what is in its own namespace.
    #[error("{name} is not in the namespace of {owner}, which therefore cannot own it")]
    OtherNamespace {
        /// The object.
        name: String,
        /// What was to own it.
        owner: String,
    },
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

    use super::*;

    fn deployment(name: &str, uid: &str) -> Deployment {
        let mut deployment = Deployment::default();
        deployment.metadata.name = Some(name.into());
        deployment.metadata.uid = Some(uid.into());
        deployment
    }

    #[test]
    fn an_object_has_at_most_one_controller() {
        let mut set = ReplicaSet::default();
        set_controller_reference(&mut set.metadata, &deployment("web", "1")).unwrap();
        set_controller_reference(&mut set.metadata, &deployment("web", "1")).unwrap();
        assert_eq!(set.metadata.owner_references.as_ref().unwrap().len(), 1);
        let refused = set_controller_reference(&mut set.metadata, &deployment("api", "2"));
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("Deployment web") && text.contains("Deployment api"), "{text}");
    }

    #[test]
    fn an_owner_must_be_in_the_same_namespace() {
        let mut set = ReplicaSet::default();
        set.metadata.namespace = Some("elsewhere".into());
        let refused = set_controller_reference(&mut set.metadata, &deployment("web", "1"));
        assert!(matches!(refused, Err(OwnerReferenceError::OtherNamespace { .. })));
    }
}
