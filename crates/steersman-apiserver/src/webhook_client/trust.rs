//! Whom TLS trusts: the authorities of a `caBundle`, the certificates that stand in it themselves,
//! or, without one, what the system trusts.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

/// What a server shows of itself to those whom it calls: a certificate and its key, in PEM.
#[derive(Clone)]
pub(crate) struct ClientIdentity {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl std::fmt::Debug for ClientIdentity {
    /// Without what is secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientIdentity").finish_non_exhaustive()
    }
}

/// Who must vouch for the other side.
#[derive(Debug)]
pub(super) enum Trust {
    /// These authorities, in PEM. Without any it is those of the system.
    Authorities(Vec<u8>),
    /// Nobody: `insecureSkipTLSVerify`.
    Anyone,
}

/// How TLS is spoken with one whom those vouch for who must.
pub(super) fn client_config(
    trust: &Trust,
    identity: Option<&ClientIdentity>,
) -> Result<Arc<rustls::ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Anyone => Arc::new(Unverified(Arc::clone(&provider))),
        Trust::Authorities(none) if none.is_empty() => {
            let system = rustls_platform_verifier::Verifier::new(Arc::clone(&provider));
            Arc::new(system.map_err(|error| error.to_string())?)
        }
        Trust::Authorities(pem) => Arc::new(Bundle::read(pem, &provider)?),
    };
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let Some(ClientIdentity { certificate, key }) = identity else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(|error| format!("unable to load the certificate: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(key);
    let key = key.map_err(|error| format!("unable to load the key: {error}"))?;
    let config = builder.with_client_auth_cert(chain, key);
    config.map(Arc::new).map_err(|error| error.to_string())
}

/// Takes every certificate, if only its holder has the key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// What a `caBundle` holds. As in Go, a server's own certificate may stand in it, without an
/// authority; then it is known, but its name and its time still count.
#[derive(Debug)]
struct Bundle {
    certificates: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl Bundle {
    fn read(pem: &[u8], provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let failed = |error: String| format!("unable to load root certificates: {error}");
        let mut certificates = Vec::new();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| failed(error.to_string()))?;
            roots.add(certificate.clone()).map_err(|error| failed(error.to_string()))?;
            certificates.push(certificate);
        }
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let authorities = builder.build().map_err(|error| failed(error.to_string()))?;
        Ok(Self { certificates, authorities })
    }
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificates.iter().any(|known| **known == **certificate) {
            check_time_and_use(certificate, now)?;
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Whether a certificate is valid now, and for servers.
fn check_time_and_use(certificate: &[u8], now: UnixTime) -> Result<(), Error> {
    let invalid = |why: CertificateError| Error::InvalidCertificate(why);
    let parsed = X509Certificate::from_der(certificate);
    let (_, parsed) = parsed.map_err(|_| invalid(CertificateError::BadEncoding))?;
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let moment = ASN1Time::from_timestamp(seconds);
    let moment = moment.map_err(|_| invalid(CertificateError::BadEncoding))?;
    if moment < parsed.validity().not_before {
        return Err(invalid(CertificateError::NotValidYet));
    }
    if moment > parsed.validity().not_after {
        return Err(invalid(CertificateError::Expired));
    }
    match parsed.extended_key_usage() {
        Ok(Some(usage)) if !usage.value.server_auth && !usage.value.any => {
            Err(invalid(CertificateError::InvalidPurpose))
        }
        _ => Ok(()),
    }
}
