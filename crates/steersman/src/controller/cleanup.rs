//! Finalizers: what must be undone before an object may go.
//!
//! A controller with cleanups puts its finalizers on an object before it reconciles it for the
//! first time, so before it does anything that would have to be undone. When the object is being
//! deleted, the cleanups run in place of the reconciler, again and again until they succeed, and
//! each takes its finalizer away. Everything that is to be known stands in the object itself: a
//! controller that restarts goes on where it was. Finalizers are only ever written together with
//! the version they were read in, so those of others are never disturbed.

use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::Next;
use crate::client::{Answer, Pending, names_an_object};
use crate::codec::Codec;
use crate::context::{Context, ErasedContext};
use crate::error::Result;
use crate::object::ErasedObject;

/// Undoes outside of the cluster what reconciles did for an object that is being deleted.
///
/// Every `async fn(Arc<K>, Context<K>) -> Result<()>` is a cleanup, and so is one that returns
/// `Result<Next>`: [`Next::Settled`] says that it is done, [`Next::After`] that it is not yet.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot clean up after `{K}`",
    label = "not a cleanup of `{K}`",
    note = "a cleanup is `async fn(Arc<{K}>, Context<{K}>) -> steersman::Result<()>`, or one that \
            returns `steersman::Result<Next>`, or a struct that implements `Cleanup<{K}>`; its \
            future must be `Send`"
)]
pub trait Cleanup<K>: Send + Sync + 'static {
    /// Cleans up after one object. Called until it succeeds, and perhaps once more after it did:
    /// it must not mind that there is nothing left to do.
    fn clean_up(
        &self,
        object: Arc<K>,
        ctx: Context<K>,
    ) -> impl Future<Output = Result<Next>> + Send;
}

impl<K, F, Fut, N> Cleanup<K> for F
where
    K: Send + Sync + 'static,
    F: Fn(Arc<K>, Context<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<N>> + Send,
    N: Into<Next>,
{
    async fn clean_up(&self, object: Arc<K>, ctx: Context<K>) -> Result<Next> {
        self(object, ctx).await.map(Into::into)
    }
}

impl From<()> for Next {
    /// There is nothing more to do.
    fn from((): ()) -> Self {
        Self::Settled
    }
}

/// The cleanups of a controller.
#[derive(Default)]
pub(super) struct Cleanups(Vec<Finalizer>);

struct Finalizer {
    name: Arc<str>,
    cleanup: Box<dyn ErasedCleanup>,
}

/// A cleanup whose types have been forgotten.
pub(super) trait ErasedCleanup: Send + Sync {
    fn call(&self, ctx: Arc<ErasedContext>) -> BoxFuture<'_, Result<Next>>;
}

/// How an object becomes JSON whose type has been forgotten.
pub(super) type Encode<'a> = dyn Fn(&dyn ErasedObject) -> serde_json::Result<Vec<u8>> + Sync + 'a;

impl Cleanups {
    #[track_caller]
    pub(super) fn add(&mut self, finalizer: &str, cleanup: Box<dyn ErasedCleanup>) {
        if let Err(problem) = check_name(finalizer) {
            panic!("`{finalizer}` cannot be a finalizer: {problem}");
        }
        let is_new = self.0.iter().all(|known| &*known.name != finalizer);
        assert!(is_new, "this controller has two cleanups called `{finalizer}`");
        self.0.push(Finalizer { name: finalizer.into(), cleanup });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object is to be cleaned up after rather than reconciled.
    pub(super) fn concern(&self, meta: &ObjectMeta) -> bool {
        !self.0.is_empty() && meta.deletion_timestamp.is_some()
    }

    /// Puts the finalizers on the object of this context. Gives it back as it is then; `None` if
    /// it is as it should be.
    pub(super) async fn hold(
        &self,
        ctx: &ErasedContext,
        codec: Codec,
    ) -> Result<Option<Arc<dyn ErasedObject>>> {
        let meta = ctx.meta();
        let names: Vec<&str> = self.0.iter().map(|it| &*it.name).collect();
        match with_all(meta, &names) {
            Some(all) => write(ctx, meta, &all).await?.erased(codec).map(Some),
            None => Ok(None),
        }
    }

    /// Cleans up after the object of this context.
    pub(super) async fn run(&self, ctx: &Arc<ErasedContext>, encode: &Encode<'_>) -> Result<Next> {
        for Finalizer { name, cleanup } in &self.0 {
            if !has(ctx.meta(), name) {
                continue; // done before, or never begun
            }
            match cleanup.call(Arc::clone(ctx)).await? {
                Next::Settled => {}
                not_yet => return Ok(not_yet),
            }
            ctx.flush_status(encode).await?; // afterwards there may be nothing to write it to
            release(ctx, name).await?;
            tracing::debug!(finalizer = &**name, "cleaned up");
        }
        Ok(Next::Settled)
    }
}

/// The finalizers of an object together with these, unless it has them all or is being deleted.
fn with_all(meta: &ObjectMeta, names: &[&str]) -> Option<Vec<String>> {
    if meta.deletion_timestamp.is_some() {
        return None;
    }
    let missing = names.iter().filter(|name| !has(meta, name));
    let missing: Vec<String> = missing.map(|name| (*name).to_owned()).collect();
    let present = || meta.finalizers.iter().flatten().cloned();
    (!missing.is_empty()).then(|| present().chain(missing).collect())
}

/// Takes one finalizer away. The cache may not show what others did to the object while the
/// cleanup ran, and cleaning up again because of that would be a waste: the server is asked.
fn release<'a>(ctx: &'a ErasedContext, finalizer: &'a str) -> Pending<'a, ()> {
    Box::pin(async move {
        match remove(ctx, ctx.meta(), finalizer).await {
            Err(error) if error.is_conflict() => {}
            result => return result,
        }
        let now = ctx.own_requests().get(ctx.key().clone()).await?;
        let now = now.map(Answer::metadata).transpose()?;
        match now.filter(|now| now.uid == ctx.meta().uid) {
            Some(now) => remove(ctx, &now, finalizer).await,
            None => Ok(()),
        }
    })
}

/// Takes one finalizer away from an object that is as `meta` says.
async fn remove(ctx: &ErasedContext, meta: &ObjectMeta, finalizer: &str) -> Result<()> {
    if !has(meta, finalizer) {
        return Ok(());
    }
    let all = meta.finalizers.iter().flatten();
    let others: Vec<String> = all.filter(|name| *name != finalizer).cloned().collect();
    match write(ctx, meta, &others).await {
        Err(error) if error.status().is_some_and(names_an_object) => Ok(()), // it is gone
        written => written?.metadata().map(drop),
    }
}

/// Writes the finalizers of the object that has this uid, if it is still as it was read.
fn write<'a>(ctx: &'a ErasedContext, meta: &ObjectMeta, finalizers: &[String]) -> Pending<'a> {
    let patch = json!({"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version,
        "finalizers": finalizers}});
    ctx.own_requests().merge_patch(ctx.key(), patch)
}

