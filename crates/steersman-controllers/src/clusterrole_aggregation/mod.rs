//! The ClusterRole aggregation controller: a ClusterRole with an aggregation rule has the rules of
//! all ClusterRoles that its selectors match.
//!
//! That is how whoever brings a kind along lets viewers, editors and admins have it, too: with a
//! role that is labelled as part of theirs. Who gathers whom cannot be told from the role that
//! changed, so all that gather are looked at; there are few, and as a rule nothing is to be done.

mod plan;

use std::sync::Arc;

use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::{Context, Controller, Next, Result};

/// The index of the ClusterRoles that gather rules, all under one value.
const GATHERING: &str = "gathering";

/// It applies under its own name.
const NAME: &str = "clusterrole-aggregation-controller";

/// The ClusterRole aggregation controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<ClusterRole>()
        .named(NAME)
        .only(|role| role.aggregation_rule.is_some())
        .index(GATHERING, |role: &ClusterRole| role.aggregation_rule.is_some().then_some(true))
        .watches_indexed(GATHERING, |_: &ClusterRole| [true])
        .concurrency(5)
        .reconcile(reconcile)
}

async fn reconcile(role: Arc<ClusterRole>, ctx: Context<ClusterRole>) -> Result<Next> {
    let all = ctx.cache::<ClusterRole>()?.list();
    if let Some(rules) = plan::gathered(&role, &all)? {
        let metadata = ObjectMeta { name: role.metadata.name.clone(), ..ObjectMeta::default() };
        let applied = ClusterRole { metadata, rules: Some(rules), ..ClusterRole::default() };
        ctx.live().with_field_manager(NAME).apply(&applied).await?;
    }
    Ok(Next::Settled)
}
