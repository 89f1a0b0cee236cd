//! Gives one Service its address, or takes it away.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Service;
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Error, Next, ObjectKey, Reconciler, Result};

use super::plan::{FINALIZER, Step, addresses, has_finalizer, plan};
use crate::cidr::Cidr;

/// Who tells of Services.
const COMPONENT: &str = "service-controller";

/// Gives addresses of a pool. Only one Service is looked at at a time.
pub(super) struct Balancer {
    pool: Cidr,
    /// What was given to whom: of what was given a moment ago the cache may not tell yet.
    given: Mutex<HashMap<ObjectKey, IpAddr>>,
}

impl Balancer {
    pub(super) fn new(pool: Cidr) -> Self {
        Self { pool, given: Mutex::default() }
    }

    fn given(&self) -> MutexGuard<'_, HashMap<ObjectKey, IpAddr>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done, with all that others have.
    fn plan(&self, service: &Service, ctx: &Context<Service>) -> Result<Step> {
        let services = ctx.cache::<Service>()?.list();
        let others = services.iter().filter(|other| ObjectKey::of(&**other) != *ctx.key());
        let mut given = self.given();
        // What a Service had that is gone is free.
        given.retain(|key, _| services.iter().any(|service| ObjectKey::of(&**service) == *key));
        let just_given = given.iter().filter(|(key, _)| *key != ctx.key()).map(|(_, ip)| *ip);
        let taken = others.flat_map(|other| addresses(other)).chain(just_given).collect();
        Ok(plan(service, &self.pool, &taken))
    }

    async fn ensure(&self, service: &Service, ip: IpAddr, ctx: &Context<Service>) -> Result<()> {
        tell(ctx, NewEvent::normal("EnsuringLoadBalancer").note("Ensuring load balancer"));
        self.given().insert(ctx.key().clone(), ip);
        // Before there is anything to take away.
        if !has_finalizer(service) {
            let mut finalizers = service.metadata.finalizers.clone().unwrap_or_default();
            finalizers.push(FINALIZER.to_owned());
            patch(service, json!({"metadata": {"finalizers": finalizers}}), ctx).await?;
        }
        tell(ctx, NewEvent::normal("EnsuredLoadBalancer").note("Ensured load balancer"));
        let ingress = json!([{"ip": ip.to_string()}]);
        let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
        ctx.patch_status::<Service, _>(ctx.key(), &Patch::Merge(status)).await.map(drop)
    }

    async fn delete(&self, service: &Service, ctx: &Context<Service>) -> Result<()> {
        tell(ctx, NewEvent::normal("DeletingLoadBalancer").note("Deleting load balancer"));
        self.given().remove(ctx.key());
        let mut finalizers = service.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        let released = json!({
            "metadata": {"finalizers": finalizers},
            "status": {"loadBalancer": {"ingress": null}},
        });
        patch(service, released, ctx).await?;
        tell(ctx, NewEvent::normal("DeletedLoadBalancer").note("Deleted load balancer"));
        Ok(())
    }
}

impl Reconciler<Service> for Balancer {
    async fn reconcile(&self, service: Arc<Service>, ctx: Context<Service>) -> Result<Next> {
        let done = match self.plan(&service, &ctx)? {
            Step::Settled => Ok(()),
            Step::Ensure(ip) => self.ensure(&service, ip, &ctx).await,
            Step::Delete => self.delete(&service, &ctx).await,
            Step::Fail(why) => Err(Error::message(why)),
        };
        match done {
            Ok(()) => Ok(Next::Settled),
            Err(error) if error.is_not_found() => Ok(Next::Settled),
            Err(error) => {
                let note = format!("Error syncing load balancer: {error}");
                tell(&ctx, NewEvent::warning("SyncLoadBalancerFailed").note(note));
                Err(error)
            }
        }
    }
}

/// Patches a Service through its status, which is all that this controller may, unless somebody has
/// changed it meanwhile: the finalizers of others must stay.
async fn patch(service: &Service, mut change: Value, ctx: &Context<Service>) -> Result<()> {
    change["metadata"]["resourceVersion"] = json!(service.metadata.resource_version);
    ctx.patch_status::<Service, _>(ctx.key(), &Patch::Merge(change)).await.map(drop)
}

/// Records an Event about the Service, in the name that Kubernetes gives there.
fn tell(ctx: &Context<Service>, event: NewEvent) {
    let recorder = ctx.recorder().reporting(COMPONENT);
    recorder.event(Reference::of(&**ctx.object()), event.action("Sync"));
}
