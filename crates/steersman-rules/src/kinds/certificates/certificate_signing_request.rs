//! CertificateSigningRequests: what is asked for never changes, what was decided is not taken back.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_values::quoted;
use x509_parser::prelude::{FromDer, X509Certificate, X509CertificationRequest};

use crate::field::FieldError;
use crate::kinds::core::key_pair::pem::{self, Block};
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, set, text};
use crate::signing_request::{self, signature};
use crate::table::cells::{condition, or_none};
use crate::table::{Column, age, duration};

/// What is said of CertificateSigningRequests.
pub(super) const KIND: Kind = Kind {
    plural: "certificatesigningrequests",
    name: "CertificateSigningRequest",
    short_names: &["csr"],
    traits: &[Trait::Approval, Trait::Status],
    selectable_fields: &["spec.signerName"],
    rules: &RULES,
    columns,
    effect: Some(Effect::SigningRequest),
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    status: Some(|| json!({})),
    resets: |subresource| match subresource {
        "status" => &[&["spec"], &["status", "conditions"]],
        "approval" => &[&["spec"], &["status", "certificate"]],
        _ => &[&["spec"], &["status"]],
    },
    keep: |old, new| set(new, "spec", old["spec"].clone()),
    check: |request, old, errors| {
        if old.is_null() {
            check_spec(&request.at("spec"), errors);
        }
    },
    check_status: |request, old, errors| {
        check_conditions(request, old, errors);
        check_certificate(request, old, errors);
        kept(request, old, errors);
    },
    ..Rules::NONE
};

const SIGNER_MAX: usize = 253 + 253 + 63 + 2;
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const EXPIRATION_SECONDS_MIN: i64 = 600;
const DECISIONS: &[&str] = &["Approved", "Denied", "Failed"];
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

fn columns() -> Vec<Column> {
    vec![
        age(),
        Column::field("SignerName", "spec.signerName", "<none>"),
        Column::field("Requestor", "spec.username", ""),
        Column::text("RequestedDuration", |csr, _| {
            let seconds = csr["spec"]["expirationSeconds"].as_i64();
            seconds.map_or(or_none(""), |seconds| duration::human(seconds).into())
        }),
        Column::text("Condition", condition_cell),
    ]
}

fn condition_cell(csr: &Value, _: Timestamp) -> Value {
    let has = |r#type: &str| condition(csr, r#type).is_some();
    let mut shown = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        shown.push_str(",Failed");
    }
    if !text(&csr["status"]["certificate"]).is_empty() {
        shown.push_str(",Issued");
    }
    shown.into()
}

fn check_spec(spec: &At<'_, '_>, errors: &mut Errors) {
    let request = spec.at("request");
    if let Some(why) = unreadable(request.text()) {
        errors.push(request.invalid(&why));
    }
    spec.at("usages").require(errors);
    for usage in spec.each("usages") {
        if !USAGES.contains(&usage.text()) {
            errors.push(usage.not_supported(USAGES));
        }
    }
    let mut seen = HashSet::new();
    for usage in spec.each("usages") {
        if !seen.insert(usage.text()) {
            errors.push(usage.duplicate());
        }
    }
    let signer = spec.at("signerName");
    if signer.text() == LEGACY_SIGNER {
        errors.push(signer.invalid("the legacy signerName is not allowed via this API version"));
    } else {
        signer_name(&signer, errors);
    }
    let seconds = spec.at("expirationSeconds");
    if seconds.is_set() && seconds.number_or_zero() < EXPIRATION_SECONDS_MIN {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(seconds.invalid(detail));
    }
}

/// Why a request is none, or not of who has the key.
fn unreadable(encoded: &str) -> Option<String> {
    match STANDARD.decode(encoded).ok().and_then(|pem| signing_request::der(&pem)) {
        Some(der) => match X509CertificationRequest::from_der(&der) {
            Ok((_, request)) => signature::mistake(&request).map(str::to_owned),
            Err(_) => Some("asn1: structure error".to_owned()),
        },
        None => Some("PEM block type must be CERTIFICATE REQUEST".to_owned()),
    }
}

/// Must be a domain and a path, such as `example.com/signer`.
fn signer_name(signer: &At<'_, '_>, errors: &mut Errors) {
    if !signer.require(errors) {
        return;
    }
    let parts: Vec<&str> = signer.text().split('/').collect();
    let [domain, path] = parts[..] else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.push(signer.invalid(detail));
    };
    if domain.len() > 253 {
        errors.push(FieldError::too_long(signer.path(), 253));
    }
    labels(signer, domain, names::dns1123_label, errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(signer.path(), &Value::from(domain), detail));
    }
    labels(signer, path, names::dns1123_subdomain, errors);
    if signer.text().len() > SIGNER_MAX {
        errors.push(FieldError::too_long(signer.path(), SIGNER_MAX));
    }
}

