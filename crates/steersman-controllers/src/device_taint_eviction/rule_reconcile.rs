//! One look at one rule: says in its status what it does to Pods.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1beta2::DeviceTaintRule;
use kube::api::Patch;
use serde_json::json;
use steersman::{Context, Next, ObjectKey, Reconciler, Result, clock};

use super::NAME;
use super::memory::Memory;
use super::plan::{Around, NO_EXECUTE, current, eviction, results, selects};
use super::rule_status::{Census, NO_EFFECT, condition, may_write_at};

/// Tells of rules what they do.
pub(super) struct Reporter {
    pub(super) memory: Memory,
}

impl Reconciler<DeviceTaintRule> for Reporter {
    async fn reconcile(
        &self,
        rule: Arc<DeviceTaintRule>,
        ctx: Context<DeviceTaintRule>,
    ) -> Result<Next> {
        let now = clock::now();
        let (evicted, report_at) = self.memory.done_by(&ctx.key().name);
        let wait_until = |at: Option<Timestamp>| {
            let wait = at.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
            wait.filter(|wait| !wait.is_zero())
        };
        // What is new of the rule itself is told at once, what has come of it after a while.
        let allowed = may_write_at(&rule);
        if let Some(wait) = wait_until(allowed.max(report_at.filter(|_| allowed.is_some()))) {
            return Ok(Next::After(wait));
        }
        let again = wait_until(report_at);
        if again.is_none() {
            self.memory.reported(&ctx.key().name);
        }
        let census = Census { evicted, ..census(&rule, &ctx)? };
        if let Some(condition) = condition(&rule, census, &clock::now_time()) {
            let patch = Patch::Apply(json!({
                "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule",
                "metadata": {"name": rule.metadata.name, "uid": rule.metadata.uid},
                "status": {"conditions": [condition]},
            }));
            let client = ctx.live().with_field_manager(NAME);
            client.patch_status::<DeviceTaintRule, _>(ctx.key().clone(), &patch).await?;
        }
        Ok(again.map_or(Next::Settled, Next::After))
    }
}

/// Counts what a rule does, or would do if it had an effect.
fn census(rule: &Arc<DeviceTaintRule>, ctx: &Context<DeviceTaintRule>) -> Result<Census> {
    let claims = ctx.cache::<ResourceClaim>()?;
    let slices = ctx.cache::<ResourceSlice>()?.list();
    let mut counted = Census::default();
    let acting = match rule.spec.taint.effect.as_str() {
        NO_EXECUTE => Arc::clone(rule),
        NO_EFFECT => {
            let slices = current(&slices);
            let published = slices.iter().flat_map(|slice| {
                let devices = slice.spec.devices.iter().flatten();
                devices.map(|it| [&*slice.spec.driver, &*slice.spec.pool.name, &*it.name])
            });
            counted.devices = published.filter(|device| selects(rule, device)).count();
            let allocated = claims.list();
            let allocated = allocated.iter().flat_map(|claim| results(claim));
            counted.allocated = allocated.filter(|device| selects(rule, *device)).count();
            let mut supposed = DeviceTaintRule::clone(rule);
            supposed.spec.taint.effect = NO_EXECUTE.into();
            Arc::new(supposed)
        }
        _ => return Ok(counted),
    };
    let rules = [acting];
    let mut namespaces = HashSet::new();
    for pod in ctx.cache::<Pod>()?.list() {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let claim = |name: &str| claims.get(&ObjectKey::namespaced(namespace.as_str(), name));
        let around = Around { claim: &claim, slices: &slices, rules: &rules };
        let goes = pod.metadata.deletion_timestamp.is_none()
            && eviction(&pod, &around).is_some_and(|eviction| !eviction.rules.is_empty());
        if goes {
            counted.pods += 1;
            namespaces.insert(namespace);
        }
    }
    counted.namespaces = namespaces.len();
    Ok(counted)
}
