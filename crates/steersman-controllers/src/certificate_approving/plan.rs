//! Which requests are recognized, whose right to them has to be reviewed, and what they are told.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use steersman_rules::signing_request::{self, Subject};

/// How soon and how late a request is reviewed again that was not approved.
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(1000);

/// A right by which requests approve themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permission {
    /// What one must be allowed to create, below `certificatesigningrequests`.
    pub(super) subresource: &'static str,
    /// What the request is told.
    message: &'static str,
}

const SELF_NODE_CLIENT: Permission = Permission {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
const NODE_CLIENT: Permission = Permission {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

/// Whether nobody has approved or denied a request yet.
pub(super) fn is_undecided(request: &CertificateSigningRequest) -> bool {
    let Some(status) = &request.status else { return true };
    let decided = |condition: &CertificateSigningRequestCondition| {
        ["Approved", "Denied"].contains(&condition.type_.as_str())
    };
    status.certificate.as_ref().is_none_or(|certificate| certificate.0.is_empty())
        && !status.conditions.iter().flatten().any(decided)
}

/// The rights that would do for a request, in the order in which they are tried: those who ask for
/// a node's certificate, and those among them who are that node.
pub(super) fn recognized(
    request: &CertificateSigningRequest,
    subject: &Subject,
) -> Vec<Permission> {
    let spec = &request.spec;
    let usages = spec.usages.as_deref().unwrap_or_default();
    let is_node_client = spec.signer_name == signing_request::KUBELET_CLIENT
        && signing_request::check(&spec.signer_name, subject, usages).is_ok();
    if !is_node_client {
        return Vec::new();
    }
    if spec.username.as_deref() == Some(&subject.common_name) {
        return vec![SELF_NODE_CLIENT, NODE_CLIENT];
    }
    vec![NODE_CLIENT]
}

/// Asks whether the one who made a request has a right.
pub(super) fn review(
    request: &CertificateSigningRequest,
    permission: Permission,
) -> SubjectAccessReview {
    let spec = &request.spec;
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: spec.username.clone(),
            uid: spec.uid.clone(),
            groups: spec.groups.clone(),
            extra: spec.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                group: Some("certificates.k8s.io".into()),
                resource: Some("certificatesigningrequests".into()),
                verb: Some("create".into()),
                subresource: Some(permission.subresource.into()),
                version: Some("*".into()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

/// When to review again a request that was not approved: when it is twice as old, at first.
pub(super) fn again(request: &CertificateSigningRequest, now: Timestamp) -> Duration {
    let created = request.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    age.clamp(AGAIN_MIN, AGAIN_MAX)
}

/// The request, approved.
pub(super) fn approved(
    request: &CertificateSigningRequest,
    permission: Permission,
) -> CertificateSigningRequest {
    let mut request = request.clone();
    let conditions = request.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.push(CertificateSigningRequestCondition {
        type_: "Approved".into(),
        status: "True".into(),
        reason: Some("AutoApproved".into()),
        message: Some(permission.message.into()),
        ..CertificateSigningRequestCondition::default()
    });
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(signer: &str, username: &str, usages: &[&str]) -> CertificateSigningRequest {
        let mut request = CertificateSigningRequest::default();
        request.spec.signer_name = signer.into();
        request.spec.username = Some(username.into());
        request.spec.usages = Some(usages.iter().map(|usage| (*usage).into()).collect());
        request
    }

    #[test]
    fn only_the_client_certificate_of_a_node_is_recognized() {
        let kubelet = signing_request::KUBELET_CLIENT;
        let serving = "kubernetes.io/kubelet-serving";
        let usages = ["digital signature", "client auth"];
        let node = Subject {
            common_name: "system:node:a".into(),
            organizations: vec!["system:nodes".into()],
            ..Subject::default()
        };
        let named = Subject { dns: true, ..node.clone() };
        let jane = Subject { common_name: "jane".into(), ..node.clone() };
        let both = vec![SELF_NODE_CLIENT, NODE_CLIENT];
        for (signer, username, usages, subject, expected) in [
            (kubelet, "system:node:a", &usages[..], &node, both),
            (kubelet, "system:bootstrap:abcdef", &usages, &node, vec![NODE_CLIENT]),
            (kubelet, "system:node:b", &usages, &node, vec![NODE_CLIENT]),
            (kubelet, "system:node:a", &["client auth"], &node, vec![]),
            (kubelet, "system:node:a", &usages, &named, vec![]),
            (kubelet, "jane", &usages, &jane, vec![]),
            (serving, "system:node:a", &usages, &node, vec![]),
        ] {
            let request = request(signer, username, usages);
            assert_eq!(recognized(&request, subject), expected, "{signer} {username} {usages:?}");
        }
    }

    #[test]
    fn what_is_decided_is_left_alone() {
        let open = request(signing_request::KUBELET_CLIENT, "jane", &[]);
        assert!(is_undecided(&open));
        assert!(!is_undecided(&approved(&open, NODE_CLIENT)));
    }
}
