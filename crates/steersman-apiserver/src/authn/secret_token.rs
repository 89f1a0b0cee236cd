//! Tokens that lie in Secrets of the type `kubernetes.io/service-account-token` and never expire:
//! good as long as the Secret holds them and their account is the same.

use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use steersman_rules::resource::Place;

use super::Refused;
use super::bound_token::account;
use super::objects::{Account, Secret, is_same, judged};
use crate::state::Server;
use crate::token::claims::{Reference, SecretClaims, user_name};
use crate::user::User;
use crate::write::own;

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

const INVALIDATED: &str = "Token has been invalidated";
const GENERATED: &str = "Use tokens from the TokenRequest API or manually created secret-based \
                         tokens instead of auto-generated secret-based tokens.";

/// The account whose token states this, if that is true now.
pub(super) async fn user(
    server: &Arc<Server>,
    token: &str,
    claims: &SecretClaims,
    warnings: &mut Vec<String>,
) -> Result<User, Refused> {
    let SecretClaims { namespace, secret, account: name, account_uid, .. } = claims;
    for (claim, value) in [
        ("sub", &claims.sub),
        ("namespace", namespace),
        ("secretName", secret),
        ("serviceAccountName", name),
        ("serviceAccountUID", account_uid),
    ] {
        if value.is_empty() {
            return Err(format!("{claim} claim is missing").into());
        }
    }
    if claims.sub != user_name(namespace, name) {
        return Err("sub claim is invalid".into());
    }
    let key = format!("/registry/secrets/{namespace}/{secret}");
    let held = judged(server, &key, |found| check_secret(token, found)).await?;
    let key = format!("/registry/serviceaccounts/{namespace}/{name}");
    let owner = judged(server, &key, |found| check_account(claims, found)).await?;
    note_use(server, claims, &held).await;
    if held.metadata.labels.get(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
        return Err(format!(
            "the token in secret {namespace}/{secret} for service account {namespace}/{name} has \
             been marked invalid. Use tokens from the TokenRequest API or manually created \
             secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to \
             temporarily allow use of this token"
        )
        .into());
    }
    if owner.secrets.iter().any(|listed| listed.name == *secret) {
        warnings.push(GENERATED.to_owned());
    }
    Ok(account(namespace, &Reference { name: name.clone(), uid: account_uid.clone() }))
}

fn check_secret(token: &str, found: Option<Secret>) -> Result<Secret, String> {
    let found = found.filter(|secret| secret.metadata.deletion_timestamp.is_none());
    let secret = found.ok_or(INVALIDATED)?;
    if !is_same(&secret.get("token"), token.as_bytes()) {
        return Err("Token does not match server's copy".to_owned());
    }
    Ok(secret)
}

fn check_account(claims: &SecretClaims, found: Option<Account>) -> Result<Account, String> {
    let SecretClaims { namespace, account: name, account_uid, .. } = claims;
    let found = found.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
    if found.metadata.deletion_timestamp.is_some() {
        return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
    }
    let uid = &found.metadata.uid;
    if uid != account_uid {
        return Err(format!("ServiceAccount UID ({uid}) does not match claim ({account_uid})"));
    }
    Ok(found)
}

/// Writes on the Secret on which day its token was used last. That it cannot be written keeps
/// nobody out.
async fn note_use(server: &Arc<Server>, claims: &SecretClaims, held: &Secret) {
    let now = (server.clock)();
    let today = day(now);
    let tomorrow = day(now.checked_add(SignedDuration::from_hours(24)).unwrap_or(now));
    let noted = held.metadata.labels.get(LAST_USED);
    if noted.is_some_and(|noted| *noted == today || *noted == tomorrow) {
        return;
    }
    let place = Place { namespace: &claims.namespace, name: &claims.secret };
    let written = own::amend(server, ["", "v1", "secrets"], place, |secret| {
        if secret["metadata"]["uid"] == held.metadata.uid.as_str() {
            secret["metadata"]["labels"][LAST_USED] = today.as_str().into();
        }
    });
    if let Err(error) = written.await {
        tracing::warn!(%error, "cannot note the last use of a token on its secret");
    }
}

fn day(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d").to_string()
}
