//! A certificate authority that the replicas of a program share through a Secret.
//!
//! Each replica looks at the Secret from time to time. What is to be done about it,
//! [`succession`](super::succession) decides; it is written only as it was read, so of several
//! replicas that want to write, one does and the others read again. Nothing is signed by an
//! authority that is not in the Secret. Each replica then has a certificate of its own, in memory
//! alone, and sees to it that the API server trusts the authorities.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};

use super::injection::{Bundle, CaInjection, Needed};
use super::succession::{Data, Succession, lasting};
use crate::clock;
use crate::error::{Error, Result};
use crate::random::jitter;
use crate::serve::{Authority, Certificates, Validity};

/// How long an authority lasts unless said otherwise.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// What it lasts at least: its successor is trusted for an hour before it signs.
const LIFETIME_MIN: Duration = Duration::from_secs(6 * 3600);
/// How long the certificate of a server lasts at most; it is renewed after two thirds of that.
const CERTIFICATE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long until it looks again.
const LOOK: Duration = Duration::from_secs(30);
/// How long until it tries again what failed.
const RETRY: Duration = Duration::from_secs(2);
/// How long requests may take before it tries again.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often it reads again at once because another replica was faster.
const CONFLICTS_MAX: usize = 8;

/// A certificate authority that the replicas of a program share. It is kept in a Secret, replaced
/// long before it expires, and written into the `caBundle` of what the server configures and of
/// what is named here.
#[derive(Clone, Debug)]
#[must_use = "an authority does nothing until a server has it"]
pub struct SharedCa {
    hosts: Vec<String>,
    namespace: Option<String>,
    secret: Option<String>,
    lifetime: Duration,
    pub(super) injection: CaInjection,
}

impl SharedCa {
    /// Signs certificates for these names of the server: `["shop.operators.svc"]` for the Service
    /// `shop` of the namespace `operators`.
    pub fn for_hosts(hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            hosts: hosts.into_iter().map(Into::into).collect(),
            namespace: None,
            secret: None,
            lifetime: LIFETIME,
            injection: CaInjection::default(),
        }
    }

    /// Keeps it in this Secret; otherwise in `<name of the server>-webhook-ca` of the namespace
    /// that the program runs in.
    pub fn secret(mut self, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self.secret = Some(name.into());
        self
    }

    /// How long an authority lasts: a year unless said otherwise, and at least six hours. Its successor
    /// is made when a third of that is left.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime.max(LIFETIME_MIN);
        self
    }

    /// Is also trusted in this MutatingWebhookConfiguration.
    pub fn mutating(mut self, name: impl Into<String>) -> Self {
        self.injection.mutating.push(name.into());
        self
    }

    /// Is also trusted in this ValidatingWebhookConfiguration.
    pub fn validating(mut self, name: impl Into<String>) -> Self {
        self.injection.validating.push(name.into());
        self
    }

    /// Is also trusted in the conversion of this CustomResourceDefinition.
    pub fn definition(mut self, name: impl Into<String>) -> Self {
        self.injection.definitions.push(name.into());
        self
    }

    /// Is also trusted in all configurations and definitions with these labels.
    pub fn labelled(mut self, selector: impl Into<String>) -> Self {
        self.injection.labels = Some(selector.into());
        self
    }

    /// The namespace of the Secret, if it is not the program's, and the name of the Secret.
    pub(crate) fn place(&self, server: &str) -> (Option<&str>, String) {
        let name = self.secret.clone().unwrap_or_else(|| authority_name(server));
        (self.namespace.as_deref(), name)
    }

    /// What gets it beside the Secret.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Needed<'_>> {
        self.injection.needs()
    }

    /// Keeps it for the server of this name.
    pub(super) fn keeper(
        &self,
        server: &str,
        client: kube::Client,
        certificates: Certificates,
    ) -> Keeper {
        let (namespace, secret) = self.place(server);
        let namespace = namespace.unwrap_or_else(|| client.default_namespace()).to_owned();
        Keeper {
            name: authority_name(server),
            secrets: Api::namespaced(client.clone(), &namespace),
            secret,
            hosts: self.hosts.clone(),
            lifetime: self.lifetime,
            client,
            injection: self.injection.clone(),
            certificates,
            shared: Succession::default(),
            shown: None,
            well: false,
        }
    }
}

/// What authorities of a server are called, and their Secret unless said otherwise.
fn authority_name(server: &str) -> String {
    format!("{server}-webhook-ca")
}

