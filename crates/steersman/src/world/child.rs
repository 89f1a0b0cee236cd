//! A wanted child: looked at, compared, applied if it differs.

use std::any::Any;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::ResourceExt;
use serde_json::Value;

use super::comparison::{Difference, compare};
use super::seen::{Action, SeenObject, What};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::events::Reference;
use crate::kind::Kind;
use crate::object::{AnyObject, ObjectKey, controller_of};
use crate::owner::OwnerReferenceError;

/// A wanted child whose kind has been forgotten.
pub(super) trait Wanted<K>: Send {
    /// Looks at the child in the cache and decides what is to be done.
    fn observe(&mut self, ctx: &Context<K>) -> Result<()>;

    /// Does what was decided.
    fn act<'a>(&'a mut self, ctx: &'a Context<K>) -> BoxFuture<'a, Result<Option<Action>>>;

    /// What is there.
    fn seen(self: Box<Self>) -> SeenObject;
}

/// A wanted child of kind `C`.
pub(super) struct Child<C> {
    kind: Kind<C>,
    wanted: C,
    /// What is there, as far as is known.
    actual: Option<Arc<C>>,
    decision: Decision,
}

enum Decision {
    /// It could not be looked at, or another owns it.
    Leave,
    /// It is as wanted.
    Nothing,
    /// It goes away, and is made again when it is gone.
    Wait,
    Create,
    Apply(Vec<Difference>),
}

impl<C: AnyObject> Child<C> {
    pub(super) fn new(kind: &Kind<C>, wanted: C) -> Self {
        Self { kind: kind.clone(), wanted, actual: None, decision: Decision::Leave }
    }

    fn decide<K: AnyObject>(&self, ctx: &Context<K>) -> Result<Decision> {
        let Some(actual) = &self.actual else {
            return Ok(Decision::Create);
        };
        let meta = actual.meta();
        let owner = ctx.object().meta().uid.as_deref();
        if let Some(other) = controller_of(meta).filter(|it| Some(it.uid.as_str()) != owner) {
            return Err(OwnerReferenceError::OwnedByAnother {
                name: format!("{} {}", self.kind.name(), actual.name_any()),
                owner: format!("{} {}", other.kind, other.name),
                wanted: format!("{} {}", ctx.kind().name(), ctx.object().name_any()),
            }
            .into());
        }
        if meta.deletion_timestamp.is_some() {
            return Ok(Decision::Wait);
        }
        let wanted = self.document(ctx)?;
        let differences = self.compare(ctx, &wanted, actual)?;
        if differences.is_empty() || ctx.applied().left(meta, &wanted, &differences) {
            return Ok(Decision::Nothing);
        }
        Ok(Decision::Apply(differences))
    }

    /// The wanted object as it is applied.
    fn document<K: AnyObject>(&self, ctx: &Context<K>) -> Result<Value> {
        ctx.of_kind(&self.kind).client().document(&self.wanted)
    }

    fn compare<K: AnyObject>(
        &self,
        ctx: &Context<K>,
        wanted: &Value,
        actual: &C,
    ) -> Result<Vec<Difference>> {
        Ok(compare(wanted, &serde_json::to_value(actual)?, ctx.live().field_manager()))
    }

    /// Applies the child, and remembers what that left different.
    async fn apply<K: AnyObject>(&mut self, ctx: &Context<K>) -> Result<()> {
        let applied = ctx.of_kind(&self.kind).client().apply(&self.wanted).await?;
        let wanted = self.document(ctx)?;
        let left = self.compare(ctx, &wanted, &applied)?;
        // The cache may strip what the answer has.
        let stripped = |cached: &Arc<C>| cached.meta().managed_fields.is_none();
        if left.is_empty() && !self.actual.as_ref().is_some_and(stripped) {
            ctx.applied().forget(applied.meta());
        } else {
            ctx.applied().note(applied.meta(), &wanted, &left);
        }
        self.actual = Some(Arc::new(applied));
        Ok(())
    }

    fn action(&self, what: What) -> Action {
        Action { kind: self.kind.name().into_owned(), key: ObjectKey::of(&self.wanted), what }
    }
}

impl<K: AnyObject, C: AnyObject> Wanted<K> for Child<C> {
    fn observe(&mut self, ctx: &Context<K>) -> Result<()> {
        let of_kind = ctx.of_kind(&self.kind);
        let cache = of_kind.cache()?;
        self.wanted = of_kind.adopt(self.wanted.clone())?;
        let key = ObjectKey::of(&self.wanted);
        cache.covers(key.namespace.as_deref()).map_err(Error::terminal)?;
        self.actual = cache.get(&key);
        self.decision = self.decide(ctx)?;
        Ok(())
    }

    fn act<'a>(&'a mut self, ctx: &'a Context<K>) -> BoxFuture<'a, Result<Option<Action>>> {
        Box::pin(async move {
            let what = match std::mem::replace(&mut self.decision, Decision::Nothing) {
                Decision::Leave | Decision::Nothing => return Ok(None),
                Decision::Wait => What::Terminating,
                Decision::Create => {
                    self.apply(ctx).await?;
                    What::Created
                }
                Decision::Apply(differences) => {
                    self.apply(ctx).await?;
                    What::Applied(differences)
                }
            };
            let action = self.action(what);
            tracing::debug!(%action, "made a child as wanted");
            Ok(Some(action))
        })
    }

    fn seen(self: Box<Self>) -> SeenObject {
        let key = ObjectKey::of(&self.wanted);
        let meta = self.actual.as_ref().map_or(self.wanted.meta(), |actual| actual.meta());
        let reference = Reference::with(&self.kind.api_version(), &self.kind.name(), meta);
        let object = self.actual.map(|actual| actual as Arc<dyn Any + Send + Sync>);
        SeenObject { kind: self.kind.id(), key, reference, object }
    }
}
