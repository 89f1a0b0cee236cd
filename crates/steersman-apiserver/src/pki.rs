//! The certificates of a cluster that trusts only itself: the authority is its
//! [`Identity`]'s; one certificate is for the server, one for the administrator, and the
//! kubeconfig is with them.

mod clients;
mod request;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{ExtendedKeyUsagePurpose, Issuer, KeyPair, PublicKeyData};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::sync::Arc;

use crate::identity::{Identity, Issuance, der, params, user};
use crate::user::MASTERS;

pub use crate::identity::PkiError;
pub use clients::ClientAuthorities;
pub use request::{CertificateRequest, SigningError, sign_request};

/// The names by which a server inside the process is always reachable.
const NAMES: &[&str] = &[
    "localhost",
    "127.0.0.1",
    "::1",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The first second of 2020: certificates begin before every cluster.
const BEGINNING: i64 = 1_577_836_800;
const DIGITAL_SIGNATURE: u16 = 1;
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// A certificate with its key, both in PEM.
#[derive(Clone)]
pub struct Certified {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// How [`crate::listen`] speaks TLS, and who vouches for its clients.
#[derive(Debug)]
pub struct ServerTls {
    pub(crate) config: rustls::ServerConfig,
    pub(crate) clients: ClientAuthorities,
}

/// An authority and what it has signed.
pub struct Pki {
    /// The authority's certificate in PEM, which clients trust.
    pub ca: String,
    /// The administrator, of the group `system:masters`.
    pub admin: Certified,
    /// A bearer token that may stand for the administrator.
    pub token: String,
    authority: CertificateDer<'static>,
    identity: Identity,
    server: (CertificateDer<'static>, PrivateKeyDer<'static>),
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pki").finish_non_exhaustive()
    }
}

impl Pki {
    /// Certificates of a cluster that nobody else knows, and nobody will know again.
    pub fn new(names: &[String]) -> Result<Self, PkiError> {
        Self::of(&Identity::new()?, names)
    }

    /// Makes certificates for the administrator and for a server that is also known by these
    /// names and addresses, signed by the authority of a cluster.
    pub fn of(identity: &Identity, names: &[String]) -> Result<Self, PkiError> {
        let authority = CertificateDer::from_pem_slice(identity.ca().as_bytes())?;
        let server = server_certificate(names, &identity.issuer()?)?;
        let admin = client_certificate(identity, "kubernetes-admin", &[MASTERS])?;
        let ca = identity.ca().to_owned();
        let token = identity.token().to_owned();
        Ok(Self { ca, admin, token, authority, identity: identity.clone(), server })
    }

    /// A client certificate for a user and its groups.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Certified, PkiError> {
        client_certificate(&self.identity, user, groups)
    }

    /// How the API server speaks TLS: HTTP/2 or 1.1, client certificates welcome but not
    /// required, and judged only when their clients ask for something.
    pub fn server_tls(&self) -> Result<ServerTls, PkiError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone())?;
        let clients = ClientAuthorities::of(roots)?;
        let config = self.config(clients.welcome())?;
        Ok(ServerTls { config, clients })
    }

    /// How another server speaks TLS with the same certificate: a connection with a client
    /// certificate that the authority has not signed is refused.
    pub fn server_config(&self) -> Result<rustls::ServerConfig, PkiError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone())?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()?;
        self.config(verifier)
    }

    fn config(
        &self,
        verifier: Arc<dyn ClientCertVerifier>,
    ) -> Result<rustls::ServerConfig, PkiError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (certificate, key) = &self.server;
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.clone(), self.authority.clone()], key.clone_key())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// The kubeconfig with which the administrator reaches the server at this URL.
    pub fn kubeconfig(&self, server: &str) -> String {
        let base64 = |pem: &str| STANDARD.encode(pem);
        let ca = base64(&self.ca);
        let certificate = base64(&self.admin.certificate);
        let key = base64(&self.admin.key);
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: steersman\n  cluster:\n    server: {server}\n    certificate-authority-data: {ca}\n\
             users:\n\
             - name: kubernetes-admin\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {key}\n\
             contexts:\n\
             - name: steersman\n  context:\n    cluster: steersman\n    user: kubernetes-admin\n    namespace: default\n\
             current-context: steersman\n"
        )
    }
}

fn server_certificate(
    names: &[String],
    issuer: &Issuer<'static, KeyPair>,
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), PkiError> {
    let mut all: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
    all.extend(names.iter().filter(|name| !NAMES.contains(&name.as_str())).cloned());
    let mut params = params("kube-apiserver", &all)?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok((certificate.der().clone(), key))
}

/// A certificate that outlives the cluster, whatever its clock says.
pub(crate) fn client_certificate(
    identity: &Identity,
    name: &str,
    groups: &[&str],
) -> Result<Certified, PkiError> {
    let key = KeyPair::generate()?;
    let issuance = Issuance {
        subject: user(name, groups),
        public_key: &key.subject_public_key_info(),
        alternative_names: Vec::new(),
        key_usage: DIGITAL_SIGNATURE,
        extended_usages: vec![CLIENT_AUTH],
        not_before: Timestamp::from_second(BEGINNING).unwrap_or(Timestamp::UNIX_EPOCH),
        not_after: identity.expires()?,
    };
    let certificate = pem("CERTIFICATE", &identity.issue(&issuance)?);
    Ok(Certified { certificate, key: elliptic(&key) })
}

/// A key in PEM as Go's programs write those of elliptic curves (SEC 1). In the other form it does not
/// say what it is, and widespread clients in Java then take it for one of RSA.
fn elliptic(key: &KeyPair) -> String {
    /// How the inner part of PKCS #8 begins: its version, and that a secret of 32 bytes follows.
    const SECRET: [u8; 5] = [0x02, 0x01, 0x01, 0x04, 0x20];
    const PRIME256V1: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    let pkcs8 = key.serialize_der();
    let begins = pkcs8.windows(SECRET.len()).position(|window| window == SECRET);
    let secret = begins.and_then(|at| pkcs8.get(at + SECRET.len()..)?.get(..32));
    let Some(secret) = secret else { return key.serialize_pem() };
    let curve = der::choice(0, true, &der::oid(&PRIME256V1));
    let public = der::choice(1, true, &der::bits(key.public_key_raw()));
    let parts: [&[u8]; 4] = [&der::integer(&[1]), &der::octets(secret), &curve, &public];
    pem("EC PRIVATE KEY", &der::sequence(&parts))
}

/// Bytes in PEM.
fn pem(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).filter_map(|line| str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `openssl` and Go read this form; whether it is the same key, rustls says, which signs with it.
    #[test]
    fn a_key_says_that_it_is_of_an_elliptic_curve() {
        let key = KeyPair::generate().unwrap();
        let text = elliptic(&key);
        assert!(text.starts_with("-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEI"), "{text}");
        let read = PrivateKeyDer::from_pem_slice(text.as_bytes()).unwrap();
        assert!(matches!(read, PrivateKeyDer::Sec1(_)));
        let signing = rustls::crypto::ring::sign::any_supported_type(&read).unwrap();
        let public = signing.public_key().unwrap();
        assert_eq!(&public[..], key.subject_public_key_info());
    }
}
