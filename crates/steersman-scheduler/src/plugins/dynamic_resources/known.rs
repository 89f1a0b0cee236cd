//! What is known of a Pod's claims in one attempt.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::allocator::Allocator;
use super::extended::OnNode;
use crate::framework::ClassResources;
use crate::plugins::allocations::allocation;

/// What is known of a Pod's claims; nothing if it has none.
#[derive(Clone, Default)]
pub(super) struct Claims(pub(super) Option<Arc<Known>>);

/// What is known of a Pod's claims in one attempt. What is tried out shares it.
pub(super) struct Known {
    pub(super) claims: Vec<Arc<ResourceClaim>>,
    /// Which of them is for extended resources, if one is: the last.
    pub(super) special: Option<usize>,
    /// The classes of those.
    pub(super) classes: ClassResources,
    /// Finds devices, if a claim has none yet.
    pub(super) allocator: Option<Allocator>,
    pub(super) findings: Mutex<Findings>,
}

#[derive(Default)]
pub(super) struct Findings {
    /// For those claims that have no devices, by node.
    pub(super) by_node: HashMap<String, Found>,
    /// Claims whose devices some node does not reach, or that are not ready in time.
    pub(super) unavailable: BTreeSet<usize>,
    /// What has been taken for the node that was chosen, by claim.
    pub(super) taken: HashMap<usize, AllocationResult>,
    /// What the Pod gets of extended resources there.
    pub(super) special: Option<OnNode>,
    /// Claims as they were when they had been written.
    pub(super) written: HashMap<usize, Arc<ResourceClaim>>,
}

/// What was found for a node.
#[derive(Clone)]
pub(super) struct Found {
    /// By claim.
    pub(super) results: Vec<(usize, AllocationResult)>,
    pub(super) special: Option<OnNode>,
}

/// A claim whose devices a Pod waits for.
pub(super) struct Current {
    pub(super) claim: Arc<ResourceClaim>,
    /// It was just created, so that it may not be seen yet.
    pub(super) is_new: bool,
}

impl Known {
    pub(super) fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The claims as they were read, or written since. One that is only in memory is none.
    pub(super) fn current(&self) -> Vec<Current> {
        let written = &self.findings().written;
        let current = |(place, claim): (usize, &Arc<ResourceClaim>)| {
            let is_new = self.special == Some(place);
            let written = written.get(&place);
            let claim = written.or_else(|| (!is_new).then_some(claim))?;
            Some(Current { claim: Arc::clone(claim), is_new })
        };
        self.claims.iter().enumerate().filter_map(current).collect()
    }

    /// What people have claimed that has no devices yet.
    pub(super) fn unallocated(&self) -> impl Iterator<Item = (usize, &Arc<ResourceClaim>)> {
        let mine = self.claims.iter().enumerate().filter(|(at, _)| self.special != Some(*at));
        mine.filter(|(_, claim)| allocation(claim).is_none())
    }
}
