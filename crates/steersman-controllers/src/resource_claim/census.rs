//! How many claims of which sort there are.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::resource::v1::ResourceClaim;
use steersman::ObjectKey;
use steersman::informer::Event;

use super::metrics::{ClaimMetrics, Sort};
use super::{POD_CLAIM_NAME, is_allocated, wants_admin_access};

/// On a claim: the scheduler made it for extended resources.
const EXTENDED: &str = "resource.kubernetes.io/extended-resource-claim";

/// Counts the claims that there are.
pub(super) struct Census {
    sorts: Mutex<HashMap<ObjectKey, Sort>>,
    metrics: ClaimMetrics,
}

impl Census {
    pub(super) fn new(metrics: ClaimMetrics) -> Self {
        Self { sorts: Mutex::default(), metrics }
    }

    /// Takes a change of a claim into account.
    pub(super) fn observe(&self, event: &Event<ResourceClaim>) {
        let item = event.object();
        let is_gone = matches!(event, Event::Deleted { .. });
        let now = item.object().filter(|_| !is_gone).map(|claim| sort(&claim));
        let mut sorts = self.sorts.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match now {
            Some(now) => sorts.insert(item.key().clone(), now),
            None => sorts.remove(item.key()),
        };
        if before != now {
            before.into_iter().for_each(|sort| self.metrics.less(sort));
            now.into_iter().for_each(|sort| self.metrics.more(sort));
        }
    }
}

/// The sort of a claim.
pub(super) fn sort(claim: &ResourceClaim) -> Sort {
    let annotation = |name: &str| {
        claim.metadata.annotations.as_ref().and_then(|all| all.get(name)).map(String::as_str)
    };
    let source = if annotation(EXTENDED) == Some("true") {
        "extended_resource"
    } else if annotation(POD_CLAIM_NAME).is_some_and(|name| !name.is_empty()) {
        "resource_claim_template"
    } else {
        ""
    };
    Sort { is_allocated: is_allocated(claim), has_admin_access: wants_admin_access(claim), source }
}
