//! The approving controller: approves what kubelets ask for to talk to the API server, if the one
//! who asks may have it approved by itself. A SubjectAccessReview tells.
//!
//! Whoever gives a group of bootstrap tokens the right to create
//! `certificatesigningrequests/nodeclient` lets nodes join without anybody's help; every other
//! request waits for a person.

mod plan;

use std::sync::Arc;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use steersman::{Context, Controller, Next, Reconciler, Result, clock};
use steersman_rules::signing_request::Subject;

/// The approving controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<CertificateSigningRequest>()
        .named("certificatesigningrequest-approving-controller")
        .only(plan::is_undecided)
        .reconcile(Approving)
}

struct Approving;

impl Reconciler<CertificateSigningRequest> for Approving {
    async fn reconcile(
        &self,
        request: Arc<CertificateSigningRequest>,
        ctx: Context<CertificateSigningRequest>,
    ) -> Result<Next> {
        let Some(subject) = Subject::of_pem(&request.spec.request.0) else {
            return Ok(Next::Settled);
        };
        let mut tried = Vec::new();
        for permission in plan::recognized(&request, &subject) {
            let review = plan::review(&request, permission);
            let answer: SubjectAccessReview = ctx.live().create(&review).await?;
            if answer.status.is_some_and(|status| status.allowed) {
                return approve(&plan::approved(&request, permission), &ctx).await;
            }
            tried.push(permission.subresource);
        }
        if tried.is_empty() {
            return Ok(Next::Settled);
        }
        tracing::debug!(?tried, "recognized, but subject access review was not approved");
        // Somebody may give the right later, which nothing of the request would tell.
        Ok(Next::After(plan::again(&request, clock::now())))
    }
}

async fn approve(
    approved: &CertificateSigningRequest,
    ctx: &Context<CertificateSigningRequest>,
) -> Result<Next> {
    match ctx.live().replace_subresource("approval", approved).await {
        Ok(_) => Ok(Next::Settled),
        // It was changed or deleted: the cache will show it.
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(Next::Settled),
        Err(error) => Err(error),
    }
}
