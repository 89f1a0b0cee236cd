//! Who a request from the network comes from.
//!
//! A certificate is judged by [`certificate`] when its connection begins. A bearer token is one of
//! those that were given out, one that this cluster has signed for a service account, a bootstrap
//! token, one of an issuer elsewhere, or one that a webhook knows. What this cluster has signed is true only as long as the
//! account and what the token is bound to are there, so the store is asked. As in Kubernetes, who
//! shows something that is not good is refused, and who shows nothing is `system:anonymous`.

mod bootstrap_token;
mod bound_token;
mod certificate;
mod notes;
mod objects;
mod secret_token;
mod web_socket;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, header};
use steersman_store::StoreError;
use tokio::time::Instant;

use crate::authentication::{Circumstances, Known};
use crate::identity::IdentityError;
use crate::state::Server;
use crate::status::{self, Status};
use crate::token::claims::{Claims, SecretClaims};
use crate::token::{ISSUER, SECRET_ISSUER, Statement, jwt};
use crate::user::User;

pub(crate) use certificate::ClientCertificate;
use notes::Notes;
pub(crate) use notes::Remarks;
pub(crate) use web_socket::forget as forget_web_socket_token;

/// How long it may take to find out who it is.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Nothing is known of a token.
const INVALID: &str = "invalid bearer token";

/// Nothing is shown, and nobody may come without.
const NOTHING: &str = "no credential";

/// Where those who audit read whose token it was that names no audience.
const LEGACY: &str = "authentication.k8s.io/legacy-token";

/// What is told to one whose header has a space too many.
const SPACE: &str = "the provided Authorization header contains extra space before the bearer \
                     token, and is ignored";

/// What a request shows of who it comes from.
#[derive(Clone, Copy)]
pub(crate) struct Credentials<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// The path of the request.
    pub(crate) path: &'a str,
    /// The certificate of its connection.
    pub(crate) certificate: Option<&'a ClientCertificate>,
}

/// Who it is, and, of a token, for which of the wanted audiences.
#[derive(Debug)]
pub(crate) struct Authenticated {
    pub(crate) user: Arc<User>,
    pub(crate) audiences: Vec<String>,
    /// What the client is told although it is known.
    pub(crate) warnings: Vec<String>,
    pub(crate) remarks: Remarks,
}

impl Authenticated {
    fn new(user: impl Into<Arc<User>>, audiences: Vec<String>) -> Self {
        let (warnings, remarks) = (Vec::new(), Remarks::default());
        Self { user: user.into(), audiences, warnings, remarks }
    }
}

