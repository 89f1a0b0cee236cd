//! Where an issuer's keys come from: its discovery document says where they are.
//!
//! Nothing is asked before the first token comes. Keys stay until a token comes that none of them
//! has signed; then they are asked for again, but not more often than [`PAUSE`] allows, however
//! many such tokens come. Requests that need the same answer wait for it together.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, header};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::keys::KeySet;
use super::{Circumstances, IssuerSettings};
use crate::token::jwt::Jwt;
use crate::webhook_client::Target;

/// How long an issuer is left in peace after it was asked, whatever it answered.
const PAUSE: Duration = Duration::from_secs(10);

/// How long an answer may take. Two of them are less than a request waits for who it is.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The largest document that an issuer is listened to for, in bytes.
const DOCUMENT_MAX: usize = 1024 * 1024;

/// The source of an issuer's keys.
pub(super) enum Provider {
    /// They were given.
    Given(KeySet),
    /// They are asked for.
    Remote(Remote),
}

pub(super) struct Remote {
    issuer: String,
    discovery_url: String,
    authorities: Vec<u8>,
    /// What is known now. The lock is held for moments, never over a wait.
    known: RwLock<Arc<KeySet>>,
    /// Held by who asks, so that others wait for the answer instead of asking as well.
    asking: Mutex<Asking>,
}

#[derive(Default)]
struct Asking {
    /// Where the keys are, once the discovery document was read.
    keys_url: Option<String>,
    /// When the issuer was asked last.
    last: Option<Instant>,
}

/// The discovery document, as far as it matters.
#[derive(Deserialize)]
struct Discovery {
    #[serde(default)]
    issuer: String,
    #[serde(default)]
    jwks_uri: String,
}

impl Provider {
    pub(super) fn of(settings: &IssuerSettings) -> Self {
        if let Some(keys) = &settings.keys {
            return Self::Given(keys.clone());
        }
        let url = &settings.url;
        let well_known = || {
            let url = url.strip_suffix('/').unwrap_or(url);
            format!("{url}/.well-known/openid-configuration")
        };
        Self::Remote(Remote {
            issuer: url.clone(),
            discovery_url: settings.discovery_url.clone().unwrap_or_else(well_known),
            authorities: settings.authorities.clone(),
            known: RwLock::default(),
            asking: Mutex::default(),
        })
    }

    /// Whether the issuer has signed a token.
    pub(super) async fn verify(
        &self,
        jwt: &Jwt<'_>,
        circumstances: Circumstances<'_>,
    ) -> Result<(), String> {
        let signed = match self {
            Self::Given(keys) => keys.have_signed(jwt),
            Self::Remote(remote) => {
                let known = remote.known();
                known.have_signed(jwt) || {
                    let fresh = remote.fresh(&known, circumstances).await?;
                    !Arc::ptr_eq(&fresh, &known) && fresh.have_signed(jwt)
                }
            }
        };
        if signed { Ok(()) } else { Err("failed to verify id token signature".to_owned()) }
    }
}

impl Remote {
    fn known(&self) -> Arc<KeySet> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keys that are newer than those that were not good enough, if there are any to be had now.
    async fn fresh(
        &self,
        old: &Arc<KeySet>,
        circumstances: Circumstances<'_>,
    ) -> Result<Arc<KeySet>, String> {
        let mut asking = self.asking.lock().await;
        let known = self.known();
        if !Arc::ptr_eq(&known, old) {
            return Ok(known);
        }
        if asking.last.is_some_and(|last| last.elapsed() < PAUSE) {
            let unknown = known.is_empty().then_some("oidc: authenticator not initialized");
            return unknown.map_or(Ok(known), |why| Err(why.to_owned()));
        }
        // Also if whoever waits for the answer goes away.
        asking.last = Some(Instant::now());
        let asked = self.ask(&mut asking, circumstances).await;
        asking.last = Some(Instant::now());
        let keys = Arc::new(asked.inspect_err(|error| {
            tracing::warn!(issuer = self.issuer, error, "cannot get the keys of an issuer");
        })?);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&keys);
        Ok(keys)
    }

    async fn ask(
        &self,
        asking: &mut Asking,
        circumstances: Circumstances<'_>,
    ) -> Result<KeySet, String> {
        let keys_url = match &asking.keys_url {
            Some(url) => url.clone(),
            None => asking.keys_url.insert(self.discover(circumstances).await?).clone(),
        };
        let response = self.get(&keys_url, circumstances).await;
        let response =
            response.map_err(|why| format!("fetching keys oidc: get keys failed {why}"))?;
        let failed = |why: &str| format!("fetching keys oidc: {why}");
        if response.status() != 200 {
            return Err(failed(&format!("get keys failed: {}", response.status())));
        }
        KeySet::parse(response.body())
            .map_err(|why| failed(&format!("failed to decode keys: {}", unread(&response, &why))))
    }

    async fn discover(&self, circumstances: Circumstances<'_>) -> Result<String, String> {
        let response = self.get(&self.discovery_url, circumstances).await?;
        if response.status() != 200 {
            return Err(response.status().to_string());
        }
        let document: Discovery = serde_json::from_slice(response.body()).map_err(|error| {
            let why = unread(&response, &error.to_string());
            format!("oidc: failed to decode provider discovery object: {why}")
        })?;
        if document.issuer != self.issuer {
            let expected = &self.issuer;
            let found = &document.issuer;
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected \
                 {expected:?} got {found:?}"
            ));
        }
        if document.jwks_uri.is_empty() {
            return Err("provider did not return JWKS URL".to_owned());
        }
        Ok(document.jwks_uri)
    }

    async fn get(
        &self,
        url: &str,
        Circumstances { store, origins, .. }: Circumstances<'_>,
    ) -> Result<Response<Bytes>, String> {
        let failed = |why: &str| format!("Get {url:?}: {why}");
        if !url.starts_with("https://") {
            return Err(failed("only https is trusted"));
        }
        let target = Target::at(url, self.authorities.clone());
        let response = origins.get(store, &target, url, TIMEOUT).await?;
        if response.body().len() > DOCUMENT_MAX {
            return Err(failed("the answer is too large"));
        }
        Ok(response)
    }
}

/// Why a document could not be read; often it is none.
fn unread(response: &Response<Bytes>, why: &str) -> String {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind.unwrap_or("") {
        kind if kind.starts_with("application/json") => {
            format!("got Content-Type = application/json, but could not unmarshal as JSON: {why}")
        }
        kind => format!("expected Content-Type = application/json, got {kind:?}: {why}"),
    }
}
