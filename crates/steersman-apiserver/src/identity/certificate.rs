//! What all certificates of a cluster have in common, and why one cannot be made or used.

use rcgen::{CertificateParams, DistinguishedName, DnType, date_time_ymd};

use super::key::KeyError;

/// Why certificates could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The key of service accounts' tokens could not be made.
    #[error("cannot make the key of tokens")]
    SigningKey(#[from] KeyError),
    /// The certificates cannot be used for TLS.
    #[error("cannot use the certificates for tls")]
    Tls(#[from] rustls::Error),
    /// The authority's certificate cannot be read.
    #[error("cannot read the authority's certificate")]
    Authority(#[from] rustls::pki_types::pem::Error),
    /// It is in PEM, but no certificate.
    #[error("the authority's certificate is not one")]
    Unreadable,
    /// Client certificates cannot be verified.
    #[error("cannot verify client certificates")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// What all certificates have in common. They outlive every cluster, whatever its clock says.
pub(crate) fn params(common_name: &str, names: &[String]) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
    Ok(params)
}
