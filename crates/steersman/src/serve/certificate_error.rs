//! What can be wrong with certificates.

use std::path::PathBuf;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What was read is no certificate or no key.
    #[error("{what} is not in PEM format")]
    Pem {
        /// What was read.
        what: String,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not belong together, or cannot be used.
    #[error("the certificate cannot be used with its key")]
    Unusable(#[from] rustls::Error),
    /// A certificate cannot be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    /// What was kept as an authority is none, or its key is that of another.
    #[error("the certificate is not that of an authority, or not that of its key")]
    NoAuthority,
}
