//! The cleaner of legacy tokens: a token that Kubernetes once made by itself for a ServiceAccount,
//! and that nobody has used for a year, is marked as invalid; a year later it is deleted.
//!
//! Which tokens those are, their account tells: it lists their Secrets. Tokens that a person asked
//! for, and those that Pods mount, stay. When they were used last, the API server notes on the
//! Secrets; since when it does, in a ConfigMap of `kube-system`.

mod plan;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::json;
use steersman::{Context, Controller, Next, ObjectKey, Reconciler, Result, clock};

use plan::{INVALID_SINCE, LOOK_INTERVAL, Verdict};

/// Where the API server tells since when it notes which tokens are used.
const TRACKING: (&str, &str) =
    ("kube-system", "kube-apiserver-legacy-service-account-token-tracking");

/// The cleaner.
pub(crate) fn controller() -> Controller {
    Controller::of::<Secret>()
        .named("legacy-serviceaccount-token-cleaner-controller")
        .only(plan::is_token)
        .reads::<ServiceAccount>()
        .reads::<Pod>()
        .reconcile(Cleaner)
}

struct Cleaner;

impl Reconciler<Secret> for Cleaner {
    async fn reconcile(&self, secret: Arc<Secret>, ctx: Context<Secret>) -> Result<Next> {
        let now = clock::now();
        let Some(unused) = plan::unused_since_a_year(&secret) else { return Ok(Next::Settled) };
        if let Some(wait) = until(unused, now) {
            return Ok(wait);
        }
        let tracking = ObjectKey::namespaced(TRACKING.0, TRACKING.1);
        let map: Option<ConfigMap> = ctx.live().get(tracking).await?;
        let Some(tracked) = map.as_ref().and_then(plan::tracked_for_a_year) else {
            return Ok(Next::After(LOOK_INTERVAL)); // nobody knows what is used
        };
        if let Some(wait) = until(tracked, now) {
            return Ok(wait);
        }
        if !is_generated(&secret, &ctx)? || is_mounted(&secret, &ctx)? {
            return Ok(Next::After(LOOK_INTERVAL));
        }
        match plan::judge(&secret, now) {
            Verdict::Mark(day) => mark(&secret, &day, &ctx).await,
            Verdict::Wait(end) => Ok(until(end, now).unwrap_or(Next::After(LOOK_INTERVAL))),
            Verdict::Delete => delete(&secret, &ctx).await,
        }
    }
}

/// When to look again, if that moment is still to come.
fn until(end: Timestamp, now: Timestamp) -> Option<Next> {
    let left: Duration = end.duration_since(now).try_into().ok()?;
    (!left.is_zero()).then_some(Next::After(left))
}

/// Whether the account of a token lists its Secret: then nobody asked for it.
fn is_generated(secret: &Secret, ctx: &Context<Secret>) -> Result<bool> {
    let Some(account) = plan::account_of(secret) else { return Ok(false) };
    let account = ctx.cache::<ServiceAccount>()?.get(&account);
    Ok(account.is_some_and(|account| plan::lists(&account, secret)))
}

fn is_mounted(secret: &Secret, ctx: &Context<Secret>) -> Result<bool> {
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    let pods = ctx.cache::<Pod>()?.list_namespace(namespace);
    Ok(pods.iter().any(|pod| plan::mounts(pod, secret)))
}

async fn mark(secret: &Secret, day: &str, ctx: &Context<Secret>) -> Result<Next> {
    let meta = &secret.metadata;
    let patch = json!({"metadata": {"uid": meta.uid, "labels": {INVALID_SINCE: day}}});
    match ctx.live().patch::<Secret, _>(ObjectKey::of(secret), &Patch::Merge(patch)).await {
        Ok(_) => Ok(Next::Settled),
        // It is gone or another one: the cache will show it.
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(Next::Settled),
        Err(error) => Err(error),
    }
}

/// Deletes exactly what was seen: the API server notes a use on the Secret.
async fn delete(secret: &Secret, ctx: &Context<Secret>) -> Result<Next> {
    let resource_version = secret.metadata.resource_version.clone();
    let preconditions = Preconditions { uid: None, resource_version };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match ctx.live().delete::<Secret>(ObjectKey::of(secret), &params).await {
        Ok(_) => Ok(Next::Settled),
        Err(error) if error.is_conflict() => Ok(Next::Settled),
        Err(error) => Err(error),
    }
}
