//! Who a cluster is: the authority that signs its certificates, the key that signs its service
//! accounts' tokens, the administrator's token.
//!
//! It is kept in the store, made by whoever comes first, so that a restart keeps it and all
//! servers over one store share it: what one has signed, the others know. No resource is stored
//! where it lies, so the API does not show it. [`Pki`](crate::pki::Pki) makes certificates of it,
//! [`crate::token`] tokens.

mod certificate;
pub(crate) mod der;
mod issue;
mod key;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::Rng;
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use steersman_store::{Expected, Store, StoreError, WriteRequest};

use crate::status::Status;

pub use certificate::PkiError;
pub(crate) use certificate::params;
pub(crate) use issue::{Issuance, name, user};
pub use key::{KeyError, SigningKey};

/// Where the identity is. Resources are stored in folders, and this is none.
pub const KEY: &str = "/registry/steersman.dev/identity";

/// Where the authority is that vouches for this cluster's servers before those behind them.
pub(crate) const FRONT_PROXY_KEY: &str = "/registry/steersman.dev/front-proxy";

/// The form in which it is written.
const VERSION: u32 = 1;

/// Why the identity of a cluster cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The store could not be asked, or did not take it.
    #[error("the cluster's identity cannot be read or written")]
    Store(#[from] StoreError),
    /// The store holds something else in its place.
    #[error(
        "{KEY} in the store is not the identity of a cluster: {reason}; restore it from a backup, \
         or delete it to get a new one, with which no certificate and no token given out is good \
         any more"
    )]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// None could be made.
    #[error("cannot make the identity of the cluster")]
    Pki(#[from] PkiError),
    /// The key of tokens cannot be used.
    #[error("cannot use the signing key of the cluster")]
    Key(#[from] KeyError),
}

impl From<IdentityError> for Status {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::Store(error) => error.into(),
            error => Self::internal(&error.to_string()),
        }
    }
}

/// The secrets of a cluster.
#[derive(Clone)]
pub struct Identity {
    /// The authority's certificate in PEM, which clients trust.
    ca: String,
    /// The authority's key in PEM.
    ca_key: String,
    /// The key of tokens, as PKCS #8.
    signing_key: Vec<u8>,
    /// The administrator's.
    token: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// How it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    version: u32,
    certificate: String,
    key: String,
    signing_key: String,
    token: String,
}

impl Identity {
    /// A new one, which nobody knows.
    pub fn new() -> Result<Self, PkiError> {
        let key = KeyPair::generate()?;
        let certificate = authority()?.self_signed(&key)?;
        let signing_key = SigningKey::generate()?.to_pkcs8().to_vec();
        Ok(Self { ca: certificate.pem(), ca_key: key.serialize_pem(), signing_key, token: token() })
    }

    /// The identity of the cluster whose store this is. If it has none yet, it gets one.
    pub async fn of(store: &dyn Store) -> Result<Self, IdentityError> {
        Self::kept_at(store, KEY).await
    }

