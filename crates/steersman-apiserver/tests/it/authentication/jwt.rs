//! Makes tokens, good and bad.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaPublicKeyComponents,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

/// A key that guards nothing but these tests: ring does not make keys for RSA.
const RSA: &[u8] = include_bytes!("rsa.pem");

/// A key of somebody who signs tokens.
pub(super) enum Key {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl Key {
    pub(super) fn p256() -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self::of_pkcs8(made.as_ref())
    }

    /// A key on the curve P-256 that was written down.
    pub(super) fn of_pkcs8(pkcs8: &[u8]) -> Self {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        Self::P256(EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &SystemRandom::new()).unwrap())
    }

    pub(super) fn p384() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P384_SHA384_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self::P384(EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).unwrap())
    }

    pub(super) fn rsa() -> Self {
        let der = PrivatePkcs8KeyDer::from_pem_slice(RSA).unwrap();
        Self::Rsa(RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap())
    }

    /// The public half as a JSON Web Key.
    pub(super) fn jwk(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::P256(key) | Self::P384(key) => {
                let point = &key.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let curve = if x.len() == 32 { "P-256" } else { "P-384" };
                json!({"kty": "EC", "use": "sig", "kid": id, "crv": curve, "x": text(x), "y": text(y)})
            }
            Self::Rsa(key) => {
                let RsaPublicKeyComponents { n, e } =
                    RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                let [n, e] = [text(&n), text(&e)];
                json!({"kty": "RSA", "use": "sig", "kid": id, "n": n, "e": e})
            }
        }
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::P256(key) | Self::P384(key) => {
                key.sign(&random, message).unwrap().as_ref().to_vec()
            }
            Self::Rsa(key) => {
                let encoding: &dyn RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(encoding, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    /// A token with this header, which may lie about the algorithm, and these claims.
    pub(super) fn token(&self, header: &Value, claims: &Value) -> String {
        let body = format!("{}.{}", encoded(header), encoded(claims));
        let algorithm = header["alg"].as_str().unwrap_or_default();
        let signature = self.sign(algorithm, body.as_bytes());
        format!("{body}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

pub(super) fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// The header and the claims of a token.
pub(super) fn parts(token: &str) -> [Value; 2] {
    let mut parts = token.split('.');
    [(); 2].map(|()| {
        let part = URL_SAFE_NO_PAD.decode(parts.next().unwrap()).unwrap();
        serde_json::from_slice(&part).unwrap()
    })
}
