//! Tokens that were asked for: good for a time, and as long as their account and the object that
//! they are bound to are the same as when they were signed.

use jiff::{SignedDuration, Timestamp};

use super::Refused;
use super::notes::Notes;
use super::objects::{Metadata, Object, judged};
use crate::state::Server;
use crate::token::claims::{Claims, Reference, user_name};
use crate::user::{CREDENTIAL_ID, User, token_id};

/// How far clocks may differ; so long a token also outlives its objects.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

const INVALIDATED: &str = "service account token has been invalidated";

/// Where those who audit read of a token whose program should have read a newer one.
const STALE: &str = "authentication.k8s.io/stale-token";

/// The account whose token states this, if that is true now.
pub(super) async fn user(
    server: &Server,
    claims: &Claims,
    notes: &mut Notes,
) -> Result<User, Refused> {
    let now = (server.clock)();
    check_time(claims, now)?;
    let private = &claims.kubernetes;
    let namespace = &private.namespace;
    let account = &private.serviceaccount;
    let key = format!("/registry/serviceaccounts/{namespace}/{}", account.name);
    judged(server, &key, |found| check_account(namespace, account, found, now)).await?;
    if let Some(secret) = &private.secret {
        let key = format!("/registry/secrets/{namespace}/{}", secret.name);
        judged(server, &key, |found| check_bound("secret", secret, found, now)).await?;
    }
    // The node of a bound pod is only told: the pod's own life counts.
    if let Some(pod) = &private.pod {
        let key = format!("/registry/pods/{namespace}/{}", pod.name);
        judged(server, &key, |found| check_bound("pod", pod, found, now)).await?;
    } else if let Some(node) = &private.node {
        let key = format!("/registry/minions/{}", node.name);
        judged(server, &key, |found| check_bound("node", node, found, now)).await?;
    }
    if let Some(after) = private.warnafter {
        note_age(server, claims, now.as_second() - after, notes);
    }
    Ok(account_user(claims))
}

/// Notes whether a program still uses a token that it should have read anew so many seconds ago.
fn note_age(server: &Server, claims: &Claims, late: i64, notes: &mut Notes) {
    let tokens = &server.metrics.tokens;
    if late <= 0 {
        tokens.valid.increment();
        return;
    }
    tokens.stale.increment();
    let subject = &claims.sub;
    let text = format!("subject: {subject}, seconds after warning threshold: {late}");
    notes.remarks.add(STALE, text);
}

fn check_time(claims: &Claims, now: Timestamp) -> Result<(), &'static str> {
    let now = now.as_second();
    let leeway = LEEWAY.as_secs();
    if now + leeway < claims.nbf {
        return Err("service account token is not valid yet");
    }
    if now - leeway > claims.exp {
        return Err("service account token has expired");
    }
    if now + leeway < claims.iat {
        return Err("service account token is issued in the future");
    }
    Ok(())
}

fn check_account(
    namespace: &str,
    account: &Reference,
    found: Option<Object>,
    now: Timestamp,
) -> Result<(), String> {
    let name = &account.name;
    let found = found.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?.metadata;
    if found.uid != account.uid {
        let (uid, claim) = (&found.uid, &account.uid);
        return Err(format!("service account UID ({uid}) does not match claim ({claim})"));
    }
    if has_ended(&found, now) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    Ok(())
}

fn check_bound(
    kind: &str,
    reference: &Reference,
    found: Option<Object>,
    now: Timestamp,
) -> Result<(), String> {
    let found = found.ok_or(INVALIDATED)?.metadata;
    if found.uid != reference.uid {
        let (uid, stated) = (&found.uid, &reference.uid);
        return Err(format!(
            "{kind} UID ({uid}) does not match service account {kind} ref claim ({stated})"
        ));
    }
    if has_ended(&found, now) { Err(INVALIDATED.to_owned()) } else { Ok(()) }
}

/// Whether an object was due to end and should be gone.
fn has_ended(object: &Metadata, now: Timestamp) -> bool {
    let due = object.deletion_timestamp;
    due.is_some_and(|due| due.checked_add(LEEWAY).is_ok_and(|end| end < now))
}

fn account_user(claims: &Claims) -> User {
    let private = &claims.kubernetes;
    let mut user = account(&private.namespace, &private.serviceaccount);
    let mut tell = |key: &str, value: &str| {
        let key = format!("authentication.kubernetes.io/{key}");
        user.extra.insert(key, vec![value.to_owned()]);
    };
    for (kind, reference) in [("pod", &private.pod), ("node", &private.node)] {
        let Some(reference) = reference else { continue };
        tell(&format!("{kind}-name"), &reference.name);
        if !reference.uid.is_empty() {
            tell(&format!("{kind}-uid"), &reference.uid);
        }
    }
    if !claims.jti.is_empty() {
        user.extra.insert(CREDENTIAL_ID.to_owned(), vec![token_id(&claims.jti)]);
    }
    user
}

/// The user that a service account is.
pub(super) fn account(namespace: &str, account: &Reference) -> User {
    let group = format!("system:serviceaccounts:{namespace}");
    let name = user_name(namespace, &account.name);
    let user = User::known(&name, &["system:serviceaccounts", &group]);
    User { uid: account.uid.clone(), ..user }
}