    /// The one that is kept at a key, made if there is none yet.
    pub(crate) async fn kept_at(store: &dyn Store, key: &str) -> Result<Self, IdentityError> {
        if let Some(found) = Self::find_at(store, key).await? {
            return Ok(found);
        }
        let made = Self::new()?;
        let request = WriteRequest::put(key, made.to_bytes(), Expected::Absent);
        match store.write(request).await {
            Ok(_) => Ok(made),
            // Another was faster, or nobody knows: what is there now is what all go by.
            Err(error @ (StoreError::Conflict { .. } | StoreError::Unknown { .. })) => {
                Ok(Self::find_at(store, key).await?.ok_or(error)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The identity of the cluster whose store this is, if it has one.
    pub(crate) async fn find(store: &dyn Store) -> Result<Option<Self>, IdentityError> {
        Self::find_at(store, KEY).await
    }

    async fn find_at(store: &dyn Store, key: &str) -> Result<Option<Self>, IdentityError> {
        let entry = store.get(key).await?;
        entry.map(|entry| Self::from_bytes(&entry.value)).transpose()
    }

    /// The authority's certificate in PEM, which clients trust.
    pub fn ca(&self) -> &str {
        &self.ca
    }

    /// A bearer token that may stand for the administrator.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The key that signs the tokens of service accounts.
    pub fn signing_key(&self) -> Result<SigningKey, IdentityError> {
        Ok(SigningKey::from_pkcs8(&self.signing_key)?)
    }

    /// Who signs certificates.
    pub(crate) fn issuer(&self) -> Result<Issuer<'static, KeyPair>, PkiError> {
        Ok(Issuer::new(authority()?, KeyPair::from_pem(&self.ca_key)?))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let document = Document {
            version: VERSION,
            certificate: self.ca.clone(),
            key: self.ca_key.clone(),
            signing_key: STANDARD.encode(&self.signing_key),
            token: self.token.clone(),
        };
        serde_json::to_vec(&document).unwrap_or_default()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, IdentityError> {
        let malformed = |reason: String| IdentityError::Malformed { reason };
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
        if document.version != VERSION {
            let reason = format!("it is written in form {}, not {VERSION}", document.version);
            return Err(malformed(reason));
        }
        let Document { certificate: ca, key: ca_key, signing_key, token, .. } = document;
        let signing_key = STANDARD.decode(signing_key);
        let signing_key = signing_key.map_err(|error| malformed(format!("signingKey: {error}")))?;
        let identity = Self { ca, ca_key, signing_key, token };
        identity.check().map_err(malformed)?;
        Ok(identity)
    }

    /// Says what of it cannot be used.
    fn check(&self) -> Result<(), String> {
        let key = KeyPair::from_pem(&self.ca_key).map_err(|error| format!("key: {error}"))?;
        let certificate = CertificateDer::from_pem_slice(self.ca.as_bytes());
        let certificate = certificate.map_err(|error| format!("certificate: {error}"))?;
        let trusted = RootCertStore::empty().add(certificate.clone());
        trusted.map_err(|error| format!("certificate: {error}"))?;
        let public = key.public_key_raw();
        if !certificate.windows(public.len()).any(|part| part == public) {
            return Err("the certificate is not that of the key".to_owned());
        }
        SigningKey::from_pkcs8(&self.signing_key)
            .map_err(|error| format!("signingKey: {error}"))?;
        if self.token.is_empty() {
            return Err("the token is empty".to_owned());
        }
        Ok(())
    }
}

/// What the authority's certificate says. What it has signed names it by this, so a change here
/// would part a stored authority from what is signed with its key.
fn authority() -> Result<CertificateParams, PkiError> {
    let mut params = params("steersman-ca", &[])?;
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.key_usages =
        vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// A secret; it must not be guessed, so it does not come from the seed.
fn token() -> String {
    let mut random = rand::rng();
    format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use steersman_store::memory::MemoryStore;
    use steersman_store::{Expected, Store, WriteRequest};

    use super::{Identity, IdentityError, KEY};
    use crate::pki::Pki;

    #[tokio::test]
    async fn whoever_comes_later_is_who_came_first() {
        let store = MemoryStore::new();
        assert!(Identity::find(&store).await.unwrap().is_none());
        let (one, other) = tokio::join!(Identity::of(&store), Identity::of(&store));
        let one = one.unwrap();
        let other = other.unwrap();
        assert_eq!(one.to_bytes(), other.to_bytes());
        assert_eq!(Identity::of(&store).await.unwrap().to_bytes(), one.to_bytes());
        assert_ne!(Identity::new().unwrap().ca, one.ca);
    }

    #[tokio::test]
    async fn certificates_of_two_servers_come_from_one_authority() {
        let store = MemoryStore::new();
        let one = Pki::of(&Identity::of(&store).await.unwrap(), &[]).unwrap();
        let other = Pki::of(&Identity::of(&store).await.unwrap(), &[]).unwrap();
        assert_eq!((&one.ca, &one.token), (&other.ca, &other.token));
        assert_ne!(one.admin.certificate, other.admin.certificate);
    }

    #[tokio::test]
    async fn an_identity_that_makes_no_sense_is_refused_and_left_alone() {
        let good = serde_json::from_slice(&Identity::new().unwrap().to_bytes()).unwrap();
        let other = serde_json::from_slice(&Identity::new().unwrap().to_bytes()).unwrap();
        let with = |field: &str, value: &Value| {
            let mut changed: Value = Clone::clone(&good);
            changed[field] = value.clone();
            changed.to_string()
        };
        let other: Value = other;
        for (bytes, expected) in [
            ("nonsense".to_owned(), "expected ident"),
            (with("version", &json!(2)), "written in form 2"),
            (with("key", &json!("no key")), "key: "),
            (with("key", &other["key"]), "not that of the key"),
            (with("certificate", &json!("no certificate")), "certificate: "),
            (with("signingKey", &json!("AAAA")), "signingKey: "),
            (with("token", &json!("")), "token is empty"),
        ] {
            let store = MemoryStore::new();
            let request = WriteRequest::put(KEY, bytes.clone(), Expected::Any);
            store.write(request).await.unwrap();
            let error = Identity::of(&store).await.unwrap_err();
            assert!(matches!(error, IdentityError::Malformed { .. }), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(store.get(KEY).await.unwrap().unwrap().value, bytes);
        }
    }
}
