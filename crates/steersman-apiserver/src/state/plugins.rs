//! Admission plug-ins: parts of the server that may change or refuse what is written, under the
//! names and in the order of Kubernetes.
//!
//! A plug-in says which writes concern it, changes what it is given ([`Plugin::admit`]), refuses
//! what must not be ([`Plugin::validate`]) and takes what a write that nobody refuses needs
//! ([`Plugin::take`]). [`crate::admission`] calls those that are switched on;
//! they are in [`crate::admission_plugins`], one file or folder each.

use std::sync::Arc;

use futures::future::{self, BoxFuture};
use serde_json::Value;
use steersman_rules::resource::{Place, Resource};

use super::Server;
use super::effects::Taken;
use crate::admission_registration::Operation;
use crate::status::Result;
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
}

impl Attributes<'_> {
    /// Whether the write is one of objects of a kind themselves, not through a subresource.
    pub(crate) fn is_of(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_empty() && self.resource.is(group, plural)
    }
}

/// A part of the server that has a say in writes.
pub(crate) trait Plugin: Send + Sync {
    /// Whether it has a say in such writes. Every write asks, so this must cost nearly nothing.
    fn handles(&self, write: &Attributes<'_>) -> bool;

    /// Whether it changes objects. One that never does spares them being copied and compared.
    fn admits(&self) -> bool {
        true
    }

    /// Changes a new version of an object, or refuses it; `old` is what it replaces. Only called
    /// where there is a new version: not for deletions.
    fn admit<'a>(
        &'a self,
        _write: Attributes<'a>,
        _new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(future::ready(Ok(())))
    }

    /// Refuses what must not be written, once nobody changes it any more. There is no new version
    /// of what is deleted, and no old one of what is created.
    fn validate<'a>(
        &'a self,
        _write: Attributes<'a>,
        _new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(future::ready(Ok(())))
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
        Box::pin(future::ready(Ok(None)))
    }
}

/// The plug-ins that are switched on, in order.
#[derive(Default)]
pub(crate) struct Plugins {
    /// Those before the webhooks.
    pub(crate) early: Vec<Box<dyn Plugin>>,
    /// Those after them.
    pub(crate) late: Vec<Box<dyn Plugin>>,
}

/// The plug-ins that have a say in one write.
#[derive(Default)]
pub(crate) struct Concerned<'a> {
    early: Vec<&'a dyn Plugin>,
    late: Vec<&'a dyn Plugin>,
}

impl Plugins {
    /// Who has a say in a write.
    pub(crate) fn concerned(&self, write: &Attributes<'_>) -> Concerned<'_> {
        Concerned { early: of(&self.early, write), late: of(&self.late, write) }
    }
}

fn of<'a>(plugins: &'a [Box<dyn Plugin>], write: &Attributes<'_>) -> Vec<&'a dyn Plugin> {
    plugins.iter().map(|plugin| &**plugin).filter(|plugin| plugin.handles(write)).collect()
}

impl Concerned<'_> {
    /// Whether nobody has.
    pub(crate) fn is_empty(&self) -> bool {
        self.early.is_empty() && self.late.is_empty()
    }

    /// Lets them change an object; says whether one did.
    pub(crate) async fn admit(
        &self,
        write: Attributes<'_>,
        new: &mut Value,
        old: Option<&Value>,
    ) -> Result<bool> {
        let mut admitting = self.early.iter().chain(&self.late).filter(|plugin| plugin.admits());
        let Some(first) = admitting.next() else { return Ok(false) };
        let before = new.clone();
        first.admit(write, new, old).await?;
        for plugin in admitting {
            plugin.admit(write, new, old).await?;
        }
        Ok(*new != before)
    }

    /// Lets those before the webhooks refuse an object.
    pub(crate) async fn validate_early(
        &self,
        write: Attributes<'_>,
        new: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<()> {
        for plugin in &self.early {
            plugin.validate(write, new, old).await?;
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
        for plugin in &self.late {
            plugin.validate(write, new, old).await?;
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
        for plugin in &self.late {
            taken.extend(plugin.take(write, new, old).await?);
        }
        Ok(taken)
    }
}
