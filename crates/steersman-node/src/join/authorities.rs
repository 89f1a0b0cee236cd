//! Who signs the certificates of a cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The certificates of those who sign for a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorities {
    /// In DER; there is one at least.
    certificates: Vec<Vec<u8>>,
}

/// A text or a list has no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no certificate in it")]
pub struct NoAuthority;

impl Authorities {
    /// Those in a text in PEM.
    pub fn from_pem(pem: &[u8]) -> Result<Self, NoAuthority> {
        let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let read = read.map_err(|_| NoAuthority)?;
        Self::from_der(read.into_iter().map(|certificate| certificate.to_vec()).collect())
    }

    /// These certificates.
    pub fn from_der(certificates: Vec<Vec<u8>>) -> Result<Self, NoAuthority> {
        let are_sound = certificates.iter().all(|one| X509Certificate::from_der(one).is_ok());
        (are_sound && !certificates.is_empty()).then_some(Self { certificates }).ok_or(NoAuthority)
    }

    /// In PEM.
    pub fn pem(&self) -> String {
        let block = |certificate: &Vec<u8>| {
            let text = STANDARD.encode(certificate);
            let lines: Vec<&str> =
                text.as_bytes().chunks(64).filter_map(|line| str::from_utf8(line).ok()).collect();
            let body = lines.join("\n");
            format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
        };
        self.certificates.iter().map(block).collect()
    }

    /// The hashes of their keys, as `--discovery-token-ca-cert-hash` takes them.
    pub fn hashes(&self) -> Vec<String> {
        let hash = |certificate: &Vec<u8>| {
            let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
            let hash = digest(&SHA256, parsed.public_key().raw);
            let text: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            Some(format!("sha256:{text}"))
        };
        self.certificates.iter().filter_map(hash).collect()
    }

    /// As kubeconfigs have it.
    pub(super) fn data(&self) -> String {
        STANDARD.encode(self.pem())
    }

    /// As kubeconfigs have it.
    pub(super) fn from_data(data: &str) -> Result<Self, NoAuthority> {
        Self::from_pem(&STANDARD.decode(data.trim()).map_err(|_| NoAuthority)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_known_by_the_hash_of_their_key() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        let other = rcgen::CertificateParams::default();
        let other = other.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let both = certificate.pem() + &other.pem();
        let authorities = Authorities::from_pem(both.as_bytes()).unwrap();
        let hashes = authorities.hashes();
        assert_eq!(hashes.len(), 2);
        assert_ne!(hashes[0], hashes[1]);
        assert!(hashes[0].starts_with("sha256:") && hashes[0].len() == 7 + 64, "{hashes:?}");
        // The key makes the hash, not the certificate.
        let again = rcgen::CertificateParams::new(["again".to_owned()]).unwrap();
        let again = again.self_signed(&key).unwrap();
        let again = Authorities::from_pem(again.pem().as_bytes()).unwrap();
        assert_eq!(again.hashes()[0], hashes[0]);
        assert_eq!(Authorities::from_pem(authorities.pem().as_bytes()), Ok(authorities.clone()));
        assert_eq!(Authorities::from_data(&authorities.data()), Ok(authorities));
        for nothing in
            ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"]
        {
            assert_eq!(Authorities::from_pem(nothing.as_bytes()), Err(NoAuthority), "{nothing}");
        }
    }
}
