//! Who a request from the network comes from.
//!
//! What is known by itself, a certificate or a token that someone was given, [`mod@user`] knows. What
//! a signed token of a service account states is true only as long as its account and what it is
//! bound to are there, so the store is asked.

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use steersman_store::{Entry, StoreError};

use crate::identity::IdentityError;
use crate::state::Server;
use crate::status::{self, Status};
use crate::token::ISSUER;
use crate::token::claims::{Claims, Reference};
use crate::user::{self, User};

/// How long a token outlives the moment at which its object is due to end.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// Who bears a token, and which of the wanted audiences it is for.
#[derive(Debug)]
pub(crate) struct Authenticated {
    pub(crate) user: User,
    pub(crate) audiences: Vec<String>,
}

/// Why nobody is known to bear a token.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The token is not good, for this reason.
    Token(&'static str),
    /// Whether it is good could not be found out.
    Unknown(Status),
}

impl From<&'static str> for Refused {
    fn from(why: &'static str) -> Self {
        Self::Token(why)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Unknown(error.into())
    }
}

impl From<IdentityError> for Refused {
    fn from(error: IdentityError) -> Self {
        Self::Unknown(error.into())
    }
}

/// Who a request comes from: the user of its connection's certificate, of a token
/// that is known, or the service account of a token that was signed.
pub(crate) async fn request(
    server: &Server,
    headers: &HeaderMap,
    certificate: Option<&User>,
) -> status::Result<User> {
    let signed = user::bearer_token(headers).filter(|token| certificate.is_none() && is_jwt(token));
    let Some(token) = signed.filter(|token| server.tokens.user(token).is_none()) else {
        return server.tokens.authenticate(headers, certificate);
    };
    match bearer(server, token, &[ISSUER.to_owned()]).await {
        Ok(authenticated) => Ok(authenticated.user),
        Err(Refused::Token(why)) => {
            tracing::debug!(why, "token refused");
            Err(Status::unauthorized())
        }
        // A client that is told that it is nobody would throw a good token away.
        Err(Refused::Unknown(status)) => Err(status),
    }
}

fn is_jwt(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Finds out who bears a token that is for one of these audiences.
pub(crate) async fn bearer(
    server: &Server,
    token: &str,
    audiences: &[String],
) -> Result<Authenticated, Refused> {
    let claims = server.signer.read(&*server.store, token).await?.ok_or("invalid bearer token")?;
    let now = (server.clock)();
    if claims.exp <= now.as_second() {
        return Err("service account token has expired".into());
    }
    if claims.nbf > now.as_second() {
        return Err("service account token is not valid yet".into());
    }
    let common: Vec<String> =
        audiences.iter().filter(|audience| claims.aud.contains(audience)).cloned().collect();
    if common.is_empty() {
        return Err("token audiences is invalid for the target audiences".into());
    }
    for (key, reference) in bindings(&claims) {
        check(server, &key, reference, now).await?;
    }
    Ok(Authenticated { user: user(&claims), audiences: common })
}

/// The objects that must be there, by key: the account and what the token is bound to. The node
/// of a bound pod is only told, the pod's own life counts.
fn bindings(claims: &Claims) -> Vec<(String, &Reference)> {
    let private = &claims.kubernetes;
    let namespace = &private.namespace;
    let account = &private.serviceaccount;
    let mut all =
        vec![(format!("/registry/serviceaccounts/{namespace}/{}", account.name), account)];
    if let Some(pod) = &private.pod {
        all.push((format!("/registry/pods/{namespace}/{}", pod.name), pod));
    } else if let Some(node) = &private.node {
        all.push((format!("/registry/minions/{}", node.name), node));
    }
    if let Some(secret) = &private.secret {
        all.push((format!("/registry/secrets/{namespace}/{}", secret.name), secret));
    }
    all
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    #[serde(default)]
    deletion_timestamp: Option<Timestamp>,
}

async fn check(
    server: &Server,
    key: &str,
    reference: &Reference,
    now: Timestamp,
) -> Result<(), Refused> {
    let is_there = |entry: Entry| {
        let Ok(object) = serde_json::from_slice::<Object>(&entry.value) else { return false };
        let due = object.metadata.deletion_timestamp;
        let ended = due.is_some_and(|due| due.checked_add(LEEWAY).is_ok_and(|end| end < now));
        object.metadata.uid == reference.uid && !ended
    };
    // What this server has not heard of yet may be there all the same.
    if server.known(key).await?.is_some_and(is_there)
        || server.get(key).await?.is_some_and(is_there)
    {
        return Ok(());
    }
    Err("service account token has been invalidated".into())
}

fn user(claims: &Claims) -> User {
    let private = &claims.kubernetes;
    let namespace = &private.namespace;
    let mut user = User::service_account(namespace, &private.serviceaccount.name);
    user.uid.clone_from(&private.serviceaccount.uid);
    let mut tell = |key: &str, value: &str| {
        let key = format!("authentication.kubernetes.io/{key}");
        user.extra.insert(key, vec![value.to_owned()]);
    };
    tell("credential-id", &format!("JTI={}", claims.jti));
    for (kind, reference) in [("pod", &private.pod), ("node", &private.node)] {
        let Some(reference) = reference else { continue };
        tell(&format!("{kind}-name"), &reference.name);
        if !reference.uid.is_empty() {
            tell(&format!("{kind}-uid"), &reference.uid);
        }
    }
    user
}
