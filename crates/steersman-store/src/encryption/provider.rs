//! One key of one provider of Kubernetes' `EncryptionConfiguration`.
//!
//! A value that `aesgcm` has written is `k8s:enc:aesgcm:v1:NAME:`, a random nonce of 12 bytes, the
//! ciphertext and a tag of 16 bytes. The key of the store is authenticated with it, so that a value
//! is of no use under another key.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// What every encrypted value begins with; no other does.
pub(super) const ENCRYPTED: &[u8] = b"k8s:enc:";
/// What a value begins with that AES-GCM has encrypted; the name of the key follows.
const AES_GCM: &str = "k8s:enc:aesgcm:v1:";

/// Reads and writes values in one way.
#[derive(Clone)]
pub struct Provider(Way);

#[derive(Clone)]
enum Way {
    /// As they are.
    Identity,
    AesGcm {
        name: String,
        /// What its values begin with.
        prefix: String,
        key: Arc<LessSafeKey>,
    },
}

/// A secret that cannot be a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key of {bytes} bytes cannot be used, only one of 16 or 32")]
pub struct InvalidKey {
    /// How long it is.
    pub bytes: usize,
}

impl Provider {
    /// Stores values as they are.
    pub const IDENTITY: Self = Self(Way::Identity);

    /// AES in Galois/counter mode, with a named key of 16 or 32 bytes. One key must not write more
    /// than four billion values: nonces are random.
    pub fn aes_gcm(name: &str, secret: &[u8]) -> Result<Self, InvalidKey> {
        let bytes = secret.len();
        let algorithm = match bytes {
            16 => &AES_128_GCM,
            32 => &AES_256_GCM,
            _ => return Err(InvalidKey { bytes }),
        };
        let key = UnboundKey::new(algorithm, secret).map_err(|_| InvalidKey { bytes })?;
        let key = Arc::new(LessSafeKey::new(key));
        let prefix = format!("{AES_GCM}{name}:");
        Ok(Self(Way::AesGcm { name: name.to_owned(), prefix, key }))
    }

    /// The value of a key as this provider stores it.
    pub(super) fn seal(&self, key: &str, value: Bytes) -> Result<Bytes, &'static str> {
        match &self.0 {
            Way::Identity => Ok(value),
            Way::AesGcm { prefix, key: secret, .. } => gcm_seal(secret, prefix, key, &value),
        }
    }

    /// What it was before, or why that cannot be told; `None` if another has written it.
    pub(super) fn open(&self, key: &str, value: &Bytes) -> Option<Result<Bytes, String>> {
        match &self.0 {
            Way::Identity => (!value.starts_with(ENCRYPTED)).then(|| Ok(value.clone())),
            Way::AesGcm { name, prefix, key: secret } => {
                let sealed = value.strip_prefix(prefix.as_bytes())?;
                let failed = |reason| format!("aesgcm, key {name:?}: {reason}");
                Some(gcm_open(secret, key, sealed).map_err(failed))
            }
        }
    }

    /// Whether a value begins as this provider's do.
    pub(super) fn has_written(&self, value: &[u8]) -> bool {
        match &self.0 {
            Way::Identity => !value.starts_with(ENCRYPTED),
            Way::AesGcm { prefix, .. } => value.starts_with(prefix.as_bytes()),
        }
    }
}

/// Without the secret.
impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Way::Identity => f.write_str("identity"),
            Way::AesGcm { name, .. } => write!(f, "aesgcm({name})"),
        }
    }
}

fn gcm_seal(
    secret: &LessSafeKey,
    prefix: &str,
    key: &str,
    value: &[u8],
) -> Result<Bytes, &'static str> {
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).map_err(|_| "the system gives no random numbers")?;
    let start = prefix.len() + NONCE_LEN;
    let mut sealed = Vec::with_capacity(start + value.len() + secret.algorithm().tag_len());
    sealed.extend_from_slice(prefix.as_bytes());
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(value);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = secret
        .seal_in_place_separate_tag(nonce, Aad::from(key), &mut sealed[start..])
        .map_err(|_| "the value is too large to be encrypted")?;
    sealed.extend_from_slice(tag.as_ref());
    Ok(sealed.into())
}

fn gcm_open(secret: &LessSafeKey, key: &str, sealed: &[u8]) -> Result<Bytes, &'static str> {
    let (nonce, sealed) = sealed
        .split_first_chunk::<NONCE_LEN>()
        .ok_or("the stored data was shorter than the required size")?;
    let mut value = sealed.to_vec();
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let opened = secret.open_in_place(nonce, Aad::from(key), &mut value);
    let length = opened.map_err(|_| "cipher: message authentication failed")?.len();
    value.truncate(length);
    Ok(value.into())
}

/// Why none of the providers there are reads a value.
pub(super) fn nobody_reads(value: &[u8]) -> String {
    let why = match written_by(value) {
        None => "it is not encrypted, and identity is not among its providers".to_owned(),
        Some((provider, name)) => format!(
            "it is encrypted by {provider} with the key {name:?}, which is not among its providers"
        ),
    };
    format!("no matching prefix found: {why}")
}

/// Provider and key, as an encrypted value names them: `k8s:enc:PROVIDER:VERSION:NAME:`.
fn written_by(value: &[u8]) -> Option<(String, String)> {
    let mut parts = value.strip_prefix(ENCRYPTED)?.splitn(4, |byte| *byte == b':');
    let mut next = || parts.next().map(|part| String::from_utf8_lossy(part).into_owned());
    let provider = next().unwrap_or_default();
    next();
    Some((provider, next().unwrap_or_default()))
}
