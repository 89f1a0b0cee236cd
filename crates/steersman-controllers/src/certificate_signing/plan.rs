//! Which requests wait for a certificate, and what they are told.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Whether a request is approved, and neither signed nor given up.
pub(super) fn waits_for_signer(request: &CertificateSigningRequest) -> bool {
    let Some(status) = &request.status else { return false };
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let is = |kind: &str| conditions.iter().any(|condition| condition.type_ == kind);
    let failed = |c: &CertificateSigningRequestCondition| c.type_ == "Failed" && c.status == "True";
    let unsigned = status.certificate.as_ref().is_none_or(|certificate| certificate.0.is_empty());
    unsigned && is("Approved") && !is("Denied") && !conditions.iter().any(failed)
}

/// The request with its certificate.
pub(super) fn signed(
    request: &CertificateSigningRequest,
    certificate: String,
) -> CertificateSigningRequest {
    let mut request = request.clone();
    let status = request.status.get_or_insert_default();
    status.certificate = Some(ByteString(certificate.into_bytes()));
    request
}

/// The request with the reason why the signer does not sign it.
pub(super) fn failed(
    request: &CertificateSigningRequest,
    why: String,
    now: Time,
) -> CertificateSigningRequest {
    let mut request = request.clone();
    let conditions = request.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.push(CertificateSigningRequestCondition {
        type_: "Failed".into(),
        status: "True".into(),
        reason: Some("SignerValidationFailure".into()),
        message: Some(why),
        last_update_time: Some(now),
        last_transition_time: None,
    });
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_approved_and_open_waits_for_a_signer() {
        for (conditions, certificate, expected) in [
            (&[][..], "", false),
            (&["Approved"], "", true),
            (&["Approved", "Denied"], "", false),
            (&["Denied"], "", false),
            (&["Approved", "Failed"], "", false),
            (&["Approved"], "pem", false),
        ] {
            let mut request = CertificateSigningRequest::default();
            assert!(!waits_for_signer(&request));
            for kind in conditions {
                request = failed(&request, String::new(), Time(jiff::Timestamp::UNIX_EPOCH));
                let status = request.status.get_or_insert_default();
                let last = status.conditions.get_or_insert_default().last_mut().unwrap();
                last.type_ = (*kind).into();
            }
            let request = signed(&request, certificate.into());
            assert_eq!(waits_for_signer(&request), expected, "{conditions:?} {certificate}");
        }
    }
}
