//! The edge between workers, which know no types, and the author's code, which is all types.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::cleanup::{Cleanup, ErasedCleanup};
use super::worker::ErasedReconciler;
use super::{Next, Reconciler};
use crate::codec;
use crate::context::{Context, ErasedContext};
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::object::{AnyObject, ErasedObject, downcast_ref};

/// The author's code for objects of one type, as workers call it.
pub(super) struct Typed<K, T> {
    kind: Kind<K>,
    code: Arc<T>,
}

impl<K, T> Typed<K, T> {
    pub(super) fn new(kind: Kind<K>, code: Arc<T>) -> Self {
        Self { kind, code }
    }
}

impl<K: AnyObject, T> Typed<K, T> {
    /// The object that is being reconciled, and its context.
    fn context(&self, ctx: &Arc<ErasedContext>) -> Result<Context<K>> {
        Context::of_erased(ctx, &self.kind)
            .ok_or_else(|| Error::terminal(format!("{} is not of the type of its kind", ctx.key())))
    }
}

impl<K: AnyObject, R: Reconciler<K>> ErasedReconciler for Typed<K, R> {
    fn call(&self, ctx: Arc<ErasedContext>) -> BoxFuture<'_, Result<Next>> {
        // The call itself is inside the future, so that its panics are caught as well.
        Box::pin(async move {
            let ctx = self.context(&ctx)?;
            self.code.reconcile(Arc::clone(ctx.object()), ctx).await
        })
    }

    fn encode(&self, object: &dyn ErasedObject) -> serde_json::Result<Vec<u8>> {
        codec::encode(&downcast_ref::<K>(object))
    }
}

/// A cleanup that is a function or a struct of its own.
pub(super) struct Apart<K, C>(pub(super) Typed<K, C>);

impl<K: AnyObject, C: Cleanup<K>> ErasedCleanup for Apart<K, C> {
    fn call(&self, ctx: Arc<ErasedContext>) -> BoxFuture<'_, Result<Next>> {
        Box::pin(async move {
            let ctx = self.0.context(&ctx)?;
            self.0.code.clean_up(Arc::clone(ctx.object()), ctx).await
        })
    }
}

/// The cleanup that a reconciler has itself.
pub(super) struct OfReconciler<K, R>(pub(super) Typed<K, R>);

impl<K: AnyObject, R: Reconciler<K>> ErasedCleanup for OfReconciler<K, R> {
    fn call(&self, ctx: Arc<ErasedContext>) -> BoxFuture<'_, Result<Next>> {
        Box::pin(async move {
            let ctx = self.0.context(&ctx)?;
            self.0.code.clean_up(Arc::clone(ctx.object()), ctx).await
        })
    }
}
