//! Until when a request is kept.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use steersman_rules::signing_request;

/// How long a request is kept after it was denied or failed, or got its certificate.
const ANSWERED: SignedDuration = SignedDuration::from_hours(1);
/// How long one is kept that nobody answers.
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// When a request goes, unless something happens to it before.
pub(super) fn end(request: &CertificateSigningRequest) -> Option<Timestamp> {
    let status = request.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let certificate = status.certificate.map(|pem| pem.0).filter(|pem| !pem.is_empty());
    let after = |time: Timestamp, kept| time.checked_add(kept).ok();
    if conditions.is_empty() {
        return after(request.metadata.creation_timestamp.as_ref()?.0, PENDING);
    }
    let kept = |kind: &str| match kind {
        "Denied" | "Failed" => Some(ANSWERED),
        "Approved" if certificate.is_some() => Some(ANSWERED),
        "Approved" => Some(PENDING),
        _ => None,
    };
    let answered = conditions.iter().filter_map(|condition| {
        after(condition.last_update_time.as_ref()?.0, kept(&condition.type_)?)
    });
    let is_approved = conditions.iter().any(|condition| condition.type_ == "Approved");
    let ended = certificate.as_ref().filter(|_| is_approved);
    answered.chain(ended.and_then(|pem| signing_request::certificate_end(pem))).min()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use k8s_openapi::api::certificates::v1::CertificateSigningRequestCondition;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn what_was_answered_is_kept_for_an_hour_and_what_was_not_for_a_day() {
        let minute = |minute: i64| Timestamp::from_second(60 * minute).unwrap();
        let day = 24 * 60;
        for (conditions, certificate, expected) in [
            (&[][..], "", Some(day)),
            (&[("Denied", 5)], "", Some(65)),
            (&[("Failed", 5)], "", Some(65)),
            (&[("Approved", 5)], "", Some(day + 5)),
            (&[("Approved", 5)], "pem", Some(65)),
            (&[("Approved", 5), ("Failed", 7)], "", Some(67)),
            (&[("Remarked", 5)], "", None),
        ] {
            let mut request = CertificateSigningRequest::default();
            request.metadata.creation_timestamp = Some(Time(minute(0)));
            let status = request.status.get_or_insert_default();
            status.certificate = Some(ByteString(certificate.as_bytes().to_vec()));
            let condition = |(kind, at): &(&str, i64)| CertificateSigningRequestCondition {
                type_: (*kind).into(),
                status: "True".into(),
                last_update_time: Some(Time(minute(*at))),
                ..CertificateSigningRequestCondition::default()
            };
            status.conditions = Some(conditions.iter().map(condition).collect());
            assert_eq!(end(&request), expected.map(minute), "{conditions:?} {certificate}");
        }
    }
}
