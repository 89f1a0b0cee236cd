//! The signing controller: a CertificateSigningRequest that was approved, and names one of
//! Kubernetes' own signers, gets its certificate, or the condition `Failed` with the reason.
//!
//! Who approves is none of its business. The keys are the [`Authority`]'s.

mod plan;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use steersman::{Context, Controller, Error, Next, Reconciler, Result, clock};

use crate::authority::{Authority, CertificateOf, NoCertificate};

/// How long certificates live, unless somebody says otherwise.
pub(crate) const LIFETIME: Duration = Duration::from_hours(365 * 24);

/// The signing controller, which signs with these keys, for this long at most.
pub(crate) fn controller(authority: Arc<dyn Authority>, lifetime_max: Duration) -> Controller {
    Controller::of::<CertificateSigningRequest>()
        .named("certificatesigningrequest-signing-controller")
        .only(plan::waits_for_signer)
        .reconcile(Signing { authority, lifetime_max })
}

struct Signing {
    authority: Arc<dyn Authority>,
    lifetime_max: Duration,
}

impl Reconciler<CertificateSigningRequest> for Signing {
    async fn reconcile(
        &self,
        request: Arc<CertificateSigningRequest>,
        ctx: Context<CertificateSigningRequest>,
    ) -> Result<Next> {
        let spec = &request.spec;
        let asked = CertificateOf {
            request: &spec.request.0,
            signer_name: &spec.signer_name,
            usages: spec.usages.as_deref().unwrap_or_default(),
            expiration_seconds: spec.expiration_seconds,
            lifetime_max: self.lifetime_max,
        };
        let answered = match self.authority.certify(asked) {
            Ok(certificate) => plan::signed(&request, certificate),
            Err(NoCertificate::OtherSigner) => return Ok(Next::Settled),
            Err(NoCertificate::Refused(why)) => plan::failed(&request, why, clock::now_time()),
            Err(NoCertificate::Failed(why)) => return Err(Error::terminal(why)),
        };
        match ctx.live().update_status(&answered).await {
            Ok(_) => Ok(Next::Settled),
            // It was changed or deleted: the cache will show it.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Next::Settled),
            Err(error) => Err(error),
        }
    }
}
