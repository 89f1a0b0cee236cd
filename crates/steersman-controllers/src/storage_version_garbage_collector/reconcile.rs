//! One look at one StorageVersion: removes what servers said that are gone.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::api::apiserverinternal::v1alpha1::StorageVersion;
use k8s_openapi::api::coordination::v1::Lease;
use kube::core::PartialObjectMeta;
use steersman::{Context, Kind, Next, Reconciler, Result, clock};

use super::plan::{Step, identity, is_identity, servers, step};

/// Collects what servers said that are gone.
pub(super) struct Collector;

impl Reconciler<StorageVersion> for Collector {
    async fn reconcile(
        &self,
        version: Arc<StorageVersion>,
        ctx: Context<StorageVersion>,
    ) -> Result<Next> {
        let leases = ctx.of_kind(&Kind::<Lease>::of().metadata()).cache()?;
        let is_cached = |server: &str| {
            let lease = leases.get(&identity(server));
            lease.is_some_and(|lease: Arc<PartialObjectMeta<Lease>>| is_identity(&lease.metadata))
        };
        // A server may have said that it is there a moment ago: who seems to be gone is asked for.
        let mut there: HashSet<&str> = HashSet::new();
        for server in servers(&version) {
            if is_cached(server) || is_there(server, &ctx).await? {
                there.insert(server);
            }
        }
        match step(&version, |server| there.contains(server), &clock::now_time()) {
            Step::Keep => {}
            Step::Update(left) => drop(ctx.update_status(&*left).await?),
            Step::Delete => {
                ctx.delete(&version).await?;
            }
        }
        Ok(Next::Settled)
    }
}

/// Whether the server's Lease exists. Where Kubernetes takes an error of that request for a no, it is
/// made again here.
async fn is_there(server: &str, ctx: &Context<StorageVersion>) -> Result<bool> {
    let lease: Option<Lease> = ctx.live().get(identity(server)).await?;
    Ok(lease.is_some_and(|lease| is_identity(&lease.metadata)))
}
