//! The plug-ins about certificates: `CertificateApproval`, `CertificateSigning` and
//! `CertificateSubjectRestriction`.
//!
//! Who approves or signs must have been allowed to do so for the signer: by the verbs `approve` and
//! `sign` on `signers`, which roles name by the signer's name or by `<domain>/*`. Nobody gets a
//! client certificate of `system:masters` that way.

use futures::future::{self, BoxFuture};
use serde_json::Value;

use super::signing_request;
use crate::admission_registration::Operation;
use crate::authz;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;
use crate::user::MASTERS;

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";

/// The signer of certificates by which clients are known to this server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Lets only those approve requests who may do so for the signer.
pub(super) struct CertificateApproval;

/// Lets only those sign requests who may do so for the signer.
pub(super) struct CertificateSigning;

/// Lets nobody ask for a certificate that may do everything.
pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateApproval {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        is_of(write, Operation::Update, "approval")
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        _new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        let old = old.unwrap_or(&Value::Null);
        Box::pin(future::ready(check(write, "approve", old)))
    }
}

impl Plugin for CertificateSigning {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        is_of(write, Operation::Update, "status")
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        let [new, old] = [new, old].map(|object| object.unwrap_or(&Value::Null));
        let same = |field: &str| said(&new["status"][field]) == said(&old["status"][field]);
        let is_signed = !same("certificate") || !same("conditions");
        Box::pin(future::ready(if is_signed { check(write, "sign", old) } else { Ok(()) }))
    }
}

impl Plugin for CertificateSubjectRestriction {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        is_of(write, Operation::Create, "")
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        let refused = new.and_then(|request| Some((request, refusal(request)?)));
        Box::pin(future::ready(match refused {
            None => Ok(()),
            Some((request, why)) => Err(write.forbidden(request, &why)),
        }))
    }
}

fn is_of(write: &Attributes<'_>, operation: Operation, subresource: &str) -> bool {
    write.operation == operation
        && write.subresource == subresource
        && write.resource.is(GROUP, REQUESTS)
}

/// What a field says; what is empty says nothing.
fn said(value: &Value) -> Option<&Value> {
    let is_empty = value.as_array().is_some_and(Vec::is_empty) || value.as_str() == Some("");
    (!value.is_null() && !is_empty).then_some(value)
}

/// Refuses whoever may not do this for the signer. It counts which one it was: to change it is a
/// mistake, but one that is told later.
fn check(write: Attributes<'_>, verb: &str, old: &Value) -> Result<()> {
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let may = |name: &str| {
        let target = authz::Target::Resource {
            group: GROUP,
            resource: "signers",
            subresource: "",
            namespace: "",
            name,
        };
        write.server.authorizer.allows(&authz::Attributes::new(write.user, verb, target))
    };
    let domain = signer.split('/').next().unwrap_or_default();
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(write.forbidden(old, &why))
}

/// Why nobody may ask for such a certificate.
fn refusal(request: &Value) -> Option<String> {
    if request["spec"]["signerName"] != CLIENT_SIGNER {
        return None;
    }
    match signing_request::subject(request) {
        Err(why) => Some(format!("failed to parse CSR: {why}")),
        Ok(subject) => {
            subject.organizations.iter().any(|group| group == MASTERS).then(|| {
                format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
            })
        }
    }
}
