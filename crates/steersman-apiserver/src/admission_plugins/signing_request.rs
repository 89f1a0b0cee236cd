//! What certificate signing requests ask for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use steersman_rules::signing_request;
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509CertificationRequest};

/// Whom a certificate is to be for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// The last one, if there are several.
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
}

/// Whom the certificate of a signing request is to be for, or why that cannot be read.
pub(super) fn subject(request: &Value) -> Result<Subject, String> {
    let encoded = request["spec"]["request"].as_str().unwrap_or_default();
    let pem = STANDARD.decode(encoded).unwrap_or_default();
    let der = signing_request::der(&pem).ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let read = X509CertificationRequest::from_der(&der);
    let (_, read) = read.map_err(|_| "asn1: structure error")?;
    let subject = &read.certification_request_info.subject;
    // A name that cannot be read is not passed over: whoever signs might read it.
    let text = |name: &AttributeTypeAndValue<'_>| match name.as_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err("asn1: structure error".to_owned()),
    };
    let common_names: Vec<String> =
        subject.iter_common_name().map(text).collect::<Result<_, _>>()?;
    Ok(Subject {
        common_name: common_names.into_iter().next_back().unwrap_or_default(),
        organizations: subject.iter_organization().map(text).collect::<Result<_, _>>()?,
    })
}
