//! One look at one Node that has no range: gives it one.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use serde_json::json;
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Error, Next, Reconciler, Result};

use super::ranges::Ranges;
use crate::node::name;

/// Who tells of ranges.
const COMPONENT: &str = "cidrAllocator";

/// Gives ranges to nodes.
pub(super) struct Allocator {
    pub(super) ranges: Arc<Mutex<Ranges>>,
}

impl Reconciler<Node> for Allocator {
    async fn reconcile(&self, node: Arc<Node>, ctx: Context<Node>) -> Result<Next> {
        let allocated = self.ranges.lock().unwrap_or_else(PoisonError::into_inner).allocate();
        let Some(cidr) = allocated else {
            tell(&node, &ctx, "CIDRNotAvailable");
            return Err(Error::message(
                "failed to allocate cidr from cluster cidr at idx:0: CIDR allocation failed; there \
                 are no remaining CIDRs left to allocate in the accepted range",
            ));
        };
        let text = cidr.to_string();
        let spec = json!({"podCIDR": text, "podCIDRs": [text]});
        let patch = json!({"metadata": {"uid": node.metadata.uid}, "spec": spec});
        let patched = ctx.patch::<Node, _>(ctx.key(), &Patch::Strategic(patch)).await;
        if patched.is_err() {
            // Nobody knows whether it was written; if it was, the Node says so, and it is taken again.
            self.ranges.lock().unwrap_or_else(PoisonError::into_inner).release(&cidr);
            tell(&node, &ctx, "CIDRAssignmentFailed");
        }
        patched.map(|_| Next::Settled)
    }
}

fn tell(node: &Node, ctx: &Context<Node>, what: &str) {
    let note = format!("Node {} status is now: {what}", name(node));
    let recorder = ctx.recorder().reporting(COMPONENT);
    recorder.event(Reference::of(node), NewEvent::normal(what).note(note));
}