/// Why nobody is known to be behind a request.
#[derive(Debug)]
pub(crate) enum Refused {
    /// What it shows is not good, for this reason.
    Token(Cow<'static, str>),
    /// Whether it is good could not be found out.
    Unknown(Status),
}

impl From<&'static str> for Refused {
    fn from(why: &'static str) -> Self {
        Self::Token(why.into())
    }
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Token(why.into())
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

/// Who a request comes from.
pub(crate) async fn request(
    server: &Arc<Server>,
    credentials: &Credentials<'_>,
) -> status::Result<Authenticated> {
    let began = Instant::now();
    let found = tokio::time::timeout(TIME_MAX, authenticated(server, credentials)).await;
    let late = |_| Refused::Unknown(Status::timeout("authentication took too long"));
    let access = &server.metrics.access;
    match found.map_err(late).flatten() {
        Ok(found) => {
            access.knows(&found.user.name, began.elapsed());
            Ok(found)
        }
        Err(Refused::Token(why)) => {
            tracing::debug!(%why, "credential refused");
            access.knows_not(why != NOTHING, began.elapsed());
            Err(Status::unauthorized())
        }
        // A client that is told that it is nobody would throw a good token away.
        Err(Refused::Unknown(status)) => {
            access.knows_not(true, began.elapsed());
            Err(status)
        }
    }
}

/// Tries everything that a request shows, in Kubernetes' order, until something is good. What is
/// not good only counts if nothing is.
async fn authenticated(
    server: &Arc<Server>,
    Credentials { headers, path, certificate }: &Credentials<'_>,
) -> Result<Authenticated, Refused> {
    let known = &server.authentication;
    let now = (server.clock)();
    let mut wrong = None;
    if let Some(certificate) = certificate {
        let headers = known.front_proxy.as_ref().map(|proxy| (&proxy.headers, *headers));
        match certificate.user(headers, now) {
            Ok(Some(user)) => return Ok(Authenticated::new(user, Vec::new())),
            Ok(None) => {}
            Err(why) => wrong = Some(Refused::from(why)),
        }
    }
    let mut warnings = Vec::new();
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match Bearer::of(shown.unwrap_or("")) {
        Bearer::Token(shown) => match token(server, shown, &[ISSUER.to_owned()]).await {
            Err(Refused::Token(why)) => wrong = Some(Refused::Token(why)),
            found => return found,
        },
        Bearer::Misplaced => warnings.push(SPACE.to_owned()),
        Bearer::Nothing => {}
    }
    match web_socket::token(headers) {
        Ok(None) => {}
        Ok(Some(shown)) => match token(server, &shown, &[ISSUER.to_owned()]).await {
            Err(Refused::Token(why)) => wrong = wrong.or(Some(Refused::Token(why))),
            found => return found,
        },
        Err(why) => wrong = wrong.or(Some(why.into())),
    }
    match wrong {
        Some(wrong) => Err(wrong),
        None if known.anonymous.covers(path) => {
            Ok(Authenticated { warnings, ..Authenticated::new(User::anonymous(), Vec::new()) })
        }
        None => Err(NOTHING.into()),
    }
}

/// What an `Authorization` header says. Other schemes say nothing here.
pub(crate) enum Bearer<'a> {
    Token(&'a str),
    /// There is a space where the token should begin.
    Misplaced,
    Nothing,
}

impl<'a> Bearer<'a> {
    pub(crate) fn of(value: &'a str) -> Self {
        let mut parts = value.trim().splitn(3, ' ');
        let is_bearer = parts.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
        match (parts.next(), parts.next()) {
            (Some(""), Some(_)) if is_bearer => Self::Misplaced,
            (Some(token), _) if is_bearer && !token.is_empty() => Self::Token(token),
            _ => Self::Nothing,
        }
    }
}

/// Finds out who bears a token that is for one of these audiences. What this server refuses a webhook
/// may know: clusters name themselves as issuers alike.
pub(crate) async fn token(
    server: &Arc<Server>,
    token: &str,
    audiences: &[String],
) -> Result<Authenticated, Refused> {
    let refused = match known_here(server, token, audiences).await {
        Err(Refused::Token(why)) => why,
        found => return found,
    };
    let Some(webhook) = &server.token_webhook else { return Err(Refused::Token(refused)) };
    match webhook.user(token, audiences, &*server.store, &server.origins).await {
        Ok(Some(Known { user, audiences })) => Ok(Authenticated::new(user, audiences)),
        Err(why) if refused == INVALID => Err(why.into()),
        Ok(None) | Err(_) => Err(Refused::Token(refused)),
    }
}

async fn known_here(
    server: &Arc<Server>,
    token: &str,
    audiences: &[String],
) -> Result<Authenticated, Refused> {
    if let Some(statement) = server.signer.remembered(token) {
        return stated(server, token, &statement, audiences).await;
    }
    // Tokens that say nothing about it are for this server.
    let here = common(audiences, &[ISSUER.to_owned()]);
    let known = &server.authentication;
    if !here.is_empty()
        && let Some(user) = known.tokens.user(token)
    {
        return Ok(Authenticated::new(user, here));
    }
    // Whoever extends another server gives out no tokens: that one does.
    if let Some(reviews) = &server.extended.reviews {
        let user = reviews.user(token).await.map_err(Refused::Unknown)?;
        return user.map(|user| Authenticated::new(user, here)).ok_or_else(|| INVALID.into());
    }
    if let Some(issuer) = jwt::unverified_issuer(token) {
        if [ISSUER, SECRET_ISSUER].contains(&issuer.as_str()) {
            let statement = server.signer.read(&*server.store, token).await?;
            return stated(server, token, &*statement?, audiences).await;
        }
        if let Some(issuer) = server.issuers.iter().find(|known| known.is(&issuer))
            && !here.is_empty()
        {
            let store = &*server.store;
            let origins = &server.origins;
            let now = (server.clock)();
            let user = issuer.user(token, Circumstances { store, origins, now }).await?;
            return Ok(Authenticated::new(user, here));
        }
    }
    if known.bootstrap_tokens
        && !here.is_empty()
        && let Some(user) = bootstrap_token::user(server, token).await?
    {
        return Ok(Authenticated::new(user, here));
    }
    Err(INVALID.into())
}

/// Whether what a token of this cluster states is true now, for one of these audiences.
async fn stated(
    server: &Arc<Server>,
    token: &str,
    statement: &Statement,
    audiences: &[String],
) -> Result<Authenticated, Refused> {
    let mut notes = Notes::default();
    let here;
    let meant: &[String] = match statement {
        Statement::OfSecret(claims) if claims.aud.is_empty() => {
            server.metrics.tokens.legacy.increment();
            notes.remarks.add(LEGACY, claims.sub.as_str());
            here = [ISSUER.to_owned()];
            &here
        }
        Statement::Requested(Claims { aud, .. }) => aud.as_slice(),
        Statement::OfSecret(SecretClaims { aud, .. }) => aud.as_slice(),
    };
    let audiences_of_both = common(audiences, meant);
    if audiences_of_both.is_empty() {
        let meant = quoted(meant);
        let wanted = quoted(audiences);
        return Err(format!(
            "token audiences {meant} is invalid for the target audiences {wanted}"
        )
        .into());
    }
    let user = match statement {
        Statement::Requested(claims) => bound_token::user(server, claims, &mut notes).await?,
        Statement::OfSecret(claims) => {
            secret_token::user(server, token, claims, &mut notes).await?
        }
    };
    let Notes { warnings, remarks } = notes;
    Ok(Authenticated { warnings, remarks, ..Authenticated::new(user, audiences_of_both) })
}

/// Those of the wanted audiences that a token is meant for.
fn common(wanted: &[String], meant: &[String]) -> Vec<String> {
    wanted.iter().filter(|audience| meant.contains(audience)).cloned().collect()
}

/// Texts as Go writes them.
fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::Bearer;

    #[test]
    fn a_bearer_token_is_read_as_in_kubernetes() {
        for (header, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer abc", Some("abc")),
            ("  BEARER abc  ", Some("abc")),
            ("Bearer abc def", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Bearer  abc", None),
            ("Basic YTpi", None),
            ("abc", None),
            ("", None),
        ] {
            let found = match Bearer::of(header) {
                Bearer::Token(token) => Some(token),
                _ => None,
            };
            assert_eq!(found, expected, "{header:?}");
        }
        assert!(matches!(Bearer::of("Bearer  abc"), Bearer::Misplaced));
        assert!(matches!(Bearer::of("Basic  abc"), Bearer::Nothing));
    }
}
