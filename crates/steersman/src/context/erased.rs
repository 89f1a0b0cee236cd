//! A context that has forgotten the type of its object.
//!
//! Whatever a reconcile does is done here, with the metadata of its object, the names of its kind
//! and JSON, so that it is compiled once and not for every pair of kinds. The typed views of it
//! are [`Context`](super::Context) and [`KindContext`].

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Preconditions};
use serde_json::Value;
use tracing::Span;

use super::notes::Notes;
use super::report::Report;
use super::{Equipment, KindContext};
use crate::cause::Causes;
use crate::client::{Client, Deleted, Impersonation, Pending, Requests, WriteObserver};
use crate::codec::encode;
use crate::conditions::NewCondition;
use crate::error::{Error, Result};
use crate::kind::{ErasedKind, Kind};
use crate::object::{AnyObject, ErasedObject, ObjectKey, is_controlled_by};
use crate::owner::set_controller_reference_of;

/// What all clones of a context share.
pub(crate) struct ErasedContext {
    pub(super) key: ObjectKey,
    /// The object being reconciled.
    pub(super) object: Arc<dyn ErasedObject>,
    pub(super) kind: ErasedKind,
    pub(super) equipment: Arc<Equipment>,
    /// Writes as the controller, and notes it. Made when it is first needed.
    pub(super) client: OnceLock<(Client, Arc<Notes>)>,
    /// In whose name it writes, if not in the controller's.
    pub(super) acting_as: OnceLock<Impersonation>,
    pub(super) causes: Causes,
    pub(super) report: Mutex<Report>,
    /// The status that this reconcile itself has written last: what comes next is a step from there.
    pub(super) written: Mutex<Option<Value>>,
    pub(super) span: Span,
}

impl ErasedContext {
    pub(crate) fn new(
        key: ObjectKey,
        object: Arc<dyn ErasedObject>,
        kind: ErasedKind,
        equipment: Arc<Equipment>,
        causes: Causes,
    ) -> Self {
        Self {
            key,
            object,
            kind,
            equipment,
            client: OnceLock::new(),
            acting_as: OnceLock::new(),
            causes,
            report: Mutex::default(),
            written: Mutex::default(),
            span: Span::current(),
        }
    }

    /// The key of the object being reconciled.
    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The metadata of the object being reconciled.
    pub(crate) fn meta(&self) -> &ObjectMeta {
        self.object.metadata()
    }

    /// The object being reconciled.
    pub(crate) fn object(&self) -> &dyn ErasedObject {
        &*self.object
    }

    /// The kind of the object being reconciled.
    pub(crate) fn kind(&self) -> &ErasedKind {
        &self.kind
    }

    pub(crate) fn equipment(&self) -> &Equipment {
        &self.equipment
    }

    /// The client whose writes are noted.
    pub(crate) fn client(&self) -> &Client {
        &self.noting().0
    }

    pub(super) fn notes(&self) -> &Notes {
        &self.noting().1
    }

    fn noting(&self) -> &(Client, Arc<Notes>) {
        self.client.get_or_init(|| {
            let notes = Arc::new(Notes {
                key: self.key.clone(),
                uid: self.meta().uid.clone(),
                equipment: Arc::clone(&self.equipment),
                own_version: Mutex::new(None),
            });
            let observer = Arc::clone(&notes) as Arc<dyn WriteObserver>;
            let client = self.equipment.client.observed_by(observer);
            (
                self.acting_as.get().map_or_else(|| client.clone(), |user| client.acting_as(user)),
                notes,
            )
        })
    }

    /// Makes all requests in the name of another user.
    pub(super) fn act_as(&self, user: &Impersonation) -> Result<()> {
        let late = self.client.get().is_some() || self.acting_as.set(user.clone()).is_err();
        match late {
            true => Err(Error::terminal("a reconcile acts as a user from its first request on")),
            false => Ok(()),
        }
    }

    /// Sets a condition in the status that is written when the reconcile ends.
    pub(crate) fn condition(&self, condition: NewCondition) {
        self.report().set_condition(condition);
    }

