//! One look at one Pod: starts it, or ends it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use steersman::{Context, Next, Reconciler, Result, clock};

use super::ended::{self, End};
use super::events::Teller;
use super::status::{self, Surroundings};
use super::{Machines, bound_to};
use crate::addresses::{Addresses, Rejection};
use crate::registration::Machine;
use crate::runtime::{ContainerRuntime, Stopping};

/// The index that finds Pods by the node they are bound to.
const NODE_INDEX: &str = "spec.nodeName";

/// Works on the Pods of some machines.
pub(super) struct PodWorker<R> {
    machines: Machines,
    addresses: Arc<Addresses>,
    runtime: Arc<R>,
}

impl<R: ContainerRuntime> PodWorker<R> {
    pub(super) fn new(machines: Machines, addresses: Arc<Addresses>, runtime: Arc<R>) -> Self {
        Self { machines, addresses, runtime }
    }

    async fn run(&self, pod: &Pod, machine: &Machine, ctx: &Context<Pod>) -> Result<Next> {
        let now = clock::now_time();
        let pod_address = match self.address(pod, machine, ctx)? {
            Ok(address) => address,
            Err(rejection) => {
                Teller::new(pod, machine, ctx).rejected(&rejection);
                ctx.status(ended::rejected(pod, &rejection, &now));
                return Ok(Next::Settled);
            }
        };
        let containers = self.runtime.run(pod).await?;
        let around = Surroundings { pod_address, host_address: machine.address(), containers };
        let running = status::running(pod, &around, &now);
        let left = status::time_left(pod, &running, clock::now());
        let teller = Teller::new(pod, machine, ctx);
        if left.is_some_and(|left| left.is_zero()) {
            return self.fail(pod, &teller, ctx).await;
        }
        teller.started();
        ctx.status(running);
        Ok(left.map_or(Next::Settled, Next::After))
    }

    /// Ends a Pod whose time is up.
    async fn fail(&self, pod: &Pod, teller: &Teller<'_>, ctx: &Context<Pod>) -> Result<Next> {
        if let Stopping::Takes(time) = self.runtime.stop(pod).await? {
            return Ok(Next::After(time));
        }
        teller.ended(&End::DeadlineExceeded);
        teller.stopping();
        ctx.status(ended::ended(pod, &End::DeadlineExceeded, &clock::now_time()));
        Ok(Next::Settled)
    }

    /// The Pod's address, if the node has room for it: the node's own if it uses the node's
    /// network.
    fn address(
        &self,
        pod: &Pod,
        machine: &Machine,
        ctx: &Context<Pod>,
    ) -> Result<Result<String, Rejection>> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        if let Some(address) = pod.status.as_ref().and_then(|status| status.pod_ip.clone()) {
            self.addresses.settle(uid); // the Pod itself holds it now
            return Ok(Ok(address));
        }
        let cache = ctx.cache::<Pod>()?;
        cache.add_index(NODE_INDEX, |pod: &Pod| bound_to(pod).map(str::to_owned));
        let mut running = cache.by_index(NODE_INDEX, &machine.name);
        running.retain(|other| !ended::has_ended(other));
        let reserved =
            self.addresses.reserve(pod, machine.pod_addresses(), machine.max_pods(), &running);
        let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        Ok(reserved.map(|address| if on_host { machine.address() } else { address }))
    }

    /// Stops the Pod's containers, says that they have ended, then removes the Pod for good.
    async fn end(&self, pod: &Pod, machine: &Machine, ctx: &Context<Pod>) -> Result<Next> {
        if ended::has_started(pod) && !ended::has_ended(pod) {
            let stopping = self.runtime.stop(pod).await?;
            if !status::is_observed(pod) {
                Teller::new(pod, machine, ctx).stopping();
            }
            ctx.status(match stopping {
                Stopping::Takes(_) => status::observed(pod),
                Stopping::Done => ended::ended(pod, &End::Told, &clock::now_time()),
            });
            return Ok(match stopping {
                Stopping::Takes(time) => Next::After(time),
                Stopping::Done => Next::Settled, // what is written wakes this again
            });
        }
        self.addresses.settle(pod.metadata.uid.as_deref().unwrap_or_default());
        if pod.metadata.deletion_grace_period_seconds == Some(0) {
            return Ok(Next::Settled); // nothing but finalizers keeps it
        }
        let preconditions = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match ctx.delete_with(pod, &params).await {
            Err(error) if error.is_conflict() => Ok(Next::Settled), // another Pod of that name
            deleted => deleted.map(|_| Next::Settled),
        }
    }
}

impl<R: ContainerRuntime> Reconciler<Pod> for PodWorker<R> {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
        let Some(machine) = bound_to(&pod).and_then(|node| self.machines.get(node)) else {
            return Ok(Next::Settled);
        };
        ctx.act_as(&machine.agent)?;
        if pod.metadata.deletion_timestamp.is_some() {
            self.end(&pod, machine, &ctx).await
        } else if ended::has_ended(&pod) {
            self.addresses.settle(pod.metadata.uid.as_deref().unwrap_or_default());
            Ok(Next::Settled)
        } else {
            self.run(&pod, machine, &ctx).await
        }
    }
}