fn has(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.iter().flatten().any(|name| name == finalizer)
}

/// What the API server asks of a finalizer's name that is not one of its own.
fn check_name(name: &str) -> Result<(), &'static str> {
    let Some((domain, own)) = name.split_once('/') else {
        return Err("it needs a domain of yours, as in `example.com/name`");
    };
    let is_label = |label: &str| {
        let ends = [label.bytes().next(), label.bytes().next_back()];
        ends.into_iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
            && !label.bytes().any(|byte| byte.is_ascii_uppercase())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if domain.len() > 253 || !domain.split('.').all(is_label) {
        return Err("what stands before the slash is not a domain name in lower case");
    }
    let ends = [own.bytes().next(), own.bytes().next_back()];
    let ends_well = ends.into_iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if own.len() > 63 || !ends_well || !own.bytes().all(allowed) {
        return Err(
            "what stands after the slash must be at most 63 letters, digits, `-`, `_` or `.`, \
             with a letter or digit at both ends",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::Controller;

    #[test]
    fn a_finalizer_is_a_domain_a_slash_and_a_name() {
        for good in ["example.com/a", "a-b.example.com/Some_name.v1", "x/y"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = format!("example.com/{}", "a".repeat(64));
        for bad in
            ["a", "example.com/", "/a", "Example.com/a", "-a.com/b", "a..b/c", "a/b/c", &long]
        {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    async fn nothing(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<()> {
        Ok(())
    }

    #[test]
    #[should_panic(expected = "`cleanup` cannot be a finalizer: it needs a domain of yours")]
    fn a_name_without_a_domain_is_refused_when_the_controller_is_built() {
        let _ = Controller::of::<ConfigMap>().cleanup("cleanup", nothing);
    }

    #[test]
    #[should_panic(expected = "two cleanups called `example.com/a`")]
    fn a_finalizer_has_one_cleanup() {
        let builder = Controller::of::<ConfigMap>().cleanup("example.com/a", nothing);
        let _ = builder.cleanup("example.com/a", nothing);
    }
}
