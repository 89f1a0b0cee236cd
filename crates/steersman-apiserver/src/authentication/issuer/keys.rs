//! The public keys of an issuer, and whether one of them has signed a token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use crate::token::jwt::Jwt;

/// The algorithms that tokens may be signed with. Of those that Kubernetes knows, ES512 is not
/// among them: ring does not have its curve.
pub(super) const ALGORITHMS: [&str; 8] =
    ["ES256", "ES384", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"];

/// How many keys of an issuer are looked at.
const KEYS_MAX: usize = 256;

/// The keys of an issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::authentication) struct KeySet(Vec<Key>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    id: String,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// A point, uncompressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// A JSON Web Key, as far as it matters.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct WebKey {
    kty: String,
    kid: String,
    #[serde(rename = "use")]
    purpose: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl KeySet {
    /// Reads a JSON Web Key Set. Keys of other sorts, and those that only encrypt, are passed over.
    pub(in crate::authentication) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let keys = document.keys.into_iter().take(KEYS_MAX).filter_map(Key::read);
        Ok(Self(keys.collect()))
    }

    pub(in crate::authentication) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the key that a token names, or any if it names none, has signed it.
    pub(super) fn have_signed(&self, jwt: &Jwt<'_>) -> bool {
        let named = |key: &&Key| jwt.key_id.is_empty() || jwt.key_id == key.id;
        self.0.iter().filter(named).any(|key| key.material.has_signed(jwt))
    }
}

impl Key {
    fn read(document: Value) -> Option<Self> {
        let key: WebKey = serde_json::from_value(document).ok()?;
        if !["", "sig"].contains(&key.purpose.as_str()) {
            return None;
        }
        let material = match (key.kty.as_str(), key.crv.as_str()) {
            ("RSA", _) => Material::Rsa { n: number(&key.n)?, e: number(&key.e)? },
            ("EC", "P-256") => Material::P256(point(&key, 32)?),
            ("EC", "P-384") => Material::P384(point(&key, 48)?),
            _ => return None,
        };
        Some(Self { id: key.kid, material })
    }
}

impl Material {
    fn has_signed(&self, jwt: &Jwt<'_>) -> bool {
        let message = jwt.signed.as_bytes();
        let signature = jwt.signature.as_slice();
        match self {
            Self::Rsa { n, e } => rsa(&jwt.algorithm).is_some_and(|algorithm| {
                RsaPublicKeyComponents { n, e }.verify(algorithm, message, signature).is_ok()
            }),
            Self::P256(point) if jwt.algorithm == "ES256" => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(message, signature).is_ok()
            }
            Self::P384(point) if jwt.algorithm == "ES384" => {
                let key = UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point);
                key.verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// A number without zeros in front.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    Some(bytes[first..].to_vec())
}

/// A point on a curve whose coordinates have this many bytes.
fn point(key: &WebKey, size: usize) -> Option<Vec<u8>> {
    let [x, y] = [&key.x, &key.y].map(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let (x, y) = x.zip(y)?;
    (x.len() == size && y.len() == size).then(|| [&[4], x.as_slice(), &y].concat())
}
