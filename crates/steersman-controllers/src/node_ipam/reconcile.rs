//! One look at one Node that has no range: gives it one.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use serde_json::json;
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Error, Next, Reconciler, Result};

use super::ranges::Ranges;
use crate::cidr::Cidr;
use crate::node::name;

/// Who tells of ranges.
const COMPONENT: &str = "cidrAllocator";

/// Gives ranges to nodes.
pub(super) struct Allocator {
    pub(super) ranges: Arc<Mutex<Vec<Ranges>>>,
}

impl Reconciler<Node> for Allocator {
    async fn reconcile(&self, node: Arc<Node>, ctx: Context<Node>) -> Result<Next> {
        let cidrs = match self.allocate() {
            Ok(cidrs) => cidrs,
            Err(full) => {
                tell(&node, &ctx, "CIDRNotAvailable");
                return Err(Error::message(format!(
                    "failed to allocate cidr from cluster cidr at idx:{full}: CIDR allocation \
                     failed; there are no remaining CIDRs left to allocate in the accepted range"
                )));
            }
        };
        let texts: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
        let spec = json!({"podCIDR": texts.first(), "podCIDRs": texts});
        let patch = json!({"metadata": {"uid": node.metadata.uid}, "spec": spec});
        let patched = ctx.patch::<Node, _>(ctx.key(), &Patch::Strategic(patch)).await;
        if patched.is_err() {
            // Nobody knows whether it was written; if it was, the Node says so, and it is taken again.
            self.release(&cidrs);
            tell(&node, &ctx, "CIDRAssignmentFailed");
        }
        patched.map(|_| Next::Settled)
    }
}

impl Allocator {
    /// A part of each range; if one has none left, which.
    fn allocate(&self) -> std::result::Result<Vec<Cidr>, usize> {
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let parts: Vec<Option<Cidr>> = ranges.iter_mut().map(Ranges::allocate).collect();
        drop(ranges);
        match parts.iter().position(Option::is_none) {
            None => Ok(parts.into_iter().flatten().collect()),
            Some(full) => {
                self.release(&parts.into_iter().flatten().collect::<Vec<_>>());
                Err(full)
            }
        }
    }

    /// Gives parts back.
    fn release(&self, cidrs: &[Cidr]) {
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        for range in &mut *ranges {
            cidrs.iter().for_each(|cidr| range.release(cidr));
        }
    }
}

fn tell(node: &Node, ctx: &Context<Node>, what: &str) {
    let note = format!("Node {} status is now: {what}", name(node));
    let recorder = ctx.recorder().reporting(COMPONENT);
    recorder.event(Reference::of(node), NewEvent::normal(what).note(note));
}
