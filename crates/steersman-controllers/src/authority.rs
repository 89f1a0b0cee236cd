//! What controllers need the cluster's own keys for, which no client shows.

use std::time::Duration;

/// One who has the keys of a cluster.
pub trait Authority: Send + Sync {
    /// Signs the certificate that an approved request asks for; gives it in PEM.
    fn certify(&self, asked: CertificateOf<'_>) -> Result<String, NoCertificate>;

    /// Signs a token that a Secret is to hold.
    fn sign_token(&self, token: TokenOf<'_>) -> Result<String, String>;
}

/// What a CertificateSigningRequest asks for, by the names of its fields.
#[derive(Clone, Copy, Debug)]
pub struct CertificateOf<'a> {
    /// The request in PEM.
    pub request: &'a [u8],
    /// Who is to sign.
    pub signer_name: &'a str,
    /// What the certificate is to be for.
    pub usages: &'a [String],
    /// How long it is to live.
    pub expiration_seconds: Option<i32>,
    /// How long it lives at most, and if nothing else is asked for.
    pub lifetime_max: Duration,
}

/// Why a request gets no certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCertificate {
    /// Somebody else is to sign.
    OtherSigner,
    /// The signer does not sign such things, which the request is told.
    Refused(String),
    /// It cannot be signed.
    Failed(String),
}

/// Whose a token is, and which Secret is to hold it.
#[derive(Clone, Copy, Debug)]
pub struct TokenOf<'a> {
    /// The namespace of both.
    pub namespace: &'a str,
    /// The name of the Secret.
    pub secret: &'a str,
    /// The name of the ServiceAccount.
    pub account: &'a str,
    /// The uid of the ServiceAccount.
    pub account_uid: &'a str,
}