    pub(super) fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and writes objects of a kind.
    pub(crate) fn of_kind<C: AnyObject>(&self, kind: &Kind<C>) -> KindContext<'_, C> {
        KindContext { ctx: self, kind: kind.clone() }
    }

    /// Requests about objects of a kind.
    pub(crate) fn requests(&self, kind: ErasedKind) -> Requests<'_> {
        Requests::new(self.client(), kind)
    }

    /// Requests about the object being reconciled.
    pub(crate) fn own_requests(&self) -> Requests<'_> {
        self.requests(self.kind.clone())
    }

    /// Puts a child in its place and makes the object being reconciled its owner.
    pub(crate) fn adopt(&self, kind: &ErasedKind, child: &mut ObjectMeta) -> Result<()> {
        self.place(kind, child);
        self.own(child)
    }

    /// Puts a child that does not say where it lives beside the object being reconciled.
    pub(super) fn place(&self, kind: &ErasedKind, child: &mut ObjectMeta) {
        if kind.is_namespaced() && child.namespace.is_none() {
            child.namespace = self.key.namespace.as_deref().map(str::to_owned);
        }
    }

    /// Makes the object being reconciled the owner of a child.
    pub(super) fn own(&self, child: &mut ObjectMeta) -> Result<()> {
        Ok(set_controller_reference_of(child, self.meta(), &self.kind)?)
    }

    /// Whether the object being reconciled controls another, which is not being deleted.
    pub(crate) fn controls(&self, child: &ObjectMeta) -> bool {
        let uid = self.meta().uid.as_deref().unwrap_or_default();
        is_controlled_by(child, uid) && child.deletion_timestamp.is_none()
    }

    /// The key of an object of that name in the namespace of the object being reconciled.
    pub(super) fn key_beside(&self, kind: &ErasedKind, name: &str) -> Result<ObjectKey> {
        let namespaced = kind.is_namespaced();
        if namespaced && self.key.namespace.is_none() {
            return Err(Error::terminal(format!(
                "{} is cluster-scoped, so {} {name} needs a namespace: use \
                 `ctx.cache()?.get(&ObjectKey::namespaced(…))`",
                self.kind.names().name,
                kind.names().name,
            )));
        }
        let namespace = self.key.namespace.clone().filter(|_| namespaced);
        Ok(ObjectKey { namespace, name: name.into() })
    }

    /// The namespace of the object being reconciled, if objects of this kind live in one too.
    pub(super) fn namespace_of(&self, kind: &ErasedKind) -> Option<&str> {
        self.key.namespace.as_deref().filter(|_| kind.is_namespaced())
    }

    /// Applies a child.
    pub(super) fn apply<C: AnyObject>(&self, kind: &Kind<C>, mut child: C) -> Result<Pending<'_>> {
        let kind = kind.erased();
        self.adopt(&kind, child.meta_mut())?;
        Ok(self.requests(kind).apply(child.meta(), encode(&child), true))
    }

    /// Creates a child.
    pub(super) fn create<C: AnyObject>(&self, kind: &Kind<C>, mut child: C) -> Result<Pending<'_>> {
        let kind = kind.erased();
        self.adopt(&kind, child.meta_mut())?;
        Ok(self.requests(kind).create(ObjectKey::of(&child), encode(&child)))
    }

    /// Deletes exactly the object with this metadata, not another that took its name.
    pub(super) fn delete(&self, kind: ErasedKind, object: &ObjectMeta) -> Pending<'_, Deleted> {
        let preconditions = Preconditions { uid: object.uid.clone(), resource_version: None };
        let params = DeleteParams::background().preconditions(preconditions);
        self.delete_with(kind, object, &params)
    }

    /// Deletes an object as the parameters say.
    pub(super) fn delete_with(
        &self,
        kind: ErasedKind,
        object: &ObjectMeta,
        params: &DeleteParams,
    ) -> Pending<'_, Deleted> {
        let key = ObjectKey::of_meta(object);
        let uid = object.uid.clone().filter(|_| !params.dry_run);
        let deletion = self.requests(kind.clone()).delete(key.clone(), params);
        Box::pin(async move {
            let deleted = deletion.await?;
            // The answer may not say which object it was.
            if let Some(uid) = uid {
                self.notes().deleted(&kind.names(), &key, &uid);
            }
            Ok(deleted)
        })
    }

    /// Deletes exactly these objects.
    pub(crate) fn delete_all(
        &self,
        kind: ErasedKind,
        objects: Vec<Arc<dyn ErasedObject>>,
    ) -> Pending<'_, ()> {
        Box::pin(async move {
            for object in objects {
                self.delete(kind.clone(), object.metadata()).await?;
            }
            Ok(())
        })
    }
}
