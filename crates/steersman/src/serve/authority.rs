//! A certificate authority of one's own: it makes itself, signs certificates for servers, and is
//! kept as two texts in PEM.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::certificate_error::CertificateError;

/// From when until when a certificate counts, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

impl Validity {
    /// Whether less than a third of it is left: time to think of what comes after.
    pub(crate) fn nears_its_end(&self, now: Timestamp) -> bool {
        let whole = self.until.duration_since(self.from);
        self.until.duration_since(now) < whole / 3
    }
}

/// The certificate of an authority: what a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trusted {
    /// In PEM, written in one way, so that equal ones have equal texts.
    pub(crate) pem: String,
    /// The common name of the authority.
    pub(crate) name: String,
    pub(crate) validity: Validity,
}

impl Trusted {
    fn read(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        if !parsed.is_ca() {
            return None;
        }
        let name = parsed.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
        let moment = |seconds| Timestamp::from_second(seconds).ok();
        let validity = Validity {
            from: moment(parsed.validity().not_before.timestamp())?,
            until: moment(parsed.validity().not_after.timestamp())?,
        };
        Some(Self { pem: to_pem(certificate), name: name.unwrap_or_default().into(), validity })
    }

    /// The authorities in a bundle; what is none is left out.
    pub(crate) fn read_all(pem: &[u8]) -> Vec<Self> {
        let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
        certificates.filter_map(|certificate| Self::read(&certificate)).collect()
    }
}

/// An authority that can sign.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) certificate: Trusted,
    /// In PEM.
    pub(crate) key: String,
}

/// A certificate with its key, both in PEM.
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    /// A new one.
    pub(crate) fn make(name: &str, validity: Validity) -> Result<Self, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        last(&mut params, validity);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let certificate = Trusted::read(certificate.der()).ok_or(CertificateError::NoAuthority)?;
        Ok(Self { certificate, key: key.serialize_pem() })
    }

    /// One that was made before. Fails if it cannot sign, or if its key is that of another.
    pub(crate) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let not_pem = |source| CertificateError::Pem { what: "the authority".to_owned(), source };
        let certificate = CertificateDer::from_pem_slice(certificate).map_err(not_pem)?;
        let key = std::str::from_utf8(key).map_err(|_| CertificateError::NoAuthority)?;
        let pair = KeyPair::from_pem(key)?;
        let (_, parsed) =
            X509Certificate::from_der(&certificate).map_err(|_| CertificateError::NoAuthority)?;
        if parsed.public_key().raw != pair.subject_public_key_info() {
            return Err(CertificateError::NoAuthority);
        }
        let certificate = Trusted::read(&certificate).ok_or(CertificateError::NoAuthority)?;
        Ok(Self { certificate, key: key.to_owned() })
    }

    /// A certificate for a server of these names and addresses. It does not outlast the authority.
    pub(crate) fn sign(
        &self,
        hosts: &[String],
        validity: Validity,
    ) -> Result<Signed, CertificateError> {
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "steersman-webhooks");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let until = validity.until.min(self.certificate.validity.until);
        last(&mut params, Validity { until, ..validity });
        let issuer = KeyPair::from_pem(&self.key)?;
        let issuer = Issuer::from_ca_cert_pem(&self.certificate.pem, issuer)?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Signed { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl fmt::Debug for Authority {
    /// Without its key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authority").field(&self.certificate).finish()
    }
}

fn last(params: &mut CertificateParams, validity: Validity) {
    let epoch = date_time_ymd(1970, 1, 1);
    let since = |moment: Timestamp| {
        Duration::from_secs(u64::try_from(moment.as_second()).unwrap_or_default())
    };
    params.not_before = epoch + since(validity.from);
    params.not_after = epoch + since(validity.until);
}

fn to_pem(certificate: &CertificateDer<'_>) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().map(|&byte| char::from(byte)));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validity() -> Validity {
        let moment = |text: &str| text.parse().unwrap();
        Validity { from: moment("2026-01-01T00:00:00Z"), until: moment("2027-01-01T00:00:00Z") }
    }

    #[test]
    fn an_authority_is_read_as_it_was_made() {
        let made = Authority::make("shop-webhook-ca", validity()).unwrap();
        assert_eq!(made.certificate.name, "shop-webhook-ca");
        assert_eq!(made.certificate.validity, validity());
        let read = Authority::read(made.certificate.pem.as_bytes(), made.key.as_bytes()).unwrap();
        assert_eq!(read, made);
        assert!(!format!("{made:?}").contains("PRIVATE"));
    }

    #[test]
    fn a_key_of_another_and_a_certificate_that_may_not_sign_are_refused() {
        let one = Authority::make("one", validity()).unwrap();
        let other = Authority::make("other", validity()).unwrap();
        let mixed = Authority::read(one.certificate.pem.as_bytes(), other.key.as_bytes());
        assert!(matches!(mixed, Err(CertificateError::NoAuthority)));
        let leaf = one.sign(&["a.test".to_owned()], validity()).unwrap();
        let leaf = Authority::read(leaf.certificate.as_bytes(), leaf.key.as_bytes());
        assert!(matches!(leaf, Err(CertificateError::NoAuthority)));
    }

    #[test]
    fn a_bundle_is_read_as_far_as_it_makes_sense() {
        let one = Authority::make("one", validity()).unwrap();
        let leaf = one.sign(&["a.test".to_owned()], validity()).unwrap();
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let bundle = format!("words\n{broken}{}{}", leaf.certificate, one.certificate.pem);
        assert_eq!(Trusted::read_all(bundle.as_bytes()), [one.certificate]);
    }
}
