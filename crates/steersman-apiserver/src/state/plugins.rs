//! Admission plug-ins: parts of the server that may change or refuse what is written, under the
//! names and in the order of Kubernetes.
//!
//! A plug-in says which writes concern it, changes what it is given ([`Plugin::admit`]), refuses
//! what must not be ([`Plugin::validate`]) and takes what a write that nobody refuses needs
//! ([`Plugin::take`]). [`crate::admission`] calls those that are switched on;
//! they are in [`crate::admission_plugins`], one file or folder each.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource};
use tokio::time::Instant;

use super::Server;
use super::effects::Taken;
use crate::admission_registration::Operation;
use crate::audit::Trail;
use crate::metrics::{Step, Times};
use crate::status::{Cause, Result, Status};
use crate::user::User;
use crate::warnings::Warnings;

/// One write by a client, as far as plug-ins need to know it. The objects come beside it, for they
/// change.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) server: &'a Arc<Server>,
    /// Who writes.
    pub(crate) user: &'a User,
    pub(crate) operation: Operation,
    pub(crate) resource: &'a Resource,
    /// The subresource that is written through; empty for the resource itself.
    pub(crate) subresource: &'a str,
    /// The place in the path; without a name where one is yet to be generated.
    pub(crate) place: Place<'a>,
    /// Whether everything is done but the write.
    pub(crate) dry_run: bool,
    /// Takes what the client is told although its write succeeds.
    pub(crate) warnings: &'a Warnings,
    /// Takes what those are told who audit, if anybody does.
    pub(crate) trail: Option<&'a Trail>,
}

impl Attributes<'_> {
    /// Whether the write is one of objects of a kind themselves, not through a subresource.
    pub(crate) fn is_of(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_empty() && self.resource.is(group, plural)
    }

    /// Whether it makes a new object of a kind.
    pub(crate) fn creates(&self, group: &str, plural: &str) -> bool {
        self.operation == Operation::Create && self.is_of(group, plural)
    }

    /// Whether it makes or changes objects of a kind.
    pub(crate) fn writes(&self, group: &str, plural: &str) -> bool {
        self.operation != Operation::Delete && self.is_of(group, plural)
    }

    /// A refusal in the name of the object, as far as it has one.
    pub(crate) fn forbidden(&self, object: &Value, why: &str) -> Status {
        self.forbidden_because(object, why, Vec::new())
    }

    /// The same, with causes for programs.
    pub(crate) fn forbidden_because(
        &self,
        object: &Value,
        why: &str,
        causes: Vec<Cause>,
    ) -> Status {
        let own = ["name", "generateName"].map(|field| metadata::text(object, field));
        let name = [self.place.name, own[0], own[1], "Unknown"].into_iter().find(|n| !n.is_empty());
        Status::forbidden(self.resource.named(name.unwrap_or_default()), why, causes)
    }
}

/// A part of the server that has a say in writes.
pub(crate) trait Plugin: Send + Sync {
    /// Whether it has a say in such writes. Every write asks, so this must cost nearly nothing.
    fn handles(&self, write: &Attributes<'_>) -> bool;

    /// Changes a new version of an object, or refuses it; `old` is what it replaces. Says whether
    /// it changed anything. Only called where there is a new version: not for deletions. What
    /// webhooks have changed since is shown once more.
    fn admit<'a>(
        &'a self,
        _write: Attributes<'a>,
        _new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(Content(PhantomData))
    }

    /// Refuses what must not be written, once nobody changes it any more. There is no new version
    /// of what is deleted, and no old one of what is created.
    fn validate<'a>(
        &'a self,
        _write: Attributes<'a>,
        _new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(Content(PhantomData))
    }

    /// Takes what the write of a new version needs, once nobody refuses it any more, or refuses it
    /// because that cannot be had. The outcome of the write decides what is given back. Only those
    /// after the webhooks are asked, and a dry run takes nothing.
    fn take<'a>(
        &'a self,
        _write: Attributes<'a>,
        _new: &'a Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Taken>>>> {
        Box::pin(Content(PhantomData))
    }
}

/// Has nothing to say. It is of no size, so that its box is not allocated.
struct Content<T>(PhantomData<fn() -> T>);

impl<T: Default> Future for Content<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(T::default()))
    }
}

/// A plug-in, and how long it takes.
struct Measured {
    plugin: Box<dyn Plugin>,
    times: Times,
}

