//! Signs tokens and reads them back.
//!
//! The key is the one of the cluster's [`Identity`], read when it is first needed, so that a
//! server that never signs never pays for it. A signature is checked once per token: what was
//! found good is remembered, up to a bound.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Value, json};
use steersman_store::Store;
use tokio::sync::OnceCell;

use super::claims::{Claims, SecretClaims, user_name};
use super::jwt::Jwt;
use super::{ISSUER, SECRET_ISSUER};
use crate::identity::{Identity, IdentityError, KeyError, SigningKey};

/// How many good tokens are remembered before all are forgotten.
const REMEMBERED: usize = 1024;

/// The longest token that is remembered, in bytes: who asks for one may name many audiences.
const REMEMBERED_LENGTH: usize = 8 * 1024;

/// No key has the name that a token's header gives.
const NO_KEY: &str = "invalid signature, no keys found";

/// What the key says of a signature that is not its own.
const BAD_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";

/// What a token of this cluster states.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// One that was asked for.
    Requested(Claims),
    /// One that lies in a Secret.
    OfSecret(SecretClaims),
}

/// Signs and reads tokens.
#[derive(Debug, Default)]
pub(crate) struct Signer {
    key: OnceCell<SigningKey>,
    /// Tokens with a good signature. The lock is held for moments, never over a wait.
    good: Mutex<HashMap<String, Arc<Statement>>>,
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
        Ok(signed(self.key(store).await?, claims)?)
    }

    /// What a token states that was found good before.
    pub(crate) fn remembered(&self, token: &str) -> Option<Arc<Statement>> {
        self.good.lock().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// What a token states, if a server of this cluster has signed it, or what is wrong with it.
    /// Whether one has signed it cannot be said without the key.
    pub(crate) async fn read(
        &self,
        store: &dyn Store,
        token: &str,
    ) -> Result<Result<Arc<Statement>, &'static str>, IdentityError> {
        if let Some(statement) = self.remembered(token) {
            return Ok(Ok(statement));
        }
        // Where nobody ever signed anything, no token is good, and no key is made to see it.
        let Some(key) = self.known_key(store).await? else { return Ok(Err(NO_KEY)) };
        let statement = match verified(key, token) {
            Ok(statement) => Arc::new(statement),
            Err(why) => return Ok(Err(why)),
        };
        if token.len() > REMEMBERED_LENGTH {
            return Ok(Ok(statement));
        }
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if good.len() >= REMEMBERED {
            good.clear();
        }
        good.insert(token.to_owned(), Arc::clone(&statement));
        Ok(Ok(statement))
    }
}

/// A token for a Secret of the type `kubernetes.io/service-account-token`. It is good as long as
/// the Secret holds it and the account, by name and uid, exists.
pub fn sign_for_secret(
    identity: &Identity,
    SecretToken { namespace, secret, account, account_uid }: SecretToken<'_>,
) -> Result<String, IdentityError> {
    let claims = SecretClaims {
        iss: SECRET_ISSUER.to_owned(),
        namespace: namespace.to_owned(),
        secret: secret.to_owned(),
        account: account.to_owned(),
        account_uid: account_uid.to_owned(),
        sub: user_name(namespace, account),
        aud: Vec::new(),
    };
    Ok(signed(&identity.signing_key()?, &claims)?)
}

/// Whose a token in a Secret is, and which Secret that is.
#[derive(Clone, Copy, Debug)]
pub struct SecretToken<'a> {
    /// The namespace of both.
    pub namespace: &'a str,
    /// The name of the Secret.
    pub secret: &'a str,
    /// The name of the service account.
    pub account: &'a str,
    /// The uid of the service account.
    pub account_uid: &'a str,
}

fn signed(key: &SigningKey, claims: &impl Serialize) -> Result<String, KeyError> {
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = encode(json!({"alg": "ES256", "kid": key.id()}));
    let body = format!("{header}.{}", encode(json!(claims)));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(body.as_bytes())?);
    Ok(format!("{body}.{signature}"))
}

fn verified(key: &SigningKey, token: &str) -> Result<Statement, &'static str> {
    let jwt = Jwt::parse(token).ok_or("invalid bearer token")?;
    if !jwt.key_id.is_empty() && jwt.key_id != key.id() {
        return Err(NO_KEY);
    }
    if jwt.algorithm != "ES256" || !key.has_signed(jwt.signed.as_bytes(), &jwt.signature) {
        return Err(BAD_SIGNATURE);
    }
    let requested = serde_json::from_slice::<Claims>(&jwt.payload).ok();
    if let Some(claims) = requested.filter(|claims| claims.iss == ISSUER) {
        return Ok(Statement::Requested(claims));
    }
    let of_secret = serde_json::from_slice::<SecretClaims>(&jwt.payload).ok();
    let of_secret = of_secret.filter(|claims| claims.iss == SECRET_ISSUER);
    of_secret.map(Statement::OfSecret).ok_or("invalid bearer token")
}

#[cfg(test)]
mod tests {
    use steersman_store::Store;
    use steersman_store::memory::MemoryStore;

    use super::super::claims::{Claims, Private};
    use super::{ISSUER, REMEMBERED, Signer, Statement};

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
        assert!(one.read(&store, "a.b.c").await.unwrap().is_err());
        assert!(store.get(crate::identity::KEY).await.unwrap().is_none());
        let token = one.sign(&store, &claims("x")).await.unwrap();
        other.sign(&elsewhere, &claims("y")).await.unwrap();
        for signer in [&one, &one, &same] {
            let read = signer.read(&store, &token).await.unwrap().unwrap();
            assert_eq!(*read, Statement::Requested(claims("x")));
        }
        assert!(other.read(&elsewhere, &token).await.unwrap().is_err());
        let (body, _) = token.rsplit_once('.').unwrap();
        for forged in [format!("{body}."), format!("{body}.AAAA"), body.to_owned(), String::new()] {
            assert!(one.read(&store, &forged).await.unwrap().is_err(), "{forged}");
        }
        let mut letters: Vec<char> = token.chars().collect();
        let middle = letters.len() / 2;
        letters[middle] = if letters[middle] == 'A' { 'B' } else { 'A' };
        let changed: String = letters.into_iter().collect();
        assert!(one.read(&store, &changed).await.unwrap().is_err());
    }

    #[tokio::test]
    async fn no_more_tokens_are_remembered_than_the_bound() {
        let store = MemoryStore::new();
        let signer = Signer::default();
        for n in 0..=REMEMBERED {
            let token = signer.sign(&store, &claims(&n.to_string())).await.unwrap();
            assert!(signer.read(&store, &token).await.unwrap().is_ok());
            assert!(signer.good.lock().unwrap().len() <= REMEMBERED);
        }
        let known = signer.good.lock().unwrap().len();
        let aud = vec!["a".repeat(8 * 1024)];
        let long = signer.sign(&store, &Claims { aud, ..claims("long") }).await.unwrap();
        assert!(signer.read(&store, &long).await.unwrap().is_ok());
        assert_eq!(signer.good.lock().unwrap().len(), known);
    }
}
