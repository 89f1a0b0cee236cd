//! The key that signs: ECDSA on the curve P-256, so ES256 in the words of JWT.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};

/// What stands before the point of a P-256 key in a `SubjectPublicKeyInfo`.
const SPKI_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Why a key cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The system gave no randomness.
    #[error("cannot make a signing key")]
    Generate,
    /// The bytes are not a key of the right sort.
    #[error("not a pkcs #8 key on the curve p-256: {0}")]
    Rejected(String),
    /// The key does not sign.
    #[error("cannot sign")]
    Sign,
}

/// A key that signs the tokens of service accounts.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
    id: String,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Makes a new key. It must not be guessed, so it does not come from the server's seed.
    pub fn generate() -> Result<Self, KeyError> {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self::from_pkcs8(made.map_err(|_| KeyError::Generate)?.as_ref())
    }

    /// Reads a key that [`SigningKey::to_pkcs8`] has written.
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, KeyError> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &SystemRandom::new());
        let pair = pair.map_err(|error| KeyError::Rejected(error.to_string()))?;
        let spki = [&SPKI_HEAD, pair.public_key().as_ref()].concat();
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, &spki));
        Ok(Self { pair, pkcs8: pkcs8.to_vec(), id })
    }

    /// The key as bytes, to be kept where nobody else reads them.
    pub fn to_pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The name of the key in a token's header.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.pair.sign(&SystemRandom::new(), message);
        Ok(signature.map_err(|_| KeyError::Sign)?.as_ref().to_vec())
    }

    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        public.verify(message, signature).is_ok()
    }

    /// The public half as a JSON Web Key.
    pub(crate) fn to_jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let half =
            |from: usize| URL_SAFE_NO_PAD.encode(point.get(from..from + 32).unwrap_or_default());
        json!({
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": half(1), "y": half(33),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::SigningKey;

    #[test]
    fn a_key_that_is_read_again_is_the_same() {
        let key = SigningKey::generate().unwrap();
        let same = SigningKey::from_pkcs8(key.to_pkcs8()).unwrap();
        let signature = key.sign(b"words").unwrap();
        assert_eq!(key.to_jwk(), same.to_jwk());
        assert!(same.has_signed(b"words", &signature));
        assert!(!same.has_signed(b"other words", &signature));
        assert!(!SigningKey::generate().unwrap().has_signed(b"words", &signature));
        assert!(SigningKey::from_pkcs8(b"nonsense").is_err());
    }
}
