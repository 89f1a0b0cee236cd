//! What a write means to the server itself: a definition is served, a service gets addresses, a
//! configuration of webhooks is followed.
//!
//! [`crate::write`] takes every object the same way and calls what its kind has registered here;
//! the resource says which [`Effect`] that is, so that a kind without any costs one comparison.
//! What is called is in the rooms whose business it is, and [`crate::effects`] has the list.

use std::sync::Arc;

use futures::future::{self, BoxFuture};
use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::resource::{Effect, Place, Resource};
use steersman_store::{Revision, StoreError};
use tokio::sync::OwnedMutexGuard;

use super::Server;
use crate::status::Result;
use crate::user::User;

/// One write, as far as effects need to know it.
#[derive(Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) resource: &'a Resource,
    /// The subresource that is written through; empty for the resource itself.
    pub(crate) subresource: &'a str,
    /// The verb of the request; empty where the server itself writes.
    pub(crate) verb: &'static str,
    /// Whether everything is done but the write.
    pub(crate) dry_run: bool,
    /// The time of the request.
    pub(crate) now: &'a str,
    /// Who writes; nobody but the server itself where there is none.
    pub(crate) user: Option<&'a User>,
    /// What the server's own writer holds already.
    pub(crate) turn: Option<&'a Turn>,
}

/// A write that is done.
pub(crate) struct Written<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) resource: &'a Resource,
    /// What was written, or removed.
    pub(crate) object: &'a Value,
    pub(crate) revision: Revision,
    /// Whether it was removed.
    pub(crate) gone: bool,
}

/// The right to write objects of a kind; it ends when the last clone is gone.
pub(crate) type Turn = Arc<OwnedMutexGuard<()>>;

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is done.
    Written,
    /// It is not done.
    Failed,
    /// Nobody knows.
    Unknown,
}

impl<T> From<&Result<T, StoreError>> for Outcome {
    fn from(written: &Result<T, StoreError>) -> Self {
        match written {
            Ok(_) => Self::Written,
            Err(StoreError::Unknown { .. }) => Self::Unknown,
            Err(_) => Self::Failed,
        }
    }
}

/// Something that was taken for a write, and that its outcome decides about.
pub(crate) trait Taken: Send {
    /// Gives back what the outcome says.
    fn settle(self: Box<Self>, outcome: Outcome) -> BoxFuture<'static, ()>;
}

/// What the server does around the writes of one kind, in the order in which a write comes by.
pub(crate) trait Effects: Send + Sync {
    /// Names a new object for which nobody has a name.
    fn name(&self, _write: Write<'_>, _object: &mut Value) {}

    /// Refuses what its writer may not write, whatever the verb; `place` is that of the request,
    /// without a name where a collection is written to.
    fn permit(
        &self,
        _write: Write<'_>,
        _place: Place<'_>,
        _old: Option<&Value>,
        _new: &Value,
    ) -> Result<()> {
        Ok(())
    }

    /// Refuses a new object that cannot be taken now.
    fn accept(&self, _write: Write<'_>, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Fills in what only the server knows of an object; `old` is what it replaces, if anything.
    fn prepare(&self, _write: Write<'_>, _old: Option<&Value>, _new: &mut Value) {}

    /// Fills in what only the server knows of an object of which a part is written.
    fn prepare_part(&self, _write: Write<'_>, _old: &Value, _new: &mut Value) {}

    /// The mistakes that only the server can tell: in a new object, or in a part that is written,
    /// which then has an `old` one.
    fn validate<'a>(
        &'a self,
        _write: Write<'a>,
        _old: Option<&'a Value>,
        _new: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<FieldError>>> {
        Box::pin(future::ready(Ok(Vec::new())))
    }

    /// What a writer may not say in an object, new or changed, in which nothing else is wrong.
    fn authorize<'a>(
        &'a self,
        _write: Write<'a>,
        _old: Option<&'a Value>,
        _new: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<FieldError>>> {
        Box::pin(future::ready(Ok(Vec::new())))
    }

    /// Marks an object whose deletion begins.
    fn begin_deletion(&self, _old: &Value, _new: &mut Value) {}

    /// Fills in and takes what a new version needs that the old one does not have.
    fn take<'a>(
        &'a self,
        _write: Write<'a>,
        _old: Option<&'a Value>,
        _new: &'a mut Value,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Taken>>>> {
        Box::pin(future::ready(Ok(None)))
    }

    /// Waits for the turn to write. Nobody is asked about the object any more.
    fn turn<'a>(&'a self, _write: Write<'a>) -> BoxFuture<'a, Option<Turn>> {
        Box::pin(future::ready(None))
    }

    /// Looks once more at an object whose turn has come.
    fn prepare_in_turn(&self, _write: Write<'_>, _old: Option<&Value>, _new: &mut Value) {}

    /// What the removal of an object gives back.
    fn release(&self, _server: &Arc<Server>, _object: &Value) -> Option<Box<dyn Taken>> {
        None
    }

    /// Whether anything follows from a write, or from a removal: then it is done to the end even
    /// if the client goes away.
    fn follow(&self, _gone: bool) -> bool {
        false
    }

    /// Does what follows. The client hears of its write after that.
    fn written<'a>(&'a self, _written: Written<'a>) -> BoxFuture<'a, ()> {
        Box::pin(future::ready(()))
    }

    /// Refuses a new object that was written at a revision at which it could not be taken any
    /// more.
    fn accepted<'a>(
        &'a self,
        _write: Write<'a>,
        _name: &'a str,
        _at: Revision,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(future::ready(Ok(())))
    }
}

/// What is registered, by effect.
#[derive(Default)]
pub(crate) struct Registered([Option<Box<dyn Effects>>; Effect::COUNT]);

impl Registered {
    /// Registers what a kind does.
    pub(crate) fn with(mut self, effect: Effect, effects: impl Effects + 'static) -> Self {
        self.0[effect as usize] = Some(Box::new(effects));
        self
    }

    /// What the writes of a resource mean to the server, if anything.
    pub(crate) fn of(&self, resource: &Resource) -> Option<&dyn Effects> {
        self.0[resource.effect? as usize].as_deref()
    }
}
