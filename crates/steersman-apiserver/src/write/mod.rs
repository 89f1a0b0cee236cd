//! Writing objects: what all verbs have in common, and what the server does by itself.
//!
//! A [`Writer`] says who writes what. [`create`] makes a new object; [`change`] and [`delete`] go
//! through one loop ([`swap`]), which tries again when someone else wrote first. All of them end
//! in [`Writer::commit`]. [`own`] keeps what the server itself needs. What a write means to the
//! server is not known here: kinds that have [effects](crate::state::effects) register them.

pub(crate) mod change;
mod commit;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod delete_options;
mod lifecycle;
pub(crate) mod own;
mod part;
pub(crate) mod prepare;
pub(crate) mod scale;
mod swap;
mod validate;
pub(crate) mod versions;

pub(crate) use commit::Held;
pub(crate) use delete_options::DeleteOptions;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use steersman_rules::apply::{Resets, Track, track};
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource, ScalePaths};
use steersman_rules::schema::ADDED_MAX;
use steersman_store::Revision;

use crate::admission::{About, Operation, Request};
use crate::admission_registration::Hooks;
use crate::call::Call;
use crate::conversion::{self, Known};
use crate::document::{self, Stored};
use crate::state::Server;
use crate::state::effects::{Effects, Turn, Write};
use crate::status::{Result, Status};
use crate::user::User;

/// The largest object that is stored, in bytes: what etcd takes by default, so that what can be
/// written does not depend on the store.
const OBJECT_MAX: usize = ADDED_MAX;

/// A body names another namespace than the path.
pub(crate) const OTHER_NAMESPACE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

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
    /// The turn to write, of the server's own writer that has it already.
    pub(crate) turn: Option<Turn>,
    /// Who is told what does not stop the write; nobody, if the server itself writes.
    pub(crate) call: Option<&'a Call>,
    /// Whether plug-ins and webhooks are asked; what is asked about elsewhere is not asked again.
    pub(crate) asks: bool,
    /// The webhooks that may have a say.
    pub(crate) hooks: Option<Arc<Hooks>>,
    /// Where the number is that a Scale shows, if one is written instead of the object.
    pub(crate) scale: Option<&'a ScalePaths>,
    /// What was converted for the merge of this write.
    pub(crate) known: Known,
}

/// Whether ownership of fields still has to be recorded; an apply has done so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracking {
    Record,
    Recorded,
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
            asks: false,
            hooks: None,
            scale: None,
            known: Known::default(),
        }
    }

    /// What the writes of this kind mean to the server, if anything.
    fn effects(&self) -> Option<&'a dyn Effects> {
        self.server.effects.of(self.resource)
    }

    /// This write, as effects see it.
    pub(crate) fn seen(&self) -> Write<'_> {
        Write {
            server: self.server,
            resource: self.resource,
            subresource: self.subresource,
            verb: self.call.map_or("", |call| call.info.verb.name()),
            dry_run: self.dry_run,
            now: &self.now,
            user: self.user,
            turn: self.turn.as_ref(),
        }
    }

    /// What plug-ins and webhooks are asked about this write; `None` if nobody wants to be asked.
    fn asks<'b>(&'b self, operation: Operation, place: Place<'b>) -> Option<Request<'b>> {
        let call = self.call.filter(|_| self.asks)?;
        let about = About {
            operation,
            resource: self.resource,
            subresource: self.subresource,
            place,
            dry_run: self.dry_run,
        };
        Request::of(call, self.hooks.clone(), about)
    }

    /// Tells the client what its object is valid for, but hardly meant to be.
    fn warn(&self, new: &Value, old: Option<&Value>) {
        if let Some(call) = self.call {
            let warnings = self.resource.rules.warnings(new, old);
            warnings.into_iter().for_each(|warning| call.warn(warning));
        }
    }

    /// Records who owns which fields of a new version of an object.
    pub(crate) fn track(&self, live: Option<&Value>, new: &mut Value) {
        self.resource.schema.settle(new);
        // That is the most work of all, and for nothing if the object is refused.
        if !self.dry_run && document::exceeds(new, OBJECT_MAX) {
            return;
        }
        track(Track {
            live,
            new,
            manager: &self.manager,
            subresource: self.subresource,
            api_version: &self.api_version,
            now: &self.now,
            schema: &self.resource.schema,
            versions: &versions::Served::of(self),
            resets: self.resets(),
        });
    }

    /// What the path that is written through resets.
    pub(crate) fn resets(&self) -> Resets<'static> {
        if self.resource.has_status() { self.resource.rules.resets(self.subresource) } else { &[] }
    }

    /// The bytes of an object to write. One that is too large loses the record of who owns its
    /// fields, which the next writes begin anew; only an apply cannot do without.
    fn encode(&self, object: &mut Value) -> Result<Bytes> {
        self.resource.schema.settle(object);
        self.resource.schema.shorten_numbers(object);
        let bytes = document::encode(object)?;
        if self.dry_run || bytes.len() <= OBJECT_MAX {
            return Ok(bytes);
        }
        if !self.call.is_some_and(Call::is_apply) {
            metadata::set(object, "managedFields", None);
            let bytes = document::encode(object)?;
            if bytes.len() <= OBJECT_MAX {
                return Ok(bytes);
            }
        }
        Err(Status::unstorable())
    }

    /// The bytes to store of an object, which `bytes` are in the version of the writer. A webhook
    /// may have made more of it.
    async fn to_storage(&self, object: &Value, bytes: &Bytes) -> Result<Bytes> {
        let stored = conversion::to_storage(self.server, self.resource, object).await?;
        match stored {
            Some(stored) if stored.len() > OBJECT_MAX => Err(Status::unstorable()),
            stored => Ok(stored.unwrap_or_else(|| bytes.clone())),
        }
    }

    /// What was just stored, if it was, as whoever wrote it reads it. `bytes` is what they sent:
    /// that is what they hear where nobody converts it back, for it was written all the same.
    async fn written(&self, stored: Option<Bytes>, bytes: Bytes, revision: Revision) -> Stored {
        let sent = Stored { bytes, revision };
        let Some(stored) = stored.filter(|_| self.resource.is_custom()) else {
            return sent;
        };
        let stored = Stored { bytes: stored, revision };
        conversion::read(self.server, self.resource, stored).await.unwrap_or(sent)
    }
}
