//! Owner references: how one object becomes the controller of another, or one of its owners.
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
/// if the owner is in another namespace, because the garbage collector would delete it, and if the
/// owner has no uid, because it does not exist yet.
pub fn set_controller_reference<O: Object>(
    meta: &mut ObjectMeta,
    owner: &impl AsObject<O>,
) -> Result<(), OwnerReferenceError> {
    set_controller_reference_of(meta, owner.as_object().meta(), &Kind::<O>::of().erased())
}

/// Makes `owner` one of those that own the object with this metadata: it goes when all of them have
/// gone. Who controls it stays so. Fails as [`set_controller_reference`] does.
pub fn set_owner_reference<O: Object>(
    meta: &mut ObjectMeta,
    owner: &impl AsObject<O>,
) -> Result<(), OwnerReferenceError> {
    let kind = Kind::<O>::of().erased();
    let reference = permitted_reference(meta, owner.as_object().meta(), &kind)?;
    put(meta, reference);
    Ok(())
}

/// Ends the ownership of `owner`, be it the controller or not; tells whether it was an owner.
pub fn remove_owner_reference<O: Object>(meta: &mut ObjectMeta, owner: &impl AsObject<O>) -> bool {
    let uid = owner.as_object().meta().uid.as_ref();
    let Some(owners) = &mut meta.owner_references else { return false };
    let before = owners.len();
    owners.retain(|known| Some(&known.uid) != uid);
    owners.len() < before
}

/// The same as [`set_controller_reference`] for an owner that has this metadata, and whose type has
/// been forgotten.
pub(crate) fn set_controller_reference_of(
    meta: &mut ObjectMeta,
    owner: &ObjectMeta,
    kind: &ErasedKind,
) -> Result<(), OwnerReferenceError> {
    let reference = controlling(permitted_reference(meta, owner, kind)?);
    if let Some(existing) = controller_of(meta).filter(|known| known.uid != reference.uid) {
        let owner = format!("{} {}", existing.kind, existing.name);
        let wanted = format!("{} {}", reference.kind, reference.name);
        return Err(OwnerReferenceError::OwnedByAnother { name: name_of(meta), owner, wanted });
    }
    put(meta, reference);
    Ok(())
}

/// The reference that makes an owner with this metadata a controller; `None` if it has no uid yet.
pub(crate) fn controller_reference_of(
    owner: &ObjectMeta,
    kind: &ErasedKind,
) -> Option<OwnerReference> {
    reference_to(owner, kind).map(controlling)
}

fn reference_to(owner: &ObjectMeta, kind: &ErasedKind) -> Option<OwnerReference> {
    let names = kind.names();
    Some(OwnerReference {
        api_version: names.api_version.into_owned(),
        kind: names.name.into_owned(),
        name: owner.name.clone()?,
        uid: owner.uid.clone()?,
        ..OwnerReference::default()
    })
}

fn controlling(reference: OwnerReference) -> OwnerReference {
    // A foreground deletion of the owner waits for what blocks it.
    let block_owner_deletion = Some(true);
    OwnerReference { controller: Some(true), block_owner_deletion, ..reference }
}

/// The reference to an owner that may own the object with this metadata.
fn permitted_reference(
    meta: &ObjectMeta,
    owner: &ObjectMeta,
    kind: &ErasedKind,
) -> Result<OwnerReference, OwnerReferenceError> {
    let shown = || format!("{} {}", kind.names().name, name_of(owner));
    let Some(reference) = reference_to(owner, kind) else {
        return Err(OwnerReferenceError::NotCreated { name: name_of(meta), owner: shown() });
    };
    if kind.is_namespaced() && meta.namespace != owner.namespace {
        return Err(OwnerReferenceError::OtherNamespace { name: name_of(meta), owner: shown() });
    }
    Ok(reference)
}

