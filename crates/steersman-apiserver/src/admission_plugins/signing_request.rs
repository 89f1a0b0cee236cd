//! What certificate signing requests ask for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::prelude::{FromDer, Pem, X509CertificationRequest};

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
    let block = Pem::iter_from_buffer(&pem).flatten().next();
    let block = block.filter(|block| block.label == "CERTIFICATE REQUEST");
    let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let read = X509CertificationRequest::from_der(&block.contents);
    let (_, read) = read.map_err(|_| "asn1: structure error")?;
    let subject = &read.certification_request_info.subject;
    let common_names = subject.iter_common_name().filter_map(|name| name.as_str().ok());
    let organizations = subject.iter_organization().filter_map(|name| name.as_str().ok());
    Ok(Subject {
        common_name: common_names.last().unwrap_or_default().to_owned(),
        organizations: organizations.map(str::to_owned).collect(),
    })
}
