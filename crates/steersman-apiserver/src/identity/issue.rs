//! Certificates that the cluster's authority signs for others.

use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::certificate::PkiError;
use super::key::KeyError;
use super::{Identity, der};

const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];

/// What a certificate is to say.
#[derive(Debug)]
pub(crate) struct Issuance<'a> {
    /// Whose it is: a name, in DER.
    pub(crate) subject: Vec<u8>,
    /// The key, as `SubjectPublicKeyInfo`.
    pub(crate) public_key: &'a [u8],
    /// By what other names the subject is known: values in DER.
    pub(crate) alternative_names: Vec<u8>,
    /// What the key is for, as flags of the extension `keyUsage`.
    pub(crate) key_usage: u16,
    /// What the certificate is for: the content of object identifiers.
    pub(crate) extended_usages: Vec<&'static [u8]>,
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

/// A name that has an attribute for each of these, in order: its type, and what it says.
pub(crate) fn name<'a>(attributes: impl IntoIterator<Item = (&'a [u8], &'a str)>) -> Vec<u8> {
    let attribute = |(kind, text): (&[u8], &str)| {
        der::set(&der::sequence(&[&der::oid(kind), &der::text(text)]))
    };
    der::sequence(&[&attributes.into_iter().flat_map(attribute).collect::<Vec<u8>>()])
}

/// The name of a user and its groups.
pub(crate) fn user(name_of_user: &str, groups: &[&str]) -> Vec<u8> {
    let groups = groups.iter().map(|&group| (ORGANIZATION, group));
    name(groups.chain([(COMMON_NAME, name_of_user)]))
}

impl Identity {
    /// Until when the authority itself is good.
    pub(crate) fn expires(&self) -> Result<Timestamp, PkiError> {
        let authority = CertificateDer::from_pem_slice(self.ca.as_bytes())?;
        let (_, authority) =
            X509Certificate::from_der(&authority).map_err(|_| PkiError::Unreadable)?;
        let end = authority.validity().not_after.timestamp();
        Ok(Timestamp::from_second(end).unwrap_or(Timestamp::MAX))
    }

    /// Signs a certificate; gives it in DER.
    pub(crate) fn issue(&self, issuance: &Issuance<'_>) -> Result<Vec<u8>, PkiError> {
        let authority = CertificateDer::from_pem_slice(self.ca.as_bytes())?;
        let (_, authority) =
            X509Certificate::from_der(&authority).map_err(|_| PkiError::Unreadable)?;
        let random = SystemRandom::new();
        let mut serial = [0; 16];
        random.fill(&mut serial).map_err(|_| KeyError::Generate)?;
        // Positive, and no shorter than it looks.
        serial[0] = (serial[0] & 0x3f) | 0x40;
        let algorithm = der::sequence(&[&der::oid(ECDSA_WITH_SHA256)]);
        let validity =
            der::sequence(&[&der::time(issuance.not_before), &der::time(issuance.not_after)]);
        let body = der::sequence(&[
            &der::choice(0, true, &der::integer(&[2])), // version 3
            &der::integer(&serial),
            &algorithm,
            authority.subject().as_raw(),
            &validity,
            &issuance.subject,
            issuance.public_key,
            &der::choice(3, true, &extensions(issuance, &authority)),
        ]);
        let key = PrivatePkcs8KeyDer::from_pem_slice(self.ca_key.as_bytes())?;
        let key = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_ASN1_SIGNING,
            key.secret_pkcs8_der(),
            &random,
        );
        let key = key.map_err(|error| KeyError::Rejected(error.to_string()))?;
        let signature = key.sign(&random, &body).map_err(|_| KeyError::Sign)?;
        Ok(der::sequence(&[&body, &algorithm, &der::bits(signature.as_ref())]))
    }
}

/// What the certificate is for, and that it is no authority's.
fn extensions(issuance: &Issuance<'_>, authority: &X509Certificate<'_>) -> Vec<u8> {
    let mut all = Vec::new();
    if issuance.key_usage != 0 {
        all.extend(extension(KEY_USAGE, true, &der::flags(issuance.key_usage)));
    }
    if !issuance.extended_usages.is_empty() {
        let usages = issuance.extended_usages.iter().flat_map(|usage| der::oid(usage));
        let usages: Vec<u8> = usages.collect();
        all.extend(extension(EXTENDED_KEY_USAGE, false, &der::sequence(&[&usages])));
    }
    all.extend(extension(BASIC_CONSTRAINTS, true, &der::sequence(&[])));
    let key = authority.extensions().iter().find_map(|known| match known.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
        _ => None,
    });
    if let Some(key) = key {
        let key = der::sequence(&[&der::choice(0, false, key)]);
        all.extend(extension(AUTHORITY_KEY, false, &key));
    }
    if !issuance.alternative_names.is_empty() {
        let names = der::sequence(&[&issuance.alternative_names]);
        all.extend(extension(ALTERNATIVE_NAMES, false, &names));
    }
    der::sequence(&[&all])
}

fn extension(kind: &[u8], critical: bool, content: &[u8]) -> Vec<u8> {
    let critical = if critical { der::truth() } else { Vec::new() };
    der::sequence(&[&der::oid(kind), &critical, &der::octets(content)])
}