/// Adds a reference. One to the same owner stays what it is, but for the version in which the owner
/// is known, unless it is to control from now on.
fn put(meta: &mut ObjectMeta, reference: OwnerReference) {
    let owners = meta.owner_references.get_or_insert_default();
    match owners.iter_mut().find(|known| known.uid == reference.uid) {
        Some(known) if known.controller == Some(true) || reference.controller.is_none() => {
            known.api_version = reference.api_version;
        }
        Some(known) => *known = reference,
        None => owners.push(reference),
    }
}

fn name_of(meta: &ObjectMeta) -> String {
    meta.name.clone().or_else(|| meta.generate_name.clone()).unwrap_or_default()
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
    /// The owner is not known to the server.
    #[error("{owner} has no uid, so it cannot own {name}: create it first")]
    NotCreated {
        /// The object.
        name: String,
        /// What was to own it.
        owner: String,
    },
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use k8s_openapi::api::core::v1::Node;

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
        let refused = set_owner_reference(&mut set.metadata, &deployment("web", "1"));
        assert!(matches!(refused, Err(OwnerReferenceError::OtherNamespace { .. })));
        set_owner_reference(&mut set.metadata, &node("n", "1")).unwrap();
        let mut node = node("n", "1");
        let mut owner = deployment("web", "2");
        owner.metadata.namespace = Some("default".into());
        let refused = set_controller_reference(&mut node.metadata, &owner);
        assert!(matches!(refused, Err(OwnerReferenceError::OtherNamespace { .. })));
    }

    fn node(name: &str, uid: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = Some(name.into());
        node.metadata.uid = Some(uid.into());
        node
    }

    #[test]
    fn an_owner_that_was_not_created_owns_nothing() {
        let mut set = ReplicaSet::default();
        set.metadata.name = Some("web-1".into());
        let mut owner = deployment("web", "1");
        owner.metadata.uid = None;
        let refused = set_controller_reference(&mut set.metadata, &owner).unwrap_err();
        let text = "Deployment web has no uid, so it cannot own web-1: create it first";
        assert_eq!(refused.to_string(), text);
        assert_eq!(set.metadata.owner_references, None);
    }

    #[test]
    fn owners_beside_the_controller_come_and_go() {
        let mut set = ReplicaSet::default();
        let (web, api) = (deployment("web", "1"), deployment("api", "2"));
        set_controller_reference(&mut set.metadata, &web).unwrap();
        for _ in 0..2 {
            set_owner_reference(&mut set.metadata, &web).unwrap();
            set_owner_reference(&mut set.metadata, &api).unwrap();
        }
        let owners = set.metadata.owner_references.clone().unwrap();
        let roles: Vec<_> = owners.iter().map(|it| (&*it.name, it.controller)).collect();
        assert_eq!(roles, [("web", Some(true)), ("api", None)]);
        assert_eq!(owners[1].block_owner_deletion, None);
        assert!(remove_owner_reference(&mut set.metadata, &web));
        assert!(!remove_owner_reference(&mut set.metadata, &web));
        set_controller_reference(&mut set.metadata, &api).unwrap();
        let owners = set.metadata.owner_references.unwrap();
        assert_eq!((owners.len(), owners[0].controller), (1, Some(true)), "it was an owner before");
    }

    #[test]
    fn an_owner_is_known_in_the_version_that_is_spoken_now() {
        let mut set = ReplicaSet::default();
        let owner = deployment("web", "1");
        set_controller_reference(&mut set.metadata, &owner).unwrap();
        let known = &mut set.metadata.owner_references.as_mut().unwrap()[0];
        known.api_version = "apps/v1beta2".into();
        known.block_owner_deletion = Some(false);
        set_controller_reference(&mut set.metadata, &owner).unwrap();
        let known = &set.metadata.owner_references.unwrap()[0];
        assert_eq!(known.api_version, "apps/v1");
        assert_eq!(known.block_owner_deletion, Some(false), "somebody decided so");
    }
}
