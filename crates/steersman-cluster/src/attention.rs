//! Tells simulated nodes that somebody looks at their Leases or at themselves, so that their
//! hearts need to beat only then.

use std::sync::Weak;

use futures::FutureExt;
use futures::future::BoxFuture;
use steersman_apiserver::on_demand::{Access, Held, OnDemand, Wanted};
use steersman_node::{Heartbeats, Sign};

/// Passes on what the API server is asked for. The nodes may be gone by then.
pub(crate) struct Attention(pub(crate) Weak<Heartbeats>);

impl OnDemand for Attention {
    fn wanted<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Option<Held>> {
        let Some((sign, heartbeats)) = sign(&wanted).zip(self.0.upgrade()) else {
            return std::future::ready(None).boxed();
        };
        async move {
            match wanted.access {
                Access::Read => heartbeats.read(wanted.name).await,
                Access::Write => heartbeats.write(wanted.name).await,
                Access::Watch => {
                    return Some(Box::new(heartbeats.watch(sign, wanted.name).await) as Held);
                }
            }
            None
        }
        .boxed()
    }
}

/// Where heartbeats show among these objects, if they do.
fn sign(wanted: &Wanted<'_>) -> Option<Sign> {
    match (wanted.group, wanted.resource, wanted.namespace) {
        ("coordination.k8s.io", "leases", "" | Heartbeats::LEASE_NAMESPACE) => Some(Sign::Lease),
        ("", "nodes", _) => Some(Sign::Node),
        _ => None,
    }
}
