//! Writing: one file a verb. All of them end in [`Writer::commit`], and all but create and
//! delete go through [`change::change`], which retries when someone else wrote first.

pub(crate) mod apply;
pub(crate) mod binding;
mod budget;
pub(crate) mod change;
mod condition;
pub(crate) mod create;
mod decode;
pub(crate) mod delete;
pub(crate) mod delete_collection;
mod delete_options;
pub(crate) mod eviction;
pub(crate) mod lifecycle;
mod options;
mod part;
pub(crate) mod patch;
pub(crate) mod scale;
pub(crate) mod token_request;
pub(crate) mod update;
mod validate;

pub(crate) use delete_options::DeleteOptions;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use steersman_store::{Expected, Revision, StoreError, WriteRequest};

use crate::admission::{self, Hooks};
use crate::allocate::{self, Outcome, Reservation};
use crate::authn::User;
use crate::call::Call;
use crate::conversion::{self, Known};
use crate::crd;
use crate::document::{self, Stored};
use crate::state::Server;
use crate::status::{Result, Status};
use steersman_rules::apply::{Resets, Track, track};
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource, ScalePaths};

/// The largest object that is stored, in bytes: what etcd takes by default, so that what can be
/// written does not depend on the store.
const OBJECT_MAX: usize = 3 * 512 * 1024;

/// Who writes what, and how: what all writes of one request share.
pub(crate) struct Writer<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) resource: &'a Resource,
    /// The version that the documents speak.
    pub(crate) api_version: String,
    /// The field manager.
    pub(crate) manager: String,
    /// The subresource that is written through; empty for the resource itself.
    pub(crate) subresource: &'a str,
    /// Whether to do everything but the write.
    pub(crate) dry_run: bool,
    /// The time of the request.
    pub(crate) now: String,
    /// Who writes; nobody but the server itself where there is none.
    pub(crate) user: Option<&'a User>,
    /// Whether what is written needs no checks: what the server writes by itself.
    pub(crate) trusted: bool,
    /// The right to write definitions, of the server's own writer that has it already.
    pub(crate) turn: Option<crd::Turn>,
    /// Who is told what does not stop the write; nobody, if the server itself writes.
    pub(crate) call: Option<&'a Call>,
    /// The webhooks that may have a say.
    pub(crate) hooks: Option<Arc<Hooks>>,
    /// Where the number is that a Scale shows, if one is written instead of the object.
    pub(crate) scale: Option<&'a ScalePaths>,
    /// What was converted for the merge of this write.
    pub(crate) known: Known,
}

/// What a write holds until it is done.
#[derive(Default)]
pub(crate) struct Held {
    /// What was taken for it.
    pub(crate) reservation: Option<Reservation>,
    /// The right to write definitions.
    pub(crate) turn: Option<crd::Turn>,
}

/// Whether ownership of fields still has to be recorded; an apply has done so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracking {
    Record,
    Recorded,
}

impl Call {
    /// The writer of this request.
    pub(crate) fn writer(&self) -> Result<Writer<'_>> {
        options::check(self)?;
        Ok(Writer {
            server: &self.server,
            resource: &self.resource,
            api_version: self.api_version.clone(),
            manager: self.manager(),
            subresource: self.subresource(),
            dry_run: self.info.dry_run()?,
            now: self.server.now(),
            user: Some(&self.user),
            trusted: false,
            turn: None,
            call: Some(self),
            hooks: self.server.webhooks.of(&self.resource),
            scale: None,
            known: Known::default(),
        })
    }
}

impl<'a> Writer<'a> {
    /// A writer of the server's own.
    pub(crate) fn internal(server: &'a Arc<Server>, resource: &'a Resource) -> Self {
        Self {
            server,
            resource,
            api_version: resource.api_version(),
            manager: "kube-apiserver".to_owned(),
            subresource: "",
            dry_run: false,
            now: server.now(),
            user: None,
            trusted: false,
            turn: None,
            call: None,
            hooks: None,
            scale: None,
            known: Known::default(),
        }
    }

    /// Tells the client what its object is valid for, but hardly meant to be.
    pub(crate) fn warn(&self, new: &Value, old: Option<&Value>) {
        if let Some(call) = self.call {
            let warnings = self.resource.strategy.warnings(new, old);
            warnings.into_iter().for_each(|warning| call.warn(warning));
        }
    }

    /// Records who owns which fields of a new version of an object.
    pub(crate) fn track(&self, live: Option<&Value>, new: &mut Value) {
        self.resource.schema.settle(new);
        track(Track {
            live,
            new,
            manager: &self.manager,
            subresource: self.subresource,
            api_version: &self.api_version,
            now: &self.now,
            schema: &self.resource.schema,
            versions: &apply::Served::of(self),
            resets: self.resets(),
        });
    }

