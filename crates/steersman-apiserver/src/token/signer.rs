//! Signs claims into tokens and reads them back.
//!
//! The key is made when it is first needed, so that a server that never signs never pays for it.
//! A signature is checked once per token: what was found good is remembered, up to a bound.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::ISSUER;
use super::claims::Claims;
use super::key::{KeyError, SigningKey};

/// How many good tokens are remembered before all are forgotten.
const REMEMBERED: usize = 1024;

/// Signs and reads tokens.
#[derive(Debug, Default)]
pub(crate) struct Signer {
    key: OnceLock<SigningKey>,
    /// Tokens with a good signature. The lock is held for moments, never over a wait.
    good: Mutex<HashMap<String, Arc<Claims>>>,
}

impl Signer {
    /// Uses this key, unless there is one already.
    pub(crate) fn sign_with(&self, key: SigningKey) -> bool {
        self.key.set(key).is_ok()
    }

    fn key(&self) -> Result<&SigningKey, KeyError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let key = SigningKey::generate()?;
        Ok(self.key.get_or_init(|| key))
    }

    /// The public key, for whoever wants to check tokens by itself.
    pub(crate) fn jwks(&self) -> Result<Value, KeyError> {
        Ok(json!({"keys": [self.key()?.to_jwk()]}))
    }

    /// The token that states this.
    pub(crate) fn sign(&self, claims: &Claims) -> Result<String, KeyError> {
        let key = self.key()?;
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = encode(json!({"alg": "ES256", "kid": key.id()}));
        let body = format!("{header}.{}", encode(json!(claims)));
        let signature = URL_SAFE_NO_PAD.encode(key.sign(body.as_bytes())?);
        Ok(format!("{body}.{signature}"))
    }

    /// What a token states, if this server has signed it.
    pub(crate) fn read(&self, token: &str) -> Option<Arc<Claims>> {
        // Who never signed anything cannot know any token.
        let key = self.key.get()?;
        let lock = || self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = lock().get(token) {
            return Some(Arc::clone(claims));
        }
        let claims = Arc::new(verified(key, token)?);
        let mut good = lock();
        if good.len() >= REMEMBERED {
            good.clear();
        }
        good.insert(token.to_owned(), Arc::clone(&claims));
        Some(claims)
    }
}

fn verified(key: &SigningKey, token: &str) -> Option<Claims> {
    let (body, signature) = token.rsplit_once('.')?;
    let (header, claims) = body.split_once('.')?;
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
    if header["alg"] != "ES256" || header["kid"] != key.id() {
        return None;
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    if !key.has_signed(body.as_bytes(), &signature) {
        return None;
    }
    let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    (claims.iss == ISSUER).then_some(claims)
}

#[cfg(test)]
mod tests {
    use super::super::claims::{Claims, Private};
    use super::{ISSUER, REMEMBERED, Signer};

    fn claims(jti: &str) -> Claims {
        Claims {
            aud: vec!["a".to_owned()],
            exp: 2,
            iat: 1,
            iss: ISSUER.to_owned(),
            jti: jti.to_owned(),
            kubernetes: Private::default(),
            nbf: 1,
            sub: "system:serviceaccount:n:s".to_owned(),
        }
    }

    #[test]
    fn a_token_is_read_by_who_signed_it_and_by_nobody_else() {
        let (one, other) = (Signer::default(), Signer::default());
        assert!(one.read("a.b.c").is_none());
        let token = one.sign(&claims("x")).unwrap();
        other.sign(&claims("y")).unwrap();
        for _ in 0..2 {
            assert_eq!(*one.read(&token).unwrap(), claims("x"));
        }
        assert!(other.read(&token).is_none());
        let (body, _) = token.rsplit_once('.').unwrap();
        for forged in [format!("{body}."), format!("{body}.AAAA"), body.to_owned(), String::new()] {
            assert!(one.read(&forged).is_none(), "{forged}");
        }
        let mut letters: Vec<char> = token.chars().collect();
        let middle = letters.len() / 2;
        letters[middle] = if letters[middle] == 'A' { 'B' } else { 'A' };
        assert!(one.read(&letters.into_iter().collect::<String>()).is_none());
    }

    #[test]
    fn no_more_tokens_are_remembered_than_the_bound() {
        let signer = Signer::default();
        for n in 0..=REMEMBERED {
            let token = signer.sign(&claims(&n.to_string())).unwrap();
            assert!(signer.read(&token).is_some());
            assert!(signer.good.lock().unwrap().len() <= REMEMBERED);
        }
    }
}
