//! Certificates that were asked for by a CertificateSigningRequest and approved, as Kubernetes'
//! own signers make them: what may be asked of which signer, and what the certificate says.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use steersman_rules::signing_request::{self, SIGNERS, Subject, check};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

use super::{PkiError, pem};
use crate::identity::{Identity, Issuance, der, name};

/// What is asked for is not less than this.
const DURATION_MIN: SignedDuration = SignedDuration::from_mins(10);
/// How long before it is signed a certificate begins, for clocks that are slow.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);
/// A shorter life is not made shorter still by that.
const SHORT: SignedDuration = SignedDuration::from_hours(8);

/// What keys can be for, with the flags of `keyUsage`.
const KEY_USAGES: [(&str, u16); 10] = [
    ("signing", 1),
    ("digital signature", 1),
    ("content commitment", 1 << 1),
    ("key encipherment", 1 << 2),
    ("data encipherment", 1 << 3),
    ("key agreement", 1 << 4),
    ("cert sign", 1 << 5),
    ("crl sign", 1 << 6),
    ("encipher only", 1 << 7),
    ("decipher only", 1 << 8),
];

/// What certificates can be for, in the order in which they say it.
const EXTENDED_USAGES: [(&str, &[u8]); 13] = [
    ("any", &[0x55, 0x1d, 37, 0]),
    ("server auth", &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3]),
    ("netscape sgc", &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

/// What of a subject a certificate takes over, in the order in which it says it: the type of the
/// attribute, and whether there may be several.
const SUBJECT: [(&[u8], bool); 9] = [
    (&[0x55, 4, 6], true),  // country
    (&[0x55, 4, 10], true), // organization
    (&[0x55, 4, 11], true), // organizational unit
    (&[0x55, 4, 7], true),  // locality
    (&[0x55, 4, 8], true),  // province
    (&[0x55, 4, 9], true),  // street address
    (&[0x55, 4, 17], true), // postal code
    (&[0x55, 4, 3], false), // common name
    (&[0x55, 4, 5], false), // serial number
];

/// What a CertificateSigningRequest asks for.
#[derive(Clone, Copy, Debug)]
pub struct CertificateRequest<'a> {
    /// The request in PEM, `spec.request`.
    pub request: &'a [u8],
    /// Who is to sign, `spec.signerName`.
    pub signer_name: &'a str,
    /// What the certificate is to be for, `spec.usages`.
    pub usages: &'a [String],
    /// How long it is to live, `spec.expirationSeconds`.
    pub expiration_seconds: Option<i32>,
    /// How long it lives at most, which is also the default.
    pub lifetime_max: Duration,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// Somebody else is to sign.
    #[error("not a signer of this cluster")]
    OtherSigner,
    /// The signer does not sign such things.
    #[error("{0}")]
    Refused(String),
    /// It is not a request that can be read, or was not made with its key.
    #[error("unable to parse the certificate request: {0}")]
    Malformed(String),
    /// It could not be signed.
    #[error("cannot sign the certificate")]
    Pki(#[from] PkiError),
}

/// Signs what was asked for with the authority of a cluster; gives the certificate in PEM.
pub fn sign_request(
    identity: &Identity,
    asked: CertificateRequest<'_>,
    now: Timestamp,
) -> Result<String, SigningError> {
    if !SIGNERS.contains(&asked.signer_name) {
        return Err(SigningError::OtherSigner);
    }
    let malformed = |why: &dyn std::fmt::Display| SigningError::Malformed(why.to_string());
    let der = signing_request::der(asked.request);
    let der = der.ok_or_else(|| malformed(&"PEM block type must be CERTIFICATE REQUEST"))?;
    let (_, request) = X509CertificationRequest::from_der(&der).map_err(|why| malformed(&why))?;
    let subject = Subject::of(&request);
    check(asked.signer_name, &subject, asked.usages).map_err(SigningError::Refused)?;
    request.verify_signature().map_err(|why| malformed(&why))?;
    let (key_usage, extended_usages) = usages(asked.usages).map_err(SigningError::Refused)?;
    let lifetime = lifetime(asked.expiration_seconds, asked.lifetime_max);
    let expires = identity.expires()?;
    let backdated = if lifetime < SHORT { lifetime } else { lifetime - BACKDATE };
    let issuance = Issuance {
        subject: taken_over(&request.certification_request_info.subject),
        public_key: request.certification_request_info.subject_pki.raw,
        alternative_names: alternative_names(&subject),
        key_usage,
        extended_usages,
        not_before: now.checked_sub(BACKDATE).unwrap_or(now),
        not_after: now.checked_add(backdated).unwrap_or(expires).min(expires),
    };
    Ok(pem("CERTIFICATE", &identity.issue(&issuance)?))
}

/// How long a certificate lives.
fn lifetime(asked: Option<i32>, most: Duration) -> SignedDuration {
    let most = SignedDuration::try_from(most).unwrap_or(SignedDuration::MAX);
    let asked = asked.map(|seconds| SignedDuration::from_secs(seconds.into()));
    asked.map_or(most, |asked| if asked > most { most } else { asked.max(DURATION_MIN) })
}

/// Those of the subject's other names that certificates take over, in DER.
fn alternative_names(subject: &Subject) -> Vec<u8> {
    let names = subject.names.iter();
    names.flat_map(|(tag, content)| der::choice(*tag, false, content)).collect()
}

/// The subject of the certificate: what of the request's is known. A uid, which would be taken for
/// that of the user, is not.
fn taken_over(subject: &X509Name<'_>) -> Vec<u8> {
    let mut attributes: Vec<(&[u8], &str)> = Vec::new();
    for (kind, several) in SUBJECT {
        let of_kind = subject.iter_attributes().filter(|a| a.attr_type().as_bytes() == kind);
        let texts: Vec<&str> = of_kind.filter_map(|attribute| attribute.as_str().ok()).collect();
        let first = if several { 0 } else { texts.len().saturating_sub(1) };
        attributes.extend(texts.into_iter().skip(first).map(|text| (kind, text)));
    }
    name(attributes)
}

/// What the certificate says it is for.
fn usages(asked: &[String]) -> Result<(u16, Vec<&'static [u8]>), String> {
    let is_known = |usage: &&String| {
        KEY_USAGES.iter().any(|(known, _)| known == usage)
            || EXTENDED_USAGES.iter().any(|(known, _)| known == usage)
    };
    let unknown: Vec<String> =
        asked.iter().filter(|usage| !is_known(usage)).map(|usage| format!("{usage:?}")).collect();
    if !unknown.is_empty() {
        return Err(format!("unrecognized usage values: [{}]", unknown.join(" ")));
    }
    let is_asked = |known: &str| asked.iter().any(|usage| usage == known);
    let flags = KEY_USAGES.iter().filter(|(known, _)| is_asked(known));
    let flags = flags.fold(0, |all, (_, flag)| all | flag);
    let extended = EXTENDED_USAGES.iter().filter(|(known, _)| is_asked(known));
    let mut extended: Vec<&'static [u8]> = extended.map(|(_, oid)| *oid).collect();
    extended.dedup();
    Ok((flags, extended))
}
