//! A Pod gets the devices that its claims ask for.
//!
//! Claims are not looked at yet: of a Pod without them it says what Kubernetes does.

use crate::framework::{
    Cycle, Interest, NodeRefusals, Plugin, Points, PostFilter, PreFilter, Refusal,
};

/// Looks after claims for devices.
pub(crate) struct DynamicResources;

/// What is known of a Pod's claims.
#[derive(Clone, Debug, Default)]
struct Claims;

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        "DynamicResources"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::POST_FILTER | Points::SCORE
    }

    fn interests(&self) -> &[Interest] {
        &[]
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        cycle.state.insert(Claims);
        Ok(PreFilter::Skip)
    }

    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        _: &NodeRefusals,
    ) -> Option<Result<PostFilter, Refusal>> {
        Some(Err(match cycle.state.get::<Claims>() {
            // Another plug-in refused the Pod before this one was asked; Kubernetes' words for it.
            None => Refusal::error("not found"),
            Some(Claims) => Refusal::unschedulable("no new claims to deallocate"),
        }))
    }
}