    /// What the path that is written through resets.
    fn resets(&self) -> Resets<'static> {
        if self.resource.has_status() {
            self.resource.strategy.resets(self.subresource)
        } else {
            &[]
        }
    }

    /// The bytes of an object to write. One that is too large loses the record of who owns its
    /// fields, which the next writes begin anew; only an apply cannot do without.
    fn encode(&self, object: &mut Value) -> Result<Bytes> {
        self.resource.schema.settle(object);
        let bytes = document::encode(object)?;
        if self.dry_run || bytes.len() <= OBJECT_MAX {
            return Ok(bytes);
        }
        if !self.call.is_some_and(patch::is_apply) {
            metadata::set(object, "managedFields", None);
            let bytes = document::encode(object)?;
            if bytes.len() <= OBJECT_MAX {
                return Ok(bytes);
            }
        }
        Err(Status::failure("etcdserver: request is too large"))
    }

    /// The bytes to store of an object, which `bytes` are in the version of the writer.
    pub(crate) async fn to_storage(&self, object: &Value, bytes: &Bytes) -> Result<Bytes> {
        let stored = conversion::to_storage(self.server, self.resource, object).await?;
        Ok(stored.unwrap_or_else(|| bytes.clone()))
    }

    /// What was just stored, if it was, as whoever wrote it reads it. `bytes` is what they sent:
    /// that is what they hear where nobody converts it back, for it was written all the same.
    pub(crate) async fn written(
        &self,
        stored: Option<Bytes>,
        bytes: Bytes,
        revision: Revision,
    ) -> Stored {
        let sent = Stored { bytes, revision };
        let Some(stored) = stored.filter(|_| self.resource.is_custom()) else {
            return sent;
        };
        let stored = Stored { bytes: stored, revision };
        conversion::read(self.server, self.resource, stored).await.unwrap_or(sent)
    }

    /// Writes, or removes when there are no bytes. `object` is the new or last document. What
    /// else changes with it, the resources served or what is handed out to services, has changed
    /// when this returns.
    pub(crate) async fn commit(
        &self,
        place: Place<'_>,
        bytes: Option<Bytes>,
        object: &Value,
        expected: Expected,
    ) -> Result<Revision, StoreError> {
        self.commit_holding(place, bytes, object, expected, Held::default()).await
    }

    /// Writes an object for which something is held.
    pub(crate) async fn commit_holding(
        &self,
        place: Place<'_>,
        bytes: Option<Bytes>,
        object: &Value,
        expected: Expected,
        held: Held,
    ) -> Result<Revision, StoreError> {
        let Held { mut reservation, turn } = held;
        let gone = bytes.is_none();
        let key = self.resource.key(place).into();
        let ttl = self.resource.strategy.ttl().filter(|_| !gone);
        let request = WriteRequest { key, value: bytes, expected, ttl };
        if gone && allocate::concerns(self.resource) {
            match &mut reservation {
                Some(reservation) => reservation.free_all(object),
                none => *none = Some(Reservation::of_removal(self.server, object)),
            }
        }
        let plain = reservation.is_none()
            && !crd::concerns(self.server, self.resource, gone)
            && !admission::concerns(self.resource);
        if plain {
            return Ok(self.server.store.write(request).await?.revision);
        }
        let (server, resource) = (Arc::clone(self.server), self.resource.clone());
        let object = object.clone();
        // A client that goes away must not leave the definition written and not served, the
        // service written and its address free, nor the webhook configured and not asked.
        let written = tokio::spawn(async move {
            let written = server.store.write(request).await;
            if let Some(reservation) = reservation {
                reservation.settle(Outcome::from(&written)).await;
            }
            let revision = written?.revision;
            if crd::concerns(&server, &resource, gone) {
                crd::committed(&server, &resource, &object, revision, gone).await;
            }
            if admission::concerns(&resource)
                && let Err(error) = admission::load(&server).await
            {
                tracing::error!(%error, "webhook configurations cannot be read");
            }
            drop(turn);
            Ok(revision)
        });
        match written.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(written) => written,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this request with it.
            Err(Err(_)) => std::future::pending().await,
        }
    }
}

/// A body names another namespace than the path.
pub(crate) const OTHER_NAMESPACE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

/// The body of a call as an object of its resource's kind.
pub(crate) fn body(call: &Call) -> Result<Value> {
    decode::object(call)
}

/// A Status that says it worked.
pub(crate) fn success(code: u16, details: Option<Value>) -> Value {
    let mut status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    match details {
        Some(details) => status["details"] = details,
        None => status["code"] = code.into(),
    }
    status
}
