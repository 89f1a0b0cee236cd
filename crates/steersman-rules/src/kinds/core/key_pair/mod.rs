//! Whether a certificate and a private key belong together, said in the words of Go's
//! `tls.X509KeyPair`. [`der`] and [`pem`] read what they are written in.
//!
//! What takes arithmetic on curves to know is passed over: a key that does not tell its public part
//! is taken to match.

mod der;
pub(in crate::kinds) mod pem;
#[cfg(test)]
mod tests;

use x509_parser::prelude::{FromDer, X509Certificate};

use self::der::Element;

const CERTIFICATE: &str = "CERTIFICATE";

/// The names of algorithms, as DER has them.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// Why a certificate and a key do not serve as a pair; `None` if they do.
pub(super) fn mistake(certificate: &[u8], key: &[u8]) -> Option<String> {
    match certificate_of(certificate).and_then(|der| Ok((der, key_of(key)?))) {
        Ok((certificate, key)) => mismatch(&certificate, &key).map(str::to_owned),
        Err(why) => Some(why),
    }
}

/// The first certificate of a PEM, in DER.
fn certificate_of(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    for block in pem::blocks(text) {
        if block.label == CERTIFICATE {
            return Ok(block.bytes);
        }
        skipped.push(block.label);
    }
    Err(match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [only] if only.ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private \
             key; PEM inputs may have been switched"
                .to_owned()
        }
        all => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM \
             blocks of the following types: [{}]",
            all.join(" ")
        ),
    })
}

/// The first private key of a PEM, in DER.
fn key_of(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    for block in pem::blocks(text) {
        if block.label == "PRIVATE KEY" || block.label.ends_with(" PRIVATE KEY") {
            return Ok(block.bytes);
        }
        skipped.push(block.label);
    }
    Err(match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [only] if only == CERTIFICATE => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        all => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after \
             skipping PEM blocks of the following types: [{}]",
            all.join(" ")
        ),
    })
}

fn mismatch(certificate: &[u8], key: &[u8]) -> Option<&'static str> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return Some("x509: malformed certificate");
    };
    let Some(private) = private_key(key) else { return Some("tls: failed to parse private key") };
    let Some(public) = public_key(certificate.public_key().raw) else {
        return Some("tls: unknown public key algorithm");
    };
    if private.algorithm != public.algorithm {
        Some("tls: private key type does not match public key type")
    } else if private.public.is_some_and(|own| Some(own) != public.public) {
        Some("tls: private key does not match public key")
    } else {
        None
    }
}

/// A key, as far as it tells which other belongs to it.
struct Key<'a> {
    algorithm: &'static [u8],
    /// The modulus of RSA or the point of a curve, if it is told.
    public: Option<&'a [u8]>,
}

/// The key of a certificate, if it is of an algorithm that serves TLS.
fn public_key(der: &[u8]) -> Option<Key<'_>> {
    let fields = der::sequence(der)?;
    let [algorithm, key] = fields.as_slice() else { return None };
    let algorithm = algorithm_of(algorithm)?;
    let bits = key.bits()?;
    let public = if algorithm == RSA { der::sequence(bits)?.first()?.content } else { bits };
    Some(Key { algorithm, public: Some(public) })
}

/// A private key in one of the forms that there are: of RSA alone, of any algorithm, of curves.
fn private_key(der: &[u8]) -> Option<Key<'_>> {
    let fields = der::sequence(der)?;
    rsa_key(&fields).or_else(|| wrapped_key(&fields)).or_else(|| curve_key(&fields))
}

/// PKCS #1.
fn rsa_key<'a>(fields: &[Element<'a>]) -> Option<Key<'a>> {
    let numbers = fields.iter().take_while(|field| field.tag == der::INTEGER).count();
    let modulus = fields.get(1).filter(|_| numbers >= 9)?;
    Some(Key { algorithm: RSA, public: Some(modulus.content) })
}

/// PKCS #8.
fn wrapped_key<'a>(fields: &[Element<'a>]) -> Option<Key<'a>> {
    let [version, algorithm, key, ..] = fields else { return None };
    if version.tag != der::INTEGER || key.tag != der::OCTETS {
        return None;
    }
    match algorithm_of(algorithm)? {
        RSA => rsa_key(&der::sequence(key.content)?),
        EC => curve_key(&der::sequence(key.content)?),
        algorithm => Some(Key { algorithm, public: None }),
    }
}

/// SEC 1. The point is optional there.
fn curve_key<'a>(fields: &[Element<'a>]) -> Option<Key<'a>> {
    let [version, secret, rest @ ..] = fields else { return None };
    if version.tag != der::INTEGER || secret.tag != der::OCTETS {
        return None;
    }
    let point = rest.iter().find(|field| field.tag == der::SECOND);
    let public = point.and_then(|point| der::element(point.content)?.0.bits());
    Some(Key { algorithm: EC, public })
}

fn algorithm_of(identifier: &Element<'_>) -> Option<&'static [u8]> {
    let name = der::element(identifier.content)?.0.content;
    [RSA, EC, ED25519].into_iter().find(|known| *known == name)
}
