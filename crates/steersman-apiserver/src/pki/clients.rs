//! Who vouches for clients.
//!
//! As in Kubernetes, a client may show any certificate when it connects: it only has to have the
//! key. What the certificate is worth is found out for its requests ([`crate::authn`]), since one
//! that nobody vouches for is an answer, 401, and no broken connection.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use super::PkiError;

/// Authorities that vouch for client certificates. Clones share them.
#[derive(Clone, Debug)]
pub struct ClientAuthorities(Arc<dyn ClientCertVerifier>);

impl ClientAuthorities {
    /// Reads authorities in PEM; there must be one at least.
    pub fn from_pem(pem: &[u8]) -> Result<Self, PkiError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate?)?;
        }
        Self::of(roots)
    }

    pub(super) fn of(roots: RootCertStore) -> Result<Self, PkiError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self(builder.allow_unauthenticated().build()?))
    }

    /// Whether they vouch for the first certificate of a chain at this moment: an authority has
    /// signed it, it is neither expired nor yet to come, and it is for clients.
    pub(crate) fn vouch(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Result<(), Error> {
        let (first, rest) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.0.verify_client_cert(first, rest, now).map(drop)
    }

    /// Lets everybody connect; the authorities are only named, so that clients choose.
    pub(super) fn welcome(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(Welcome(Arc::clone(&self.0)))
    }
}

/// Takes any certificate of a client that has its key.
#[derive(Debug)]
struct Welcome(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Welcome {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
