//! Observe everything, decide, act, then report what was observed.
//!
//! A [`World`] is everything that one object wants: children as they are to be, and kinds of
//! which it wants no others. [`settle`](World::settle) first looks at all of it in the cache,
//! then applies only what differs, deletes what is wanted no longer, and reports what is there.
//! If everything is as wanted, nothing is written.
//!
//! ```
//! # use std::sync::Arc;
//! # use k8s_openapi::api::apps::v1::Deployment;
//! # use k8s_openapi::api::core::v1::{ConfigMap, Service};
//! # use steersman::{Context, Next, Result};
//! # fn deployment(_: &ConfigMap) -> Deployment { Deployment::default() }
//! # fn service(_: &ConfigMap) -> Service { Service::default() }
//! use steersman::conditions::ConditionType;
//!
//! const SYNCED: ConditionType = ConditionType::new("Synced");
//!
//! # type App = ConfigMap;
//! async fn reconcile(app: Arc<App>, ctx: Context<App>) -> Result<Next> {
//!     let world = ctx.world().want(deployment(&app)).want(service(&app)).prune::<Service>();
//!     let seen = world.reports(SYNCED).settle().await?;
//!     let up = seen.of::<Deployment>().iter().all(|it| it.status.is_some());
//!     ctx.status(serde_json::json!({"up": up, "children": seen.inventory()}));
//!     Ok(Next::Settled)
//! }
//! ```

mod child;
mod comparison;
mod form;
mod prune;
mod quantity;
mod seen;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::conditions::ConditionType;
use crate::context::{Context, ErasedContext};
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::object::{AnyObject, Object};

use child::Child;
pub use comparison::{Difference, Why};
use form::Form;
use prune::prune;
pub use seen::{Action, Seen, What};

/// Everything that the object being reconciled wants; see [`Context::world`].
#[must_use = "a world does nothing until it is settled"]
pub struct World<K> {
    erased: ErasedWorld,
    owner: PhantomData<fn() -> K>,
}

/// The same, whatever the type of the object being reconciled.
struct ErasedWorld {
    ctx: Arc<ErasedContext>,
    wanted: Vec<Child>,
    unwanted: Vec<Box<dyn Form>>,
    condition: Option<ConditionType>,
}

impl<K: AnyObject> Context<K> {
    /// Begins a description of everything that the object being reconciled wants.
    pub fn world(&self) -> World<K> {
        World { erased: ErasedWorld::new(Arc::clone(self.erased())), owner: PhantomData }
    }
}

impl<K: AnyObject> World<K> {
    /// Wants a child to have these fields, as [`Context::apply`] would give it. Its kind must be
    /// one that the controller declared. Children are applied in the order in which they are
    /// wanted.
    pub fn want<C: Object>(self, child: C) -> Self {
        self.want_of(&Kind::of(), child)
    }

    /// Wants all of these.
    pub fn want_all<C: Object>(self, children: impl IntoIterator<Item = C>) -> Self {
        children.into_iter().fold(self, Self::want)
    }

    /// Wants a child of a kind that may be known only at run time.
    pub fn want_of<C: AnyObject>(mut self, kind: &Kind<C>, child: C) -> Self {
        self.erased.wanted.push(Child::new(kind, child));
        self
    }

    /// Wants no children of this kind but those that are wanted here: others that the object
    /// being reconciled controls are deleted, unless something failed before.
    pub fn prune<C: Object>(self) -> Self {
        self.prune_of(&Kind::<C>::of())
    }

    /// The same for a kind that may be known only at run time.
    pub fn prune_of<C: AnyObject>(mut self, kind: &Kind<C>) -> Self {
        self.erased.unwanted.push(Box::new(kind.clone()));
        self
    }

    /// Tells in a condition whether everything is as wanted.
    pub fn reports(mut self, condition: ConditionType) -> Self {
        self.erased.condition = Some(condition);
        self
    }

    /// Makes everything as wanted, and reports what is there. What fails does not keep the other
    /// children from being applied; the first failure is the error.
    pub async fn settle(self) -> Result<Seen> {
        self.erased.settle().await
    }
}

impl ErasedWorld {
    fn new(ctx: Arc<ErasedContext>) -> Self {
        Self { ctx, wanted: Vec::new(), unwanted: Vec::new(), condition: None }
    }

    fn settle(mut self) -> BoxFuture<'static, Result<Seen>> {
        Box::pin(async move {
            let condition = self.condition.take();
            let ctx = Arc::clone(&self.ctx);
            let settled = self.act().await;
            if let Some(condition) = condition {
                ctx.condition(match &settled {
                    Ok(seen) if seen.waits() => condition.no("Terminating", seen.to_string()),
                    Ok(seen) => condition.yes("AsWanted", seen.summary()),
                    Err(error) => condition.no("Failed", error.to_string()),
                });
            }
            settled
        })
    }

    async fn act(mut self) -> Result<Seen> {
        let mut seen = Seen::default();
        let mut failures = Vec::new();
        // First everything is looked at, so that what is decided fits together.
        for child in &mut self.wanted {
            failures.extend(child.observe(&self.ctx).err());
        }
        for mut child in self.wanted {
            match child.act(&self.ctx).await {
                Ok(action) => seen.actions.extend(action),
                Err(error) => failures.push(error),
            }
            seen.objects.push(child.seen());
        }
        if failures.is_empty() {
            for form in &self.unwanted {
                match prune(&**form, &self.ctx, &seen.objects).await {
                    Ok(deleted) => seen.actions.extend(deleted),
                    Err(error) => failures.push(error),
                }
            }
        }
        first_of(failures).map_or(Ok(seen), Err)
    }
}

/// The first failure; the others are only logged.
fn first_of(failures: Vec<Error>) -> Option<Error> {
    let mut failures = failures.into_iter();
    let first = failures.next();
    for error in failures {
        tracing::warn!(%error, "another child could not be made as wanted");
    }
    first
}
