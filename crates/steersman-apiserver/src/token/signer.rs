//! Signs tokens and reads them back.
//!
//! The key is the one of the cluster's [`Identity`], read when it is first needed, so that a
//! server that never signs never pays for it. A signature is checked once per token: what was
//! found good is remembered, up to a bound.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use steersman_store::Store;
use tokio::sync::OnceCell;

use super::ISSUER;
use super::claims::Claims;
use crate::identity::{Identity, IdentityError, SigningKey};

/// How many good tokens are remembered before all are forgotten.
const REMEMBERED: usize = 1024;

/// Signs and reads tokens.
#[derive(Debug, Default)]
pub(crate) struct Signer {
    key: OnceCell<SigningKey>,
    /// Tokens with a good signature. The lock is held for moments, never over a wait.
    good: Mutex<HashMap<String, Arc<Claims>>>,
}

impl Signer {
    async fn key(&self, store: &dyn Store) -> Result<&SigningKey, IdentityError> {
        let read = || async { Identity::of(store).await?.signing_key() };
        self.key.get_or_try_init(read).await
    }

    /// The key, if the cluster has one.
    async fn known_key(&self, store: &dyn Store) -> Result<Option<&SigningKey>, IdentityError> {
        if let Some(key) = self.key.get() {
            return Ok(Some(key));
        }
        match Identity::find(store).await? {
            Some(_) => self.key(store).await.map(Some),
            None => Ok(None),
        }
    }

    /// The public key, for whoever wants to check tokens by itself.
    pub(crate) async fn jwks(&self, store: &dyn Store) -> Result<Value, IdentityError> {
        Ok(json!({"keys": [self.key(store).await?.to_jwk()]}))
    }

    /// The token that states this.
    pub(crate) async fn sign(
        &self,
        store: &dyn Store,
        claims: &Claims,
    ) -> Result<String, IdentityError> {
        let key = self.key(store).await?;
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = encode(json!({"alg": "ES256", "kid": key.id()}));
        let body = format!("{header}.{}", encode(json!(claims)));
        let signature = URL_SAFE_NO_PAD.encode(key.sign(body.as_bytes())?);
        Ok(format!("{body}.{signature}"))
    }

    /// What a token states, if a server of this cluster has signed it. Whether one has cannot be
    /// said without the key.
    pub(crate) async fn read(
        &self,
        store: &dyn Store,
        token: &str,
    ) -> Result<Option<Arc<Claims>>, IdentityError> {
        let lock = || self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = lock().get(token) {
            return Ok(Some(Arc::clone(claims)));
        }
        // Where nobody ever signed anything, no token is good, and no key is made to see it.
        let key = self.known_key(store).await?;
        let Some(claims) = key.and_then(|key| verified(key, token)) else { return Ok(None) };
        let claims = Arc::new(claims);
        let mut good = lock();
        if good.len() >= REMEMBERED {
            good.clear();
        }
        good.insert(token.to_owned(), Arc::clone(&claims));
        Ok(Some(claims))
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
    use steersman_store::Store;
    use steersman_store::memory::MemoryStore;

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

    #[tokio::test]
    async fn a_token_is_read_by_all_of_one_cluster_and_by_nobody_else() {
        let store = MemoryStore::new();
        let elsewhere = MemoryStore::new();
        let [one, same, other] = [(); 3].map(|()| Signer::default());
        assert!(one.read(&store, "a.b.c").await.unwrap().is_none());
        assert!(store.get(crate::identity::KEY).await.unwrap().is_none());
        let token = one.sign(&store, &claims("x")).await.unwrap();
        other.sign(&elsewhere, &claims("y")).await.unwrap();
        for signer in [&one, &one, &same] {
            assert_eq!(*signer.read(&store, &token).await.unwrap().unwrap(), claims("x"));
        }
        assert!(other.read(&elsewhere, &token).await.unwrap().is_none());
        let (body, _) = token.rsplit_once('.').unwrap();
        for forged in [format!("{body}."), format!("{body}.AAAA"), body.to_owned(), String::new()] {
            assert!(one.read(&store, &forged).await.unwrap().is_none(), "{forged}");
        }
        let mut letters: Vec<char> = token.chars().collect();
        let middle = letters.len() / 2;
        letters[middle] = if letters[middle] == 'A' { 'B' } else { 'A' };
        assert!(
            one.read(&store, &letters.into_iter().collect::<String>()).await.unwrap().is_none()
        );
    }

    #[tokio::test]
    async fn no_more_tokens_are_remembered_than_the_bound() {
        let store = MemoryStore::new();
        let signer = Signer::default();
        for n in 0..=REMEMBERED {
            let token = signer.sign(&store, &claims(&n.to_string())).await.unwrap();
            assert!(signer.read(&store, &token).await.unwrap().is_some());
            assert!(signer.good.lock().unwrap().len() <= REMEMBERED);
        }
    }
}
