//! Who changes an object, in which order: policies, then webhooks; and if any of them did, plug-ins
//! look again, and those policies and webhooks that wish so.

use serde_json::Value;

use super::request::Request;
use super::{dispatch, policy_mutation};
use crate::admission_policies::Candidates;
use crate::admission_registration::Operation;
use crate::status::Result;

/// Whether anybody but plug-ins may change the object of a request.
pub(super) fn anybody(request: &Request<'_>) -> bool {
    webhooks(request) || policies(request)
}

fn webhooks(request: &Request<'_>) -> bool {
    request.hooks.as_ref().is_some_and(|hooks| !hooks.mutating.is_empty())
}

/// There is nothing to change of what is deleted, so that policies are not asked.
fn policies(request: &Request<'_>) -> bool {
    request.operation != Operation::Delete
        && request.policies.as_ref().is_some_and(Candidates::mutate)
}

/// Lets policies and webhooks change an object. Says whether anything changed.
pub(super) async fn mutate(
    request: &Request<'_>,
    object: &mut Option<Value>,
    old: Option<&Value>,
) -> Result<bool> {
    let candidates = request.policies.as_ref().filter(|_| policies(request));
    let mut policies = candidates.map(policy_mutation::Mutating::new);
    let hooks = request.hooks.as_ref().filter(|_| webhooks(request));
    let mut webhooks = hooks.map(|hooks| dispatch::Mutating::new(hooks));
    let mut changed = false;
    for round in 0..2 {
        if round == 1 {
            let Some(object) = object.as_mut().filter(|_| changed) else { break };
            request.admit(object, old).await?;
        }
        if let Some(policies) = &mut policies {
            changed |= policies.apply(round, request, object, old).await?;
        }
        if let Some(webhooks) = &mut webhooks {
            changed |= webhooks.ask(round, request, object, old).await?;
        }
    }
    Ok(changed)
}
