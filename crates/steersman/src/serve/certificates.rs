//! The certificate that a server shows, and how it changes while the server runs.
//!
//! From files, it is read again whenever they change: secrets are renewed under a running
//! program. Files that are caught in the middle of a change do not match each other; the last
//! good pair stays until they do.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::authority::{Authority, Validity};
use super::certificate_error::CertificateError;

/// When a certificate counts that nobody renews.
const ALWAYS: Validity = Validity {
    from: Timestamp::constant(157_766_400, 0),
    until: Timestamp::constant(67_090_118_400, 0),
};
/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// The certificate that a server shows. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Certificates {
    shown: Arc<Shown>,
    files: Option<Arc<Files>>,
}

/// A certificate that was made for development, and the authority that signed it.
pub struct SelfSigned {
    /// What the server shows.
    pub certificates: Certificates,
    /// The authority's certificate in PEM: what clients must trust.
    pub ca: String,
}

/// Where certificate and key lie.
#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// What the files hold.
#[derive(Clone, PartialEq, Eq)]
struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate for new connections.
struct Shown {
    provider: Arc<CryptoProvider>,
    current: RwLock<Option<(Pem, Arc<CertifiedKey>)>>,
}

impl Certificates {
    /// From files in PEM: the certificate with those between it and its authority, and its key.
    pub fn from_files(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, CertificateError> {
        let files = Files { certificate: certificate.into(), key: key.into() };
        let shown = Shown::default();
        shown.show(files.read()?)?;
        Ok(Self { shown: Arc::new(shown), files: Some(Arc::new(files)) })
    }

    /// From texts in PEM.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let certificates = Self::pending();
        certificates.show(certificate, key)?;
        Ok(certificates)
    }

    /// None yet: connections fail until one is [shown](Self::show).
    pub(crate) fn pending() -> Self {
        Self { shown: Arc::default(), files: None }
    }

    /// Shows another one from now on, given in PEM.
    pub(crate) fn show(&self, certificate: &str, key: &str) -> Result<(), CertificateError> {
        self.shown.show(Pem { certificate: certificate.into(), key: key.into() })?;
        Ok(())
    }

    /// The certificate that new connections are shown, in PEM, with those between it and its
    /// authority; `None` if there is none yet.
    pub fn pem(&self) -> Option<String> {
        let current = self.shown.current.read().unwrap_or_else(PoisonError::into_inner);
        let (pem, _) = current.as_ref()?;
        Some(String::from_utf8_lossy(&pem.certificate).into_owned())
    }

    /// Made now, for these host names and addresses. For development.
    pub fn self_signed(
        hosts: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<SelfSigned, CertificateError> {
        let authority = Authority::make("steersman-development-ca", ALWAYS)?;
        let hosts: Vec<String> = hosts.into_iter().map(Into::into).collect();
        let signed = authority.sign(&hosts, ALWAYS)?;
        let certificates = Self::from_pem(&signed.certificate, &signed.key)?;
        Ok(SelfSigned { certificates, ca: authority.certificate.pem })
    }

    /// How a server speaks TLS with them: HTTP/2 or 1.1.
    pub(super) fn server_config(&self) -> Arc<rustls::ServerConfig> {
        let provider = Arc::clone(&self.shown.provider);
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring offers the default versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.shown) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// Looks at the files from time to time and shows what they hold. Never ends.
    pub(crate) async fn watch(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            match self.reload() {
                Ok(false) => {}
                Ok(true) => tracing::info!("certificate reloaded"),
                Err(error) => {
                    let error = crate::Error::from(error);
                    tracing::warn!(%error, "certificate reload failed; the last one stays");
                }
            }
        }
    }

    /// Shows what the files hold now; tells whether that is something new.
    pub(crate) fn reload(&self) -> Result<bool, CertificateError> {
        match &self.files {
            Some(files) => self.shown.show(files.read()?),
            None => Ok(false),
        }
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.files.as_ref().map(|files| files.certificate.display().to_string());
        f.debug_struct("Certificates").field("file", &file).finish_non_exhaustive()
    }
}

impl Files {
    fn read(&self) -> Result<Pem, CertificateError> {
        Ok(Pem { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::Read { path: path.into(), source })
}

impl Default for Shown {
    fn default() -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Self { provider, current: RwLock::default() }
    }
}

impl Shown {
    /// Shows this from now on; tells whether that is something new.
    fn show(&self, pem: Pem) -> Result<bool, CertificateError> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|(shown, _)| *shown == pem) {
            return Ok(false);
        }
        drop(current);
        let key = Arc::new(pem.certified_key(&self.provider)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some((pem, key));
        Ok(true)
    }
}

impl Pem {
    /// Fails if certificate and key do not belong together.
    fn certified_key(&self, provider: &CryptoProvider) -> Result<CertifiedKey, CertificateError> {
        let not_pem = |what: &str, source| CertificateError::Pem { what: what.into(), source };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| not_pem("the certificate", error))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.map_err(|error| not_pem("the key", error))?;
        Ok(CertifiedKey::from_der(chain, key, provider)?)
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().map(|(_, key)| Arc::clone(key))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}
