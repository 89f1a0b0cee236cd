//! Gives one Service its address, or takes it away.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Error, Next, ObjectKey, Reconciler, Result};

use super::hosts::{Hosts, hosts};
use super::plan::{FINALIZER, Step, about, addresses, has_finalizer, plan, wants};
use crate::cidr::Cidr;

/// Who tells of Services.
const COMPONENT: &str = "service-controller";

/// Gives addresses of a pool. Only one Service is looked at at a time. Clones share what they know.
#[derive(Clone)]
pub(super) struct Balancer {
    pool: Cidr,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// What was given to whom: of what was given a moment ago the cache may not tell yet.
    given: HashMap<ObjectKey, IpAddr>,
    /// The Services that have a load balancer since this process looks after them.
    balanced: HashMap<ObjectKey, Balanced>,
    /// The nodes as they were seen last.
    hosts: Arc<Hosts>,
}

impl Known {
    /// These nodes, shared with all load balancers that have the same.
    fn shared(&mut self, hosts: Hosts) -> Arc<Hosts> {
        if *self.hosts != hosts {
            self.hosts = Arc::new(hosts);
        }
        Arc::clone(&self.hosts)
    }
}

/// A load balancer as it was last brought about.
struct Balanced {
    /// For what of the Service.
    about: Value,
    hosts: Arc<Hosts>,
}

impl Balancer {
    pub(super) fn new(pool: Cidr) -> Self {
        Self { pool, known: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Services that have a load balancer.
    pub(super) fn all(&self) -> Vec<ObjectKey> {
        let mut all: Vec<ObjectKey> = self.known().balanced.keys().cloned().collect();
        all.sort(); // so that a test comes out the same every time
        all
    }

    /// Whether the load balancer of a Service is as it has to be.
    fn is_settled(&self, service: &Service, ctx: &Context<Service>) -> bool {
        let known = self.known();
        known.balanced.get(ctx.key()).is_some_and(|balanced| balanced.about == about(service))
    }

    /// What is to be done, with all that others have.
    fn plan(&self, service: &Service, ctx: &Context<Service>) -> Result<Step> {
        let services = ctx.cache::<Service>()?.list();
        let others = services.iter().filter(|other| ObjectKey::of(&**other) != *ctx.key());
        let mut known = self.known();
        // What a Service had that is gone is free.
        let exist: HashSet<ObjectKey> =
            services.iter().map(|service| ObjectKey::of(&**service)).collect();
        known.given.retain(|key, _| exist.contains(key));
        known.balanced.retain(|key, _| exist.contains(key));
        let just_given = known.given.iter().filter(|(key, _)| *key != ctx.key());
        let just_given = just_given.map(|(_, ip)| *ip);
        let taken = others.flat_map(|other| addresses(other)).chain(just_given).collect();
        Ok(plan(service, &self.pool, &taken))
    }

    /// Begins to bring about what a Service wants, before there is anything to take away.
    async fn begin(&self, service: &Service, ctx: &Context<Service>) -> Result<()> {
        tell(ctx, NewEvent::normal("EnsuringLoadBalancer").note("Ensuring load balancer"));
        if has_finalizer(service) {
            return Ok(());
        }
        let mut finalizers = service.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(FINALIZER.to_owned());
        patch(service, json!({"metadata": {"finalizers": finalizers}}), ctx).await
    }

    async fn ensure(&self, service: &Service, ip: IpAddr, ctx: &Context<Service>) -> Result<()> {
        self.known().given.insert(ctx.key().clone(), ip);
        self.begin(service, ctx).await?;
        let hosts = hosts(&ctx.cache::<Node>()?.list());
        if hosts.is_empty() {
            tell(ctx, without_nodes());
        }
        tell(ctx, NewEvent::normal("EnsuredLoadBalancer").note("Ensured load balancer"));
        if !addresses(service).eq([ip]) {
            let ingress = json!([{"ip": ip.to_string()}]);
            let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
            ctx.patch_status::<Service, _>(ctx.key(), &Patch::Merge(status)).await?;
        }
        let mut known = self.known();
        let balanced = Balanced { about: about(service), hosts: known.shared(hosts) };
        known.balanced.insert(ctx.key().clone(), balanced);
        Ok(())
    }

    /// Tells if a load balancer has other nodes than before.
    fn look_at_hosts(&self, ctx: &Context<Service>) -> Result<()> {
        let hosts = hosts(&ctx.cache::<Node>()?.list());
        let mut known = self.known();
        let hosts = known.shared(hosts);
        let Some(balanced) = known.balanced.get_mut(ctx.key()) else { return Ok(()) };
        if balanced.hosts != hosts {
            let updated = "Updated load balancer with new hosts";
            tell(
                ctx,
                match hosts.is_empty() {
                    true => without_nodes(),
                    false => NewEvent::normal("UpdatedLoadBalancer").note(updated),
                },
            );
            balanced.hosts = hosts;
        }
        Ok(())
    }

    async fn delete(&self, service: &Service, ctx: &Context<Service>) -> Result<()> {
        if addresses(service).next().is_some() {
            tell(ctx, NewEvent::normal("DeletingLoadBalancer").note("Deleting load balancer"));
        }
        {
            let mut known = self.known();
            known.given.remove(ctx.key());
            known.balanced.remove(ctx.key());
        }
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

    async fn carry_out(&self, step: Step, service: &Service, ctx: &Context<Service>) -> Result<()> {
        let held = addresses(service).find(|ip| self.pool.contains(*ip));
        match (step, held) {
            (Step::Ensure(ip), _) => self.ensure(service, ip, ctx).await,
            (Step::Delete, _) => self.delete(service, ctx).await,
            (Step::Fail(why), _) => {
                self.begin(service, ctx).await?;
                Err(Error::message(why))
            }
            (Step::Settled, Some(ip)) if wants(service) && !self.is_settled(service, ctx) => {
                self.ensure(service, ip, ctx).await
            }
            (Step::Settled, _) => self.look_at_hosts(ctx),
        }
    }
}

impl Reconciler<Service> for Balancer {
    async fn reconcile(&self, service: Arc<Service>, ctx: Context<Service>) -> Result<Next> {
        let step = self.plan(&service, &ctx)?;
        match self.carry_out(step, &service, &ctx).await {
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

/// A load balancer has no node to send anything to.
fn without_nodes() -> NewEvent {
    let note = "There are no available nodes for LoadBalancer";
    NewEvent::warning("UnAvailableLoadBalancer").note(note)
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
