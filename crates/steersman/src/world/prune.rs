//! Children that are wanted no longer.

use futures::future::BoxFuture;

use super::seen::{Action, SeenObject, What};
use crate::context::Context;
use crate::error::Result;
use crate::kind::Kind;
use crate::object::{AnyObject, ObjectKey};

/// A kind of which only wanted children are to be, whose type has been forgotten.
pub(super) trait Unwanted<K>: Send + Sync {
    /// Deletes the children that are not among the wanted ones.
    fn delete<'a>(
        &'a self,
        ctx: &'a Context<K>,
        wanted: &'a [SeenObject],
    ) -> BoxFuture<'a, Result<Vec<Action>>>;
}

pub(super) struct Prune<C>(pub(super) Kind<C>);

impl<K: AnyObject, C: AnyObject> Unwanted<K> for Prune<C> {
    fn delete<'a>(
        &'a self,
        ctx: &'a Context<K>,
        wanted: &'a [SeenObject],
    ) -> BoxFuture<'a, Result<Vec<Action>>> {
        Box::pin(async move {
            let id = self.0.id();
            let is_wanted = |child: &C| {
                let key = ObjectKey::of(child);
                wanted.iter().any(|seen| seen.kind == id && seen.key == key)
            };
            let deleted = ctx.of_kind(&self.0).prune(is_wanted).await?;
            let kind = self.0.name();
            let action = |child: &C| Action {
                kind: kind.to_string(),
                key: ObjectKey::of(child),
                what: What::Deleted,
            };
            Ok(deleted.iter().map(|child| action(child)).collect())
        })
    }
}
