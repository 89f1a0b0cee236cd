//! Certificates for an etcd that wants them.

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority, and a certificate of it that serves both sides: PEM files' content.
#[derive(Clone, Debug)]
pub struct Tls {
    pub ca: String,
    pub certificate: String,
    pub key: String,
}

impl Tls {
    /// Makes both, for this machine.
    pub fn new() -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority_key = KeyPair::generate().unwrap();
        let ca = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = Issuer::new(authority, authority_key);
        let mut both = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        both.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = both.signed_by(&key, &issuer).unwrap().pem();
        Self { ca, certificate, key: key.serialize_pem() }
    }
}