/// The plug-ins that are switched on.
#[derive(Default)]
pub(crate) struct Plugins {
    /// In order; at most 64 of them.
    all: Vec<Measured>,
    /// Those after the webhooks: the n-th bit is for the n-th.
    late: u64,
    /// Whether objects live only in namespaces that exist and stay. [`crate::write`] sees to it,
    /// for it has to look again once it has written.
    pub(crate) namespace_lifecycle: bool,
    /// Whether a namespace that is not there is made for the first object in it; also by
    /// [`crate::write`], before it looks.
    pub(crate) namespace_provision: bool,
}

/// The plug-ins that have a say in one write.
#[derive(Clone, Copy, Default)]
pub(crate) struct Concerned<'a> {
    /// Those that are switched on.
    all: &'a [Measured],
    /// Who of them: the n-th bit is for the n-th.
    asked: u64,
    late: u64,
}

impl Plugins {
    /// Adds one that is asked before the webhooks.
    pub(crate) fn push(&mut self, plugin: Box<dyn Plugin>, times: Times) {
        assert!(self.all.len() < 64, "there is a bit for each plug-in");
        self.all.push(Measured { plugin, times });
    }

    /// Adds one that is asked after them.
    pub(crate) fn push_late(&mut self, plugin: Box<dyn Plugin>, times: Times) {
        self.late |= 1 << self.all.len();
        self.push(plugin, times);
    }

    /// Who has a say in a write.
    pub(crate) fn concerned(&self, write: &Attributes<'_>) -> Concerned<'_> {
        let mut asked = 0;
        for (n, known) in self.all.iter().enumerate() {
            asked |= u64::from(known.plugin.handles(write)) << n;
        }
        Concerned { all: &self.all, asked, late: self.late }
    }
}

impl<'a> Concerned<'a> {
    /// Whether nobody has.
    pub(crate) fn is_empty(&self) -> bool {
        self.asked == 0
    }

    /// Those of some bits, in order.
    fn among(&self, bits: u64) -> impl Iterator<Item = &'a Measured> + use<'a> {
        let asked = self.asked & bits;
        let all = self.all.iter().enumerate();
        all.filter(move |(n, _)| asked >> n & 1 == 1).map(|(_, known)| known)
    }

    /// Lets them change an object; says whether one did.
    pub(crate) async fn admit(
        &self,
        write: Attributes<'_>,
        new: &mut Value,
        old: Option<&Value>,
    ) -> Result<bool> {
        let mut changed = false;
        let mut clock = Laps::start();
        for Measured { plugin, times } in self.among(u64::MAX) {
            let admitted = plugin.admit(write, new, old).await;
            clock.lap(times, Step::Admit, write, admitted.is_err());
            changed |= admitted?;
        }
        Ok(changed)
    }

    /// Lets those before the webhooks refuse an object.
    pub(crate) async fn validate_early(
        &self,
        write: Attributes<'_>,
        new: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<()> {
        let mut clock = Laps::start();
        for Measured { plugin, times } in self.among(!self.late) {
            let valid = plugin.validate(write, new, old).await;
            clock.lap(times, Step::Validate, write, valid.is_err());
            valid?;
        }
        Ok(())
    }

    /// Lets those after the webhooks refuse it.
    pub(crate) async fn validate_late(
        &self,
        write: Attributes<'_>,
        new: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<()> {
        let mut clock = Laps::start();
        for Measured { plugin, times } in self.among(self.late) {
            let valid = plugin.validate(write, new, old).await;
            clock.lap(times, Step::Validate, write, valid.is_err());
            valid?;
        }
        Ok(())
    }

    /// Lets them take what the write needs.
    pub(crate) async fn take(
        &self,
        write: Attributes<'_>,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<Box<dyn Taken>>> {
        let mut taken = Vec::new();
        for Measured { plugin, .. } in self.among(self.late) {
            taken.extend(plugin.take(write, new, old).await?);
        }
        Ok(taken)
    }
}

/// Measures what is done one after the other.
struct Laps(Instant);

impl Laps {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn lap(&mut self, times: &Times, step: Step, write: Attributes<'_>, rejected: bool) {
        let now = Instant::now();
        let took = now.duration_since(std::mem::replace(&mut self.0, now));
        times.took(step, write.operation.as_str(), rejected, took);
    }
}

#[cfg(test)]
mod tests {
    use super::Content;

    #[test]
    fn who_has_nothing_to_say_takes_no_memory() {
        assert_eq!((size_of::<Content<bool>>(), size_of::<Content<()>>()), (0, 0));
    }
}