/// Keeps the authorities, for one replica.
pub(super) struct Keeper {
    name: String,
    client: kube::Client,
    secrets: Api<Secret>,
    secret: String,
    hosts: Vec<String>,
    lifetime: Duration,
    injection: CaInjection,
    certificates: Certificates,
    /// The authorities as they were last seen in the Secret.
    shared: Succession,
    shown: Option<Shown>,
    /// Whether everything was as it should be when it last looked.
    well: bool,
}

/// The certificate that the server shows.
struct Shown {
    validity: Validity,
    by: Authority,
}

impl Keeper {
    /// Ready when there is a certificate to show.
    pub(super) async fn begin(&mut self) {
        loop {
            self.look().await;
            if self.shown.is_some() {
                return;
            }
            tokio::time::sleep(jitter(RETRY, 0.1)).await;
        }
    }

    /// Goes on for ever.
    pub(super) async fn keep(mut self) {
        loop {
            tokio::time::sleep(jitter(if self.well { LOOK } else { RETRY }, 0.1)).await;
            self.look().await;
        }
    }

    /// Looks whether everything is as it should be, and sees to it.
    async fn look(&mut self) {
        let shared = in_time(self.share()).await.map(|shared| self.shared = shared);
        let trusted = match shared {
            Ok(()) => in_time(self.inject()).await,
            Err(error) => Err(error),
        };
        // Also without the API server: it may come back just in time to ask.
        let renewed = self.renew(clock::now(), trusted.is_ok());
        let outcome = trusted.and(renewed);
        self.well = outcome.is_ok();
        if let Err(error) = outcome {
            tracing::warn!(%error, secret = self.secret, "webhook CA is not up to date; retrying");
        }
    }

    /// Brings the Secret up to date, and gives what it then holds.
    async fn share(&self) -> Result<Succession> {
        for _ in 0..CONFLICTS_MAX {
            let found = self.secrets.get_opt(&self.secret).await?;
            let is_new = found.is_none();
            let mut secret = found.unwrap_or_else(|| self.empty());
            let data = secret.data.get_or_insert_default();
            let wanted = self.advanced(data)?;
            if !wanted.write(data) {
                return Ok(wanted);
            }
            let params = PostParams::default();
            let written = match is_new {
                true => self.secrets.create(&params, &secret).await,
                false => self.secrets.replace(&self.secret, &params, &secret).await,
            };
            match written.map_err(Error::from) {
                Ok(_) => {
                    tracing::info!(secret = self.secret, "webhook CA written");
                    return Ok(wanted);
                }
                // Another replica was faster, or somebody deleted it just now.
                Err(error) if error.is_conflict() || error.is_already_exists() => {}
                Err(error)
                    if error.status().is_some_and(|status| status.code == 404) && !is_new => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::message("others keep changing the Secret"))
    }

    fn advanced(&self, data: &Data) -> Result<Succession> {
        let now = clock::now();
        let make = || Authority::make(&self.name, lasting(now, self.lifetime));
        Ok(Succession::read(data).advanced(&self.shared, now, make)?)
    }

    fn empty(&self) -> Secret {
        let name = Some(self.secret.clone());
        Secret { metadata: ObjectMeta { name, ..ObjectMeta::default() }, ..Secret::default() }
    }

    /// Shows a new certificate if there is none, its time nears its end, or another authority
    /// signs, which is `trusted`: before that, the one that is shown does better.
    fn renew(&mut self, now: Timestamp, trusted: bool) -> Result<()> {
        let Some(authority) = &self.shared.current else { return Ok(()) };
        let lasts = |shown: &Shown| {
            (shown.by == *authority || !trusted) && !shown.validity.nears_its_end(now)
        };
        if self.shown.as_ref().is_some_and(lasts) {
            return Ok(());
        }
        let validity = lasting(now, CERTIFICATE_MAX.min(self.lifetime / 8));
        let signed = authority.sign(&self.hosts, validity)?;
        self.certificates.show(&signed.certificate, &signed.key)?;
        self.shown = Some(Shown { validity, by: authority.clone() });
        tracing::info!(until = %validity.until, "webhook certificate renewed");
        Ok(())
    }

    async fn inject(&self) -> Result<()> {
        let trusted: Vec<_> = self.shared.trusted().cloned().collect();
        self.injection.inject(&self.client, &Bundle { trusted: &trusted, now: clock::now() }).await
    }
}

/// A server that accepts a request and never answers must not keep certificates from being renewed.
async fn in_time<T>(requests: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(PATIENCE, requests).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::message("the API server does not answer")),
    }
}
