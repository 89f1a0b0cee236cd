//! The cleaner of CertificateSigningRequests: deletes those that nobody needs any more, an hour after
//! they were answered and a day after they were not, or when their certificate has ended.
//!
//! Kubernetes looks once an hour; here each request goes when its time has come.

mod plan;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{DeleteParams, Preconditions};
use steersman::{Context, Controller, Next, Reconciler, Result, clock};

/// The cleaner.
pub(crate) fn controller() -> Controller {
    Controller::of::<CertificateSigningRequest>()
        .named("certificatesigningrequest-cleaner-controller")
        .reconcile(Cleaner)
}

struct Cleaner;

impl Reconciler<CertificateSigningRequest> for Cleaner {
    async fn reconcile(
        &self,
        request: Arc<CertificateSigningRequest>,
        ctx: Context<CertificateSigningRequest>,
    ) -> Result<Next> {
        let Some(end) = plan::end(&request) else { return Ok(Next::Settled) };
        let left: Duration = end.duration_since(clock::now()).try_into().unwrap_or_default();
        if !left.is_zero() {
            return Ok(Next::After(left));
        }
        let meta = &request.metadata;
        // Whatever was changed since may have given it more time.
        let preconditions = Preconditions {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match ctx.delete_with(&*request, &params).await {
            Ok(_) => Ok(Next::Settled),
            Err(error) if error.is_conflict() => Ok(Next::Settled),
            Err(error) => Err(error),
        }
    }
}
