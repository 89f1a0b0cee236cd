//! Issuers of tokens outside the cluster, by OpenID Connect: what a token must say, whose it is,
//! and where the keys are that it must be signed with.
//!
//! [`provider`] gets the keys, [`keys`] verifies with them, [`claims`] makes a user of what a token
//! states, where [`expressions`] may say how. Time is the server's, so that a cluster on virtual time can have issuers; together with
//! a handler for the issuer's origin (`ApiServer::serve_webhooks`) no socket is needed either.

mod claims;
mod expressions;
mod keys;
mod provider;

use jiff::Timestamp;
use steersman_store::Store;

use self::provider::Provider;
use crate::token::jwt::Jwt;
use crate::user::User;
use crate::webhook_client::Origins;

pub(super) use claims::{Claim, Mapping};
pub(super) use expressions::{About, Expression, Rule};
pub(super) use keys::KeySet;

/// Google's issuer, and what its tokens say instead.
const GOOGLE: &str = "https://accounts.google.com";
const GOOGLE_IN_TOKENS: &str = "accounts.google.com";

/// An issuer, and how its tokens are read.
#[derive(Clone, Debug)]
pub struct IssuerSettings {
    /// What tokens, and the issuer's discovery document, name as the issuer.
    pub(super) url: String,
    /// Where the discovery document is, if not where the issuer's URL says.
    pub(super) discovery_url: Option<String>,
    /// Who vouches for the issuer's server, in PEM; nobody stands for those whom the system trusts.
    pub(super) authorities: Vec<u8>,
    /// Whom a token must be for: one of them.
    pub(super) audiences: Vec<String>,
    pub(super) username: Mapping,
    pub(super) groups: Option<Mapping>,
    pub(super) uid: Option<Mapping>,
    /// What else is said of a user, by keys.
    pub(super) extra: Vec<(String, Expression)>,
    /// Claims that a token must make, and their values.
    pub(super) required: Vec<(String, String)>,
    /// What must hold of all claims.
    pub(super) rules: Vec<Rule>,
    /// What must hold of the user that they make.
    pub(super) user_rules: Vec<Rule>,
    /// Keys that are known and need not be asked for.
    pub(super) keys: Option<KeySet>,
}

/// What an issuer needs to know of the server to judge a token.
#[derive(Clone, Copy)]
pub(crate) struct Circumstances<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) origins: &'a Origins,
    pub(crate) now: Timestamp,
}

/// An issuer at work.
pub(crate) struct Issuer {
    settings: IssuerSettings,
    provider: Provider,
}

impl Issuer {
    pub(crate) fn new(settings: &IssuerSettings) -> Self {
        Self { settings: settings.clone(), provider: Provider::of(settings) }
    }

    /// Whether this is how the issuer names itself in tokens.
    pub(crate) fn is(&self, issuer: &str) -> bool {
        let url = self.settings.url.as_str();
        issuer == url || (url == GOOGLE && issuer == GOOGLE_IN_TOKENS)
    }

    /// Whose token this is, or why it is nobody's.
    pub(crate) async fn user(
        &self,
        token: &str,
        circumstances: Circumstances<'_>,
    ) -> Result<User, String> {
        let failed = |why: String| format!("oidc: verify token: {why}");
        let jwt = Jwt::parse(token).ok_or_else(|| failed("oidc: malformed jwt".to_owned()))?;
        if !keys::ALGORITHMS.contains(&jwt.algorithm.as_str()) {
            let known: Vec<String> = keys::ALGORITHMS.iter().map(|a| format!("{a:?}")).collect();
            let known = known.join(" ");
            let found = &jwt.algorithm;
            return Err(failed(format!(
                "oidc: id token signed with unsupported algorithm, expected [{known}] got {found:?}"
            )));
        }
        let verified = self.provider.verify(&jwt, circumstances).await;
        verified.map_err(|why| failed(format!("failed to verify signature: {why}")))?;
        let claims = claims::parse(&jwt.payload)
            .map_err(|why| failed(format!("oidc: failed to unmarshal claims: {why}")))?;
        let issuer = claims::text(&claims, "iss").unwrap_or_default();
        if !self.is(&issuer) {
            let expected = &self.settings.url;
            return Err(failed(format!(
                "oidc: id token issued by a different provider, expected {expected:?} got {issuer:?}"
            )));
        }
        claims::check_audience(&claims, &self.settings.audiences).map_err(failed)?;
        claims::check_time(&claims, circumstances.now).map_err(failed)?;
        claims::user(&claims, &self.settings)
    }
}