/// Complains about the first label that breaks the rule.
fn labels(signer: &At<'_, '_>, text: &str, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let bad = text.split('.').find(|label| !rule(label).is_empty());
    for complaint in bad.map(rule).into_iter().flatten() {
        let detail = format!("validating label {:?}: {complaint}", bad.unwrap_or_default());
        errors.push(FieldError::invalid(signer.path(), &Value::from(text), &detail));
    }
}

fn check_conditions(request: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let status = request.at("status");
    let had = |kind: &str| count(old, kind) > 0;
    let had_both = had("Approved") && had("Denied");
    let list = status.at("conditions");
    let mut seen: Vec<String> = Vec::new();
    for condition in status.each("conditions") {
        let kind = condition.at("type");
        let state = condition.at("status");
        kind.require(errors);
        let only = DECISIONS.contains(&kind.text());
        state.requires_one_of(if only { &["True"] } else { &["False", "True", "Unknown"] }, errors);
        let other = match kind.text() {
            "Approved" if !had_both => "Denied",
            "Denied" if !had_both => "Approved",
            _ => "",
        };
        if !other.is_empty() && seen.iter().any(|seen| seen == other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(list.path(), kind.value, detail));
        }
        if seen.iter().any(|seen| seen == kind.text()) {
            errors.push(kind.duplicate());
        }
        seen.push(kind.text().to_owned());
    }
}

/// What was decided stays decided, and what was signed is kept.
fn kept(request: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    for kind in DECISIONS {
        if count(request.value, kind) < count(old, kind) {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden("status.conditions", &detail));
        }
    }
    let before = certificate(old);
    if !before.is_empty() && before != certificate(request.value) {
        let detail = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden("status.certificate", detail));
    }
}

/// How many conditions of a type there are.
fn count(request: &Value, kind: &str) -> usize {
    items(&request["status"]["conditions"]).iter().filter(|c| c["type"] == kind).count()
}

fn check_certificate(request: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let given = certificate(request.value);
    if given == certificate(old) {
        return;
    }
    if let Some(why) = not_certificates(given) {
        let shown = Value::from("<certificate data>");
        errors.push(FieldError::invalid("status.certificate", &shown, &why));
    }
}

fn certificate(request: &Value) -> &str {
    text(&request["status"]["certificate"])
}

/// Why these are no certificates; none at all are fine.
fn not_certificates(encoded: &str) -> Option<String> {
    let given = STANDARD.decode(encoded).unwrap_or_default();
    let blocks = pem::blocks(&given);
    if blocks.is_empty() && !given.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.iter().find_map(no_certificates)
}

/// Why a block does not hold certificates.
fn no_certificates(block: &Block) -> Option<String> {
    if block.label != "CERTIFICATE" {
        let found = quoted(&block.label);
        return Some(format!("only CERTIFICATE PEM blocks are allowed, found {found}"));
    }
    if block.has_headers {
        return Some("no PEM block headers are permitted".to_owned());
    }
    let mut rest = block.bytes.as_slice();
    if rest.is_empty() {
        return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
    }
    while !rest.is_empty() {
        let Ok((after, _)) = X509Certificate::from_der(rest) else {
            return Some("x509: malformed certificate".to_owned());
        };
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_a_certificate_holds_certificates_and_no_more() {
        let block = |label: &str, body: &str| {
            format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n")
        };
        let malformed = "x509: malformed certificate";
        let none = "must contain at least one CERTIFICATE PEM block";
        for (given, expected) in [
            (String::new(), None),
            ("AQID".to_owned(), Some(none)),
            (block("CERTIFICATE", "AQ?D\n"), Some(none)),
            (block("CERTIFICATE", "AQID\n"), Some(malformed)),
            (
                block("CERTIFICATE", ""),
                Some("found CERTIFICATE PEM block containing 0 certificates"),
            ),
            (block("CERTIFICATE", "Name: a\n\nAQID\n"), Some("no PEM block headers are permitted")),
            (
                block("CERTIFICATE REQUEST", "AQID\n") + &block("CERTIFICATE", "AQID\n"),
                Some("only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\""),
            ),
            (block("A", "AQ?D\n") + &block("CERTIFICATE", "AQID\n"), Some(malformed)),
        ] {
            let found = not_certificates(&STANDARD.encode(&given));
            assert_eq!(found.as_deref(), expected, "{given}");
        }
    }
}
